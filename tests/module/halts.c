/* SPDX-License-Identifier: BSD-2-Clause */
/* A module that never reads again: with "halts on" a connection is stopped at the opening, with
 * "halts off" at the first input. */
#include <forkbeard/forkbeard.h>

#include <stddef.h>

struct conf {
    int64_t at_once;
};

static void halt(fb_conn *conn)
{
    fb_write(conn, "stopped\n", 8);
    fb_stop(conn);
}

static int halts_opened(fb_conn *conn, void *state)
{
    const struct conf *conf = fb_conf_of(conn);

    (void)state;
    if (conf->at_once != 0)
        halt(conn);
    return 0;
}

static size_t halts_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    halt(conn);
    return in.n;
}

static const fb_directive directives[] = {
    { .name = "halts",
        .value = FB_VALUE_FLAG,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct conf, at_once) },
};
static const fb_ops ops = { .size = sizeof(fb_ops), .opened = halts_opened, .data = halts_data };

FB_PROTOCOL(halts) = {
    FB_PROTOCOL_HEADER,
    .name = "halts",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct conf),
    .ops = &ops,
};
