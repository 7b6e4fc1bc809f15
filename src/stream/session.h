/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: the callbacks of connections whose bytes a server's protocol is given. */
#pragma once

#include "stream/stream.h"

/* Callbacks of a connection whose owner is a struct binding; of a client's until it has opened,
 * where its protocol may pass it to another server; and of a client's until its PROXY header is
 * whole, where its binding wants one. */
extern const struct conn_ops session_conn_ops, session_pass_ops, session_proxy_ops;

/* stream.c: Gives the connection its protocol's state, zeroed; false without memory. */
bool stream_alloc_state(struct fb_conn *conn, const struct server *server);
