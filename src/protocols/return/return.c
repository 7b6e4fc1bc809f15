/* SPDX-License-Identifier: BSD-2-Clause */
/* return TEXT: sends the text with replaced variables, and closes. */
#include <forkbeard/forkbeard.h>

struct return_conf {
    const fb_template *text;
};

struct return_worker {
    const fb_stream *stream;
};

static int return_worker_start(fb_worker *worker, void *state)
{
    struct return_worker *own = state;

    own->stream = fb_interface(worker, "stream", 1);
    return own->stream == NULL;
}

static int return_opened(fb_conn *conn, void *state)
{
    const struct return_conf *conf = fb_conf_of(conn);
    const struct return_worker *own = fb_worker_state(conn);
    fb_bytes text;

    (void)state;
    if (own->stream->evaluate(conn, conf->text, &text) == 0)
        fb_write(conn, text.p, text.n);
    else
        own->stream->set_status(conn, 500);
    fb_count_request(conn);
    fb_close(conn);
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = return_opened };

static const fb_directive directives[] = {
    { .name = "return",
        .value = FB_VALUE_TEMPLATE,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct return_conf, text) },
};

/* clang-format off */
FB_PROTOCOL(return) = {
    /* clang-format on */
    FB_PROTOCOL_HEADER,
    .name = "return",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct return_conf),
    .worker_state = sizeof(struct return_worker),
    .ops = &ops,
    .worker_start = return_worker_start,
};
