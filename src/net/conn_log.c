/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines of a connection: with its number, its client, and what its owner adds.
 *
 * Responsible for nothing but the line. Never changes the connection; it can be called in any
 * phase. */
#include "net/conn.h"

#include <string.h>

void conn_log_line(const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT])
{
    struct address address;

    line->connection = conn->number;
    line->force = conn->debug;
    conn_peer_address(conn, &address);
    if (!conn->outgoing)
        line->client = address_format(&address, false, client);
    conn->ops->describe(conn, line, client);
}

static void PRINTF_FORMAT(3, 4)
    put_line(struct log *log, const struct log_line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vput(log, line, format, args);
    va_end(args);
}

COLD void conn_log_failed(
    const struct fb_conn *conn, enum log_transfer transfer, int error, const char *call)
{
    char client[ADDRESS_TEXT];
    struct log_line line = { .error = error, .transfer = transfer };

    /* clients break off as they like; a server is expected not to */
    line.level = conn->pipe != NULL && conn->outgoing ? LEVEL_ERROR : LEVEL_INFO;
    if (line.level > conn->net->log->level && !conn->debug)
        return;
    conn_log_line(conn, &line, client);
    put_line(conn->net->log, &line, "%s failed", call);
}

void conn_vlog(
    const struct fb_conn *conn, enum log_level level, int error, const char *format, va_list args)
{
    char client[ADDRESS_TEXT];
    struct log_line line = { .level = level, .error = error };

    conn_log_line(conn, &line, client);
    log_vput(conn->net->log, &line, format, args);
}

void conn_log(const struct fb_conn *conn, enum log_level level, int error, const char *format, ...)
{
    va_list args;

    if (level > conn->net->log->level && !conn->debug)
        return;
    va_start(args, format);
    conn_vlog(conn, level, error, format, args);
    va_end(args);
}
