/* SPDX-License-Identifier: BSD-2-Clause */
/* The deadline of a session's connection, in the phases of a session from `opened` on. */
#pragma once

#include "session/conn.h"

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
