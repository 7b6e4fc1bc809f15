/* SPDX-License-Identifier: BSD-2-Clause */
/* stub_status: sends the daemon's statistics, like nginx's page `stub_status`, and closes. */
#include <forkbeard/forkbeard.h>
#include <inttypes.h>
#include <stdio.h>

static int status_opened(fb_conn *conn, void *state)
{
    fb_statistics s = { .size = sizeof(s) };
    char text[256];
    int n;

    (void)state;
    fb_count_request(conn);
    fb_get_statistics(fb_worker_of(conn), &s);
    n = snprintf(text, sizeof(text),
        "Active connections: %" PRIu64 "\nserver accepts handled requests\n %" PRIu64 " %" PRIu64
        " %" PRIu64 "\nReading: %" PRIu64 " Writing: %" PRIu64 " Waiting: %" PRIu64 "\n",
        s.active, s.accepts, s.handled, s.requests, s.reading, s.writing, s.waiting);
    fb_write(conn, text, (size_t)n);
    fb_close(conn);
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = status_opened };

static const fb_directive directives[] = {
    { .name = "stub_status", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(stub_status) = {
    FB_PROTOCOL_HEADER,
    .name = "stub_status",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};
