/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a session_conn, or of the present use of a connection. */
#pragma once

#include "session/conn.h"

/* Frees the session_outgoing of a connection never made. */
void session_outgoing_discard(struct stream *stream, struct session_outgoing *outgoing);
/* Gives back the resources of the connection's present user. The children have ended. */
void session_conn_clear(struct session_conn *session);
/* Frees the connection's session_conn, at the connection's end. */
void session_conn_free(struct fb_conn *conn);
/* Ends the session's child connections. */
void session_conn_end_children(struct session_conn *session);
/* Ends a client's session with the present server, before the next server gets the client. */
void session_leave_server(struct fb_conn *conn);
/* fb_become(): sets new callbacks within a session, and offers them the unconsumed input. -1
 * without memory: the connection has been failed. */
int session_become(struct fb_conn *conn, const fb_ops *ops, void *state);
