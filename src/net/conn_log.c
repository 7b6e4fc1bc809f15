/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines of a connection, and the peer's address. Never changes the connection. */
#include "net/conn_log.h"

#include <errno.h>
#include <string.h>

void conn_peer_of(const struct conn_peer *peer, struct address *out)
{
    assert(peer->family == AF_INET || peer->family == AF_INET6 || peer->family == AF_UNIX);
    out->length = 0; /* for an unnamed unix socket */
    out->any.sa_family = peer->family;
    if (peer->family == AF_INET) {
        out->length = sizeof(out->in);
        out->in = (struct sockaddr_in) {
            .sin_family = AF_INET, .sin_port = peer->port, .sin_addr = peer->in
        };
    } else if (peer->family == AF_INET6) {
        out->length = sizeof(out->in6);
        out->in6 = (struct sockaddr_in6) {
            .sin6_family = AF_INET6,
            .sin6_port = peer->port,
            .sin6_addr = peer->in6,
            .sin6_scope_id = peer->scope,
        };
    }
}

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
    put_conn_line(struct log *log, const struct log_line *line, const char *format, ...)
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
    if (!conn_logs(conn, line.level) || (conn->source.layered && error == EPROTO))
        return; /* the layer has said why */
    conn_log_line(conn, &line, client);
    put_conn_line(conn->net->log, &line, "%s failed", call);
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

    if (!conn_logs(conn, level))
        return;
    va_start(args, format);
    conn_vlog(conn, level, error, format, args);
    va_end(args);
}
