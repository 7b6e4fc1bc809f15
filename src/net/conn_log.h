/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's address and the log lines of a connection, in any phase. */
#pragma once

#include "net/conn.h"

/* Fills in the stored address of a peer. */
void conn_peer_of(const struct conn_peer *peer, struct address *out);

static inline void conn_peer_address(const struct fb_conn *conn, struct address *out)
{
    conn_peer_of(&conn->peer, out);
}

void conn_log(const struct fb_conn *conn, enum log_level level, int error, const char *format, ...)
    PRINTF_FORMAT(4, 5);
void conn_vlog(
    const struct fb_conn *conn, enum log_level level, int error, const char *format, va_list args);
void conn_log_failed(
    const struct fb_conn *conn, enum log_transfer transfer, int error, const char *call);
/* Fills in the connection's part of a line; `client` is the room for its text. */
void conn_log_line(const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT]);

/* Whether debug lines are wanted: of every connection in a debug build, of chosen ones in any. */
#define conn_debugs(conn)                                                                          \
    unlikely((conn)->debug || (DEBUG_BUILD && (conn)->net->log->level >= LEVEL_DEBUG))
#define conn_debug(conn, ...)                                                                      \
    do {                                                                                           \
        if (conn_debugs(conn))                                                                     \
            conn_log((conn), LEVEL_DEBUG, 0, __VA_ARGS__);                                         \
    } while (0)

/* Logs a debug line with the connection's descriptor, in builds with --enable-debug alone. */
#define conn_trace(conn, ...) debug_source(&(conn)->net->loop, &(conn)->source, __VA_ARGS__)
