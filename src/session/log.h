/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of a client's session at level info, in nginx's words, and about slow callbacks.
 * Nothing is formatted where no log takes the line. */
#pragma once

#include "net/conn.h"

/* Writes a line, already filled in. */
void session_log_put(struct log *log, const struct log_line *line, const char *format, ...)
    PRINTF_FORMAT(3, 4);
/* Logs that the client has connected, just before the protocol gets the client. */
void session_log_start(const struct fb_conn *conn) COLD;
/* Logs the connection to a server for the client. */
void session_log_connected(const struct fb_conn *client, const struct fb_conn *server) COLD;
/* Logs the end of the session, with bytes, time, and reason. */
void session_log_end(const struct fb_conn *conn, fb_reason reason) COLD;
/* Logs a callback of the connection that took longer than `stall_threshold`. */
void session_log_stall(const struct fb_conn *conn) COLD;
/* Logs a slow callback of a worker, without a connection. */
void session_log_other_stall(
    struct log *log, const struct heartbeat_stall *stall, const char *protocol);
