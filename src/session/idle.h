/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle connections, as marked by protocols, and the end of sessions of a draining worker.
 *
 * Runs no callback, but for the end of a connection of the keepalive pool, without callbacks, and
 * `draining`. */
#pragma once

#include "session/stream.h"

/* Add a connection to the end of the list, and remove it. */
void idle_enter(struct fb_conn *conn);
void idle_leave(struct fb_conn *conn);

/* Whether a connection could be closed to make room: of the keepalive pool, or an idle one. */
bool idle_can_reclaim(const struct stream *stream);
/* Ends the connection of the keepalive pool unused for the longest time, or else closes a few idle
 * connections in the next flush, the longest idle first; spares `user`, if any, and the ancestors
 * of `user`. Returns the number. `what` tells the log of the shortage. */
unsigned idle_reclaim(struct stream *stream, const struct fb_conn *user, const char *what);

/* Asserts that the list is in order. */
void idle_check(const struct stream *stream);

/* Calls the protocols' `draining`, and closes idle sessions bit by bit. `deadline`: ms, or 0. */
void session_drain(struct stream *stream, uint64_t deadline);
/* Ends, in a draining worker, the sessions in which no byte has moved for a while. */
void session_drain_idle(struct stream *stream);
/* Lets the drain timer call `draining` of a session with new callbacks since the drain began. */
void session_drain_late(struct fb_conn *conn);
/* Whether only own connections without a `draining` are left: a draining worker ends them then. */
bool session_is_drained(const struct stream *stream);
/* fb_set_idle() */
void session_set_idle(struct fb_conn *conn, bool idle);
