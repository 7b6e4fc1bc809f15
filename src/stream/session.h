/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: the callbacks of connections whose bytes a server's protocol is given. */
#pragma once

#include "stream/stream.h"

/* Callbacks of a connection whose owner is a struct fb_binding. */
extern const struct fb_conn_ops fb_session_ops;

/* stream.c: Gives the connection its protocol's state, zeroed; false without memory. */
bool fb_session_state(struct fb_conn *conn, const struct fb_server *server);
