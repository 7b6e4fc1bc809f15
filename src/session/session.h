/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: the callbacks of connections whose bytes a server's protocol is given. */
#pragma once

#include "session/stream.h"

/* Callbacks of a connection whose owner is a struct binding. */
extern const struct conn_ops session_conn_ops;
/* Those of them that a room above has for callbacks of its own (binding->ops), too. */
void session_closed(struct fb_conn *conn, fb_reason reason);
void session_failed(struct fb_conn *conn, int error);
void session_describe(const struct fb_conn *conn, struct log_line *line, char text[ADDRESS_TEXT]);

/* stream.c: Gives the connection its protocol's state, zeroed; false without memory. */
bool stream_alloc_state(struct fb_conn *conn, const struct server *server);
