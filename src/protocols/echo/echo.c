/* SPDX-License-Identifier: BSD-2-Clause */
/* echo: sends all received data back (RFC 862). */
#include <forkbeard/forkbeard.h>

static size_t echo_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, in.p, in.n);
    fb_count_request(conn);
    return in.n;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .data = echo_data };

static const fb_directive directives[] = {
    { .name = "echo", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(echo) = {
    FB_PROTOCOL_HEADER,
    .name = "echo",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};
