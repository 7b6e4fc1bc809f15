/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's lines in the error log. Lines of a connection end with client and server, and appear at
 * level debug for the clients of `debug_connection`. Reports calls on ended connections: the slot
 * still tells the protocol, because slots are never given back; nothing else of the connection is
 * touched. */
#include "base/log.h"
#include "configuration/configuration.h"
#include "process/role.h"
#include "sdk/handle.h"

#include <assert.h>

/* Modules were built with these numbers. */
static_assert((int)FB_LOG_ALERT == (int)LEVEL_ALERT, "levels are the log's");
static_assert((int)FB_LOG_ERROR == (int)LEVEL_ERROR, "levels are the log's");
static_assert((int)FB_LOG_DEBUG == (int)LEVEL_DEBUG, "levels are the log's");

/* A module may pass any number: a number beyond the levels counts as the nearest. */
static enum log_level known_level(fb_log_level level)
{
    if ((int)level < (int)FB_LOG_ALERT)
        return LEVEL_ALERT;
    return (int)level > (int)FB_LOG_DEBUG ? LEVEL_DEBUG : (enum log_level)level;
}

void fb_conn_logf(fb_conn *conn, fb_log_level level, const char *format, ...)
{
    va_list args;

    if (!SDK_VALID(conn) || likely((int)level > (int)conn->net->log->level && !conn->debug))
        return;
    assert(conn->net->log != NULL);
    va_start(args, format);
    conn_vlog(conn, known_level(level), 0, format, args);
    va_end(args);
}

static PRINTF_FORMAT(3, 0) void put_protocol_line(
    struct log *log, fb_log_level level, const char *format, va_list args)
{
    struct log_line line = { .level = known_level(level) };

    if ((int)level <= (int)log->level)
        log_vput(log, &line, format, args);
}

void fb_worker_logf(fb_worker *worker, fb_log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_protocol_line(&worker_of(worker)->log, level, format, args);
    va_end(args);
}

void fb_master_logf(fb_master *master, fb_log_level level, const char *format, ...)
{
    va_list args;

    assert(role_is(ROLE_MASTER) && master != NULL);
    va_start(args, format);
    put_protocol_line(master->log, level, format, args);
    va_end(args);
}

void sdk_handle_report(const fb_conn *conn, const char *call)
{
    struct stream *stream;
    const struct worker *worker;

    if (conn->net == NULL) /* a child of fork(): the slots of all connections are empty */
        os_wiped_end();
    stream = stream_of(conn);
    worker = container_of(stream, struct worker, stream);
    assert(stream->net.log != NULL);
    if (stream->misused != NULL) {
        stream->misused(stream, call);
        return;
    }
    log_write(stream->net.log, LEVEL_ALERT, 0,
        "%s() of a connection that has ended, by protocol \"%s\"", call,
        worker_protocols_name(worker, heartbeat_running_protocol(stream->net.heartbeat)));
    log_debug_point(stream->net.log, "a connection that has ended was used");
}
