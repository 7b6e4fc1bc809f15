/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a protocol that more than one file makes. Each begins and ends the heartbeat, and does
 * nothing where the protocol has no such callback. */
#pragma once

#include "session/conn.h"

/* Calls the protocol's `closed`, which is among these operations. */
void session_call_closed(struct fb_conn *conn, const fb_ops *ops, fb_reason reason);
/* Calls the function that fb_pipe() was given for the first byte. */
void session_call_first_byte(struct fb_conn *conn, conn_first_byte call);
/* Calls the protocol's `draining` with the time that is left. */
void session_call_draining(struct fb_conn *conn);
/* Calls it with this time, in ms; 0: none. */
void session_call_draining_in(struct fb_conn *conn, uint64_t deadline);
