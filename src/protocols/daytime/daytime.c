/* SPDX-License-Identifier: BSD-2-Clause */
/* daytime: sends the date and time, in UTC, and closes (RFC 867). */
#include <forkbeard/forkbeard.h>
#include <time.h>

static int daytime_opened(fb_conn *conn, void *state)
{
    time_t now = (time_t)(fb_wall_ms(fb_worker_of(conn)) / 1000);
    struct tm tm;
    char text[64];

    (void)state;
    gmtime_r(&now, &tm);
    fb_write(conn, text, strftime(text, sizeof(text), "%A, %B %d, %Y %H:%M:%S-UTC\r\n", &tm));
    fb_count_request(conn);
    fb_close(conn);
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = daytime_opened };

static const fb_directive directives[] = {
    { .name = "daytime", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(daytime) = {
    FB_PROTOCOL_HEADER,
    .name = "daytime",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};
