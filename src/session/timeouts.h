/* SPDX-License-Identifier: BSD-2-Clause */
/* The time limits of a session's connection, from `opened` on. */
#pragma once

#include "session/use.h"

/* Enters SESSION_ACTIVE: idle_timeout runs, or the connection's own. */
void session_become_active(struct fb_conn *conn);
/* Starts first_byte_timeout, unless `opened` has stopped or piped the client. */
void session_await_first_byte(struct fb_conn *conn);
/* Ends the wait for a client's first byte: bytes have to move from now on. */
void session_await_no_more(struct fb_conn *conn);
/* conn_ops.expired: fails the connection, or sets the deadline for the rest of the limit. */
void session_expired(struct fb_conn *conn);
/* fb_set_timeout(), fb_close(), fb_stop() and fb_resume() */
void session_set_timeout(struct fb_conn *conn, uint64_t ms);
void session_close(struct fb_conn *conn);
void session_stop(struct fb_conn *conn);
void session_resume(struct fb_conn *conn);

/* Ends the connection when no input has come for `ms`; 0: never. */
void session_receive_set(struct fb_conn *conn, uint64_t ms);
void session_receive_clear(struct session_use *use);
/* Returns the operations of a connection, neither piped nor held up by a phase. */
const struct conn_ops *session_receive_ops(const struct fb_conn *conn);
/* The lowest rate of a client's messages. */
struct rate_setting {
    int64_t bytes; /* a second; 0: any */
    int64_t grace; /* ms */
};
/* Handles a phase, by a struct rate_setting for the client's messages. Returns 0. */
unsigned session_receive_begin_rate(struct fb_conn *conn, const void *setting);
