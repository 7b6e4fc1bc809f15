/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls. One object, so that a daemon which loads modules has all of them. */
#include "base/log.h"
#include "stream/stream.h"

#include <assert.h>
#include <string.h>

static_assert((int)FB_LOG_ALERT == (int)FB_ALERT, "levels are the log's");
static_assert((int)FB_LOG_ERROR == (int)FB_ERROR, "levels are the log's");
static_assert((int)FB_LOG_DEBUG == (int)FB_DEBUG, "levels are the log's");

void fb_write(fb_conn *conn, const void *p, size_t n)
{
    fb_conn_write(conn, p, n);
}

void fb_stop(fb_conn *conn)
{
    fb_conn_stop(conn);
}

void fb_resume(fb_conn *conn)
{
    fb_conn_resume(conn);
}

void fb_close(fb_conn *conn)
{
    fb_conn_close(conn);
}

void fb_abort(fb_conn *conn)
{
    fb_conn_fail(conn, FB_ABORTED);
}

const void *fb_conf_of(const fb_conn *conn)
{
    const struct fb_binding *binding = conn->owner;

    return binding->server->protocol_conf;
}

int64_t fb_wall_ms(const fb_conn *conn)
{
    return conn->net->loop.clock.wall_ms;
}

void fb_count_request(fb_conn *conn)
{
    fb_count(conn->net->counters, FB_REQUESTS, 1);
}

void fb_conn_logf(fb_conn *conn, fb_log_level level, const char *format, ...)
{
    va_list args;

    if ((int)level > (int)conn->net->log->level && !conn->debug)
        return;
    va_start(args, format);
    fb_conn_vlog(conn, (enum fb_level)level, 0, format, args);
    va_end(args);
}

void fb_get_statistics(fb_conn *conn, fb_statistics *out)
{
    uint64_t n[FB_COUNTERS], busy;
    fb_statistics all = { .size = out->size };

    fb_shared_totals(fb_stream_of(conn)->shared, n);
    busy = n[FB_READING] + n[FB_WRITING];
    all.accepts = n[FB_ACCEPTS];
    all.handled = n[FB_HANDLED];
    all.requests = n[FB_REQUESTS];
    all.active = n[FB_ACTIVE];
    all.reading = n[FB_READING];
    all.writing = n[FB_WRITING];
    /* other workers count on while we read */
    all.waiting = n[FB_ACTIVE] > busy ? n[FB_ACTIVE] - busy : 0;
    memcpy(out, &all, out->size < sizeof(all) ? out->size : sizeof(all));
}
