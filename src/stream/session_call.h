/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a protocol that more than one file makes. Each begins and ends the heartbeat, and does
 * nothing where the protocol has no such callback. */
#pragma once

#include "stream/session_conn.h"

/* Tells the protocol, which has these operations for the connection, that it has ended. */
void session_call_closed(struct fb_conn *conn, const fb_ops *ops, fb_reason reason);
/* Tells the protocol that the worker drains, and for how long. */
void session_call_draining(struct fb_conn *conn);
