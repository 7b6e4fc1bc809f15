/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: the callbacks of connections whose bytes a server's protocol is given. */
#pragma once

#include "session/stream.h"

/* Starts a session on `fd`, which it owns from now on; the caller has to open its connection. NULL
 * without a free slot, and then the descriptor is closed. */
struct fb_conn *session_start(
    struct stream *stream, struct port *port, int fd, const struct sockaddr *peer);
/* Begins a client's session, of which its protocol may hear later; false: it ends. */
bool session_note_start(struct fb_conn *conn);
/* Goes on with a client whose PROXY header has come, or whose first bytes have been looked at, as
 * its server wants it (server->begin). */
void session_begin(struct fb_conn *conn);
/* Gives such a client to its server's protocol. */
void session_enter(struct fb_conn *conn);

/* Callbacks of a connection whose owner is a struct binding. */
extern const struct conn_ops session_conn_ops;
/* Callbacks of a binding->ops of a room above, too. */
void session_closed(struct fb_conn *conn, fb_reason reason);
void session_failed(struct fb_conn *conn, int error);
void session_describe(const struct fb_conn *conn, struct log_line *line, char text[ADDRESS_TEXT]);
