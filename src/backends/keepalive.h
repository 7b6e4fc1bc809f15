/* SPDX-License-Identifier: BSD-2-Clause */
/* The keepalive pool: open connections to servers, unused by sessions, for the next session to the
 * server.
 *
 * Responsible for a connection from the end of an owner to the beginning of the next, or to the
 * connection's end: any input ends the connection. Never connects. Invariant: the pool's list
 * holds the connections in SESSION_KEEPALIVE, the most recently used in front. */
#pragma once

#include "session/conn.h"

/* fb_keep() */
void keepalive_keep(struct fb_conn *conn, uint64_t ms);
/* conn_ops.keepalive: moves the connection to the pool. False without memory, or while draining. */
bool keepalive_put(struct fb_conn *conn);
/* Takes a connection to the target out of the pool, to be reopened for the new owner; or NULL. */
struct fb_conn *keepalive_get(
    struct stream *stream, const struct fb_target *target, const fb_ops *ops);
/* Do so for any connection of a trunk; keepalive_find() leaves the connection in the pool. */
struct fb_conn *keepalive_find(const struct trunk *trunk);
/* Whether keepalive_find() skipped a connection with a pending event, perhaps without a reason. */
bool keepalive_may_be_found(const struct trunk *trunk);
struct fb_conn *keepalive_take(struct stream *stream, const struct trunk *trunk);
/* Whether a connection's callbacks are the pool's. */
bool keepalive_has(const struct fb_conn *conn);
/* Closes the connections of the pool. */
void keepalive_close_all(struct stream *stream);
/* Ends the pool's longest unused connection, to free a slot; false where the pool is empty. */
bool keepalive_evict(struct stream *stream);
