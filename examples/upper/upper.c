/* SPDX-License-Identifier: BSD-2-Clause */
/* upper: answers each line in upper case. forkbeard_guide(7) explains such a protocol step by
 * step. */
#include <ctype.h>
#include <forkbeard/forkbeard.h>

#define LINE_MAX_BYTES 1024

/* A longer line, or a line still incomplete 30 s after its first byte, ends the connection. */
static const fb_frame_limit limit = { .most = LINE_MAX_BYTES, .timeout = 30000 };

/* Receives the arrived bytes: some lines, and perhaps the beginning of a further line. Bytes not
 * consumed are offered again, together with the bytes after them. */
static size_t upper_data(fb_conn *conn, void *state, fb_bytes in)
{
    fb_bytes rest = in, line;
    char reply[LINE_MAX_BYTES + 1];

    (void)state; /* upper has nothing to remember between two calls */
    while (fb_frame_until(conn, &rest, "\n", 1, &limit, &line)) {
        for (size_t i = 0; i < line.n; i++)
            reply[i] = (char)toupper(line.p[i]);
        reply[line.n] = '\n';
        fb_write(conn, reply, line.n + 1);
        fb_count_request(conn);
    }
    return in.n - rest.n;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .data = upper_data };

/* "upper;" in a server block gives the server to this protocol. */
static const fb_directive directives[] = {
    { .name = "upper", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(upper) = {
    FB_PROTOCOL_HEADER,
    .name = "upper",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};
