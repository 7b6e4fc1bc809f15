/* SPDX-License-Identifier: BSD-2-Clause */
/* pass ADDRESS: hands the client over to the server listening on ADDRESS. */
#include <forkbeard/forkbeard.h>

struct pass_conf {
    const fb_listener *listener;
};

struct pass_worker {
    const fb_stream *stream;
};

static int pass_worker_start(fb_worker *worker, void *state)
{
    struct pass_worker *own = state;

    own->stream = fb_interface(worker, "stream", 1);
    return own->stream == NULL;
}

static int pass_opened(fb_conn *conn, void *state)
{
    const struct pass_conf *conf = fb_conf_of(conn);
    const struct pass_worker *own = fb_worker_state(conn);

    (void)state;
    if (own->stream->pass(conn, conf->listener) == 0)
        return 0;
    own->stream->set_status(conn, 500);
    fb_close(conn);
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = pass_opened };

static int pass_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_listener **listener = value;

    (void)n;
    *listener = fb_conf_listener(conf, "pass", args[0]);
    return *listener != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "pass",
        .value = FB_VALUE_CUSTOM,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct pass_conf, listener),
        .room = sizeof(const fb_listener *),
        .set = pass_set,
        .args_least = 1,
        .args_most = 1 },
};

FB_PROTOCOL(pass) = {
    FB_PROTOCOL_HEADER,
    .name = "pass",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct pass_conf),
    .worker_state = sizeof(struct pass_worker),
    .ops = &ops,
    .worker_start = pass_worker_start,
};
