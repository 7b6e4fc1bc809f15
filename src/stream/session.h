/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "stream/stream.h"

/* A connection whose owner is a struct fb_binding. */
extern const struct fb_conn_ops fb_session_ops;

/* Gives the connection its protocol's state, zeroed; false without memory. */
bool fb_session_state(struct fb_conn *conn, const struct fb_server *server);
/* Tells its protocol, which has these operations for it, that it has ended. */
void fb_session_ended(struct fb_conn *conn, const fb_ops *ops, fb_reason reason);
/* Tells its protocol that the worker drains. */
void fb_session_draining(struct fb_conn *conn);
