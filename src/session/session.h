/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: the callbacks of connections with a server's protocol. */
#pragma once

#include "session/stream.h"

/* Makes a connection of `fd`, for the caller to open; NULL without a slot, and `fd` is closed. */
struct fb_conn *session_accept(
    struct stream *stream, struct port *port, int fd, const struct sockaddr *peer);
/* Begins a client's session, perhaps unknown to the protocol yet; false: the connection ends. */
bool session_begin(struct fb_conn *conn);
/* Goes on with a client after the PROXY header, or preread, by server->proceed. */
void session_proceed(struct fb_conn *conn);
/* Gives a client to the server of another binding, before the protocol has the client. */
void session_move(struct fb_conn *conn, struct binding *binding);
/* Admits the client, and calls the protocol's `opened`. */
void session_serve(struct fb_conn *conn);

/* Callbacks of a connection owned by a struct binding. */
extern const struct conn_ops session_conn_ops;
/* Callbacks of operations of rooms above, too; session_ignore() ignores an event. */
void session_ignore(struct fb_conn *conn);
void session_closed(struct fb_conn *conn, fb_reason reason);
void session_failed(struct fb_conn *conn, int error);
void session_describe(const struct fb_conn *conn, struct log_line *line, char text[ADDRESS_TEXT]);
