/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: the callbacks of connections whose bytes a server's protocol is given. */
#pragma once

#include "stream/stream.h"

/* Callbacks of a connection whose owner is a struct binding. */
extern const struct conn_ops session_conn_ops;

/* stream.c: Gives the connection its protocol's state, zeroed; false without memory. */
bool stream_alloc_state(struct fb_conn *conn, const struct server *server);
