/* SPDX-License-Identifier: BSD-2-Clause */
/* discard: discards all received data (RFC 863). */
#include <forkbeard/forkbeard.h>

static size_t discard_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_count_request(conn);
    return in.n;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .data = discard_data };

static const fb_directive directives[] = {
    { .name = "discard", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(discard) = {
    FB_PROTOCOL_HEADER,
    .name = "discard",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};
