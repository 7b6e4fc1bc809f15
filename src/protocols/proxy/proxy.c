/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_pass: the directives, named as nginx's; session.c serves the clients. */
#include "protocols/proxy/proxy.h"

static int proxy_worker_start(fb_worker *worker, void *state)
{
    struct proxy_worker *own = state;

    own->worker = worker;
    own->stream = fb_interface(worker, "stream", 1);
    own->upstreams = fb_interface(worker, "upstream", 1);
    if (own->stream == NULL || own->upstreams == NULL)
        return -1;
    proxy_health_start(worker, &own->checks, own->upstreams);
    return 0;
}

static void proxy_worker_draining(fb_worker *worker, void *state, uint64_t deadline)
{
    struct proxy_worker *own = state;

    (void)deadline;
    proxy_health_drain(worker, &own->checks);
}

static void proxy_worker_timer(fb_worker *worker, void *state, uint32_t id)
{
    struct proxy_worker *own = state;

    (void)id;
    proxy_health_run(worker, &own->checks);
}

static const fb_worker_ops worker_ops = {
    .size = sizeof(fb_worker_ops), .timer = proxy_worker_timer, .draining = proxy_worker_draining
};

static int proxy_conf_done(fb_conf *conf, void *value, const void *parent)
{
    struct proxy_conf *own = value;

    (void)parent;
    own->health.most = (uint64_t)own->buffer_size;
    own->health.bind = &own->bind;
    if (own->starttls.dialect != NULL && fb_conf_need(conf, FB_NEEDS_TLS) != 0)
        return -1;
    own->health.tls = own->tls;
    return proxy_health_done(conf, own->upstream, &own->health);
}

static int set_pass(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_upstream **upstream = value;

    (void)n;
    *upstream = fb_conf_upstream(conf, "proxy_pass", args[0]);
    return *upstream != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "health_check",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct proxy_conf, health.check),
        .room = sizeof(struct proxy_check),
        .set = proxy_health_set,
        .args_most = 16 },
    { .name = "health_check_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct proxy_conf, health.timeout),
        .least = 1,
        .greatest = INT32_MAX,
        .initial = "5s" },
    { .name = "proxy_pass",
        .value = FB_VALUE_CUSTOM,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct proxy_conf, upstream),
        .room = sizeof(const fb_upstream *),
        .set = set_pass,
        .args_least = 1,
        .args_most = 1 },
    { .name = "proxy_bind",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct proxy_conf, bind),
        .room = sizeof(struct proxy_bind),
        .set = proxy_bind_set,
        .args_least = 1,
        .args_most = PROXY_BIND_MOST + 1,
        .initial = "off" },
    { .name = "proxy_buffer_size",
        .value = FB_VALUE_SIZE,
        .offset = offsetof(struct proxy_conf, buffer_size),
        .least = 1,
        .greatest = INT32_MAX,
        .initial = "16k" },
    { .name = "proxy_connect_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct proxy_conf, connect_timeout),
        .least = 1,
        .greatest = INT64_MAX,
        .initial = "60s" },
    { .name = "proxy_download_rate",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct proxy_conf, download),
        .room = sizeof(struct proxy_rate),
        .set = proxy_rate_set_download,
        .args_least = 1,
        .args_most = 1,
        .initial = "0" },
    { .name = "proxy_half_close",
        .value = FB_VALUE_FLAG,
        .offset = offsetof(struct proxy_conf, half_close),
        .initial = "off" },
    { .name = "proxy_next_upstream",
        .value = FB_VALUE_FLAG,
        .offset = offsetof(struct proxy_conf, next_upstream),
        .initial = "on" },
    { .name = "proxy_next_upstream_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct proxy_conf, next_upstream_timeout),
        .initial = "0" },
    { .name = "proxy_next_upstream_tries",
        .value = FB_VALUE_NUMBER,
        .offset = offsetof(struct proxy_conf, next_upstream_tries),
        .initial = "0" },
    { .name = "proxy_protocol",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct proxy_conf, header),
        .room = sizeof(enum proxy_header),
        .set = proxy_header_set,
        .args_least = 1,
        .args_most = 3,
        .initial = "off" },
    { .name = "proxy_reset",
        .value = FB_VALUE_FLAG,
        .offset = offsetof(struct proxy_conf, reset),
        .initial = "off" },
    { .name = "proxy_socket_keepalive",
        .value = FB_VALUE_FLAG,
        .offset = offsetof(struct proxy_conf, socket_keepalive),
        .initial = "off" },
    { .name = "proxy_ssl",
        .value = FB_VALUE_TLS,
        .offset = offsetof(struct proxy_conf, tls),
        .initial = "off" },
    { .name = "proxy_starttls",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct proxy_conf, starttls),
        .room = sizeof(struct proxy_starttls),
        .set = proxy_starttls_set,
        .args_least = 1,
        .args_most = 2,
        .initial = "off" },
    { .name = "proxy_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct proxy_conf, timeout),
        .least = 1,
        .greatest = INT64_MAX,
        .initial = "10m" },
    { .name = "proxy_upload_rate",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct proxy_conf, upload),
        .room = sizeof(struct proxy_rate),
        .set = proxy_rate_set_upload,
        .args_least = 1,
        .args_most = 1,
        .initial = "0" },
};

FB_PROTOCOL(proxy) = {
    FB_PROTOCOL_HEADER,
    .name = "proxy",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct proxy),
    .conf_state = sizeof(struct proxy_conf),
    .worker_state = sizeof(struct proxy_worker),
    .ops = &proxy_session_ops,
    .conf_done = proxy_conf_done,
    .worker_start = proxy_worker_start,
    .worker_ops = &worker_ops,
};
