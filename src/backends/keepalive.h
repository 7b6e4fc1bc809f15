/* SPDX-License-Identifier: BSD-2-Clause */
/* The keepalive pool: open connections to servers that no session uses, for the next that wants
 * one.
 *
 * Responsible for them from the end of one owner to the beginning of the next, or to their end: any
 * input ends one. Never connects. Invariant: the pool's list holds the connections in
 * SESSION_KEEPALIVE, the most recently used in front. */
#pragma once

#include "session/conn.h"

/* fb_keep() */
void keepalive_keep(struct fb_conn *conn, uint64_t ms);
/* conn_ops.keepalive: the connection leaves its owner, whose `closed` runs, for the pool. False
 * where there is no memory for that, or the worker drains: then it is to be ended. */
bool keepalive_put(struct fb_conn *conn);
/* Takes a connection to the target, with the same operations, out of the pool; NULL where there is
 * none. The caller reopens it for its new owner. */
struct fb_conn *keepalive_get(
    struct stream *stream, const struct fb_target *target, const fb_ops *ops);
/* Do the same for any connection of a trunk; keepalive_find() leaves it in the pool. */
struct fb_conn *keepalive_find(const struct trunk *trunk);
/* Whether one was not found because it has an event that has not run, perhaps without a reason. */
bool keepalive_may_be_found(const struct trunk *trunk);
struct fb_conn *keepalive_take(struct stream *stream, const struct trunk *trunk);
/* Whether a connection's callbacks are the pool's. */
bool keepalive_has(const struct fb_conn *conn);
/* Closes the connections of the pool. */
void keepalive_close_all(struct stream *stream);
/* Ends the connection of the pool that was not used for the longest time, to free a slot; false
 * where the pool is empty. */
bool keepalive_evict(struct stream *stream);
