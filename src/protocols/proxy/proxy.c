/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_pass: connects each client with a server, and moves bytes both ways. */
#include <forkbeard/forkbeard.h>

struct proxy_conf {
    const fb_upstream *upstream;
    int64_t connect_timeout, timeout;
};

struct proxy_worker {
    const fb_stream *stream;
    const fb_upstreams *upstreams;
};

/* The state of a client, which its connections to servers share. */
struct proxy {
    fb_conn *client;
    int connected;
};

static const fb_ops server_ops;

static void fail(fb_conn *client, uint32_t status)
{
    const struct proxy_worker *own = fb_worker_state(client);

    own->stream->set_status(client, status);
    fb_close(client);
}

static void connect_to(fb_conn *client, struct proxy *proxy, const fb_try *run)
{
    const struct proxy_conf *conf = fb_conf_of(client);
    const struct proxy_worker *own = fb_worker_state(client);
    fb_conn *server = fb_connect(client, run->target, &server_ops, proxy);

    if (server != NULL) {
        fb_set_timeout(server, (uint64_t)conf->connect_timeout);
        return;
    }
    own->upstreams->end(client, NULL, FB_TRY_UNUSED);
    fail(client, 503);
}

static void proxy_chosen(fb_conn *client, void *state, fb_choice choice, const fb_try *run)
{
    if (choice == FB_CHOICE_SERVER)
        connect_to(client, state, run);
    else
        fail(client, 502);
}

static int server_opened(fb_conn *server, void *state)
{
    struct proxy *proxy = state;
    const struct proxy_conf *conf = fb_conf_of(proxy->client);
    const struct proxy_worker *own = fb_worker_state(server);
    const fb_pipe_options options = { .size = sizeof(options), .timeout = (uint64_t)conf->timeout };

    proxy->connected = 1;
    own->upstreams->connected(proxy->client);
    fb_pipe(proxy->client, server, &options);
    return 0;
}

static void server_closed(fb_conn *server, void *state, fb_reason reason)
{
    const struct proxy *proxy = state;
    const struct proxy_worker *own = fb_worker_state(server);

    (void)reason;
    own->upstreams->end(proxy->client, server, proxy->connected ? FB_TRY_SERVED : FB_TRY_FAILED);
    if (!proxy->connected)
        fail(proxy->client, 502);
}

static const fb_ops server_ops = {
    .size = sizeof(fb_ops), .opened = server_opened, .closed = server_closed
};

static int proxy_opened(fb_conn *client, void *state)
{
    const struct proxy_conf *conf = fb_conf_of(client);
    const struct proxy_worker *own = fb_worker_state(client);
    struct proxy *proxy = state;
    const fb_try *run;
    fb_choice choice;

    proxy->client = client;
    fb_stop(client); /* early input waits in the kernel until the server is there */
    choice = own->upstreams->choose(client, conf->upstream, proxy_chosen, &run);
    if (choice != FB_CHOICE_WAITS)
        proxy_chosen(client, proxy, choice, run);
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = proxy_opened };

static int proxy_worker_start(fb_worker *worker, void *state)
{
    struct proxy_worker *own = state;

    own->stream = fb_interface(worker, "stream", 1);
    own->upstreams = fb_interface(worker, "upstream", 1);
    return own->stream == NULL || own->upstreams == NULL;
}

static int set_pass(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_upstream **upstream = value;

    (void)n;
    *upstream = fb_conf_upstream(conf, "proxy_pass", args[0]);
    return *upstream != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "proxy_pass",
        .value = FB_VALUE_CUSTOM,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct proxy_conf, upstream),
        .room = sizeof(const fb_upstream *),
        .set = set_pass,
        .args_least = 1,
        .args_most = 1 },
    { .name = "proxy_connect_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct proxy_conf, connect_timeout),
        .least = 1,
        .greatest = INT64_MAX,
        .initial = "60s" },
    { .name = "proxy_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct proxy_conf, timeout),
        .least = 1,
        .greatest = INT64_MAX,
        .initial = "10m" },
};

FB_PROTOCOL(proxy) = {
    FB_PROTOCOL_HEADER,
    .name = "proxy",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct proxy),
    .conf_state = sizeof(struct proxy_conf),
    .worker_state = sizeof(struct proxy_worker),
    .ops = &ops,
    .worker_start = proxy_worker_start,
};
