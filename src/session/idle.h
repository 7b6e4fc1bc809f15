/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle connections: those that their protocols have marked so, in the order in which they were last
 * marked, and the closing of a few where there is no room.
 *
 * Nothing here runs a callback, but for the end of a connection of the keepalive pool, which has
 * none. */
#pragma once

#include "session/stream.h"

/* Puts a connection at the end of the list, and takes it out. */
void idle_enter(struct fb_conn *conn);
void idle_leave(struct fb_conn *conn);

/* Whether a connection could be closed to make room: of the keepalive pool, or an idle one. */
bool idle_can_reclaim(const struct stream *stream);
/* Ends the connection of the keepalive pool that was not used for the longest time, or else closes
 * a few idle ones, the longest idle first, which go in the next flush; not `user`, if any, or one
 * that it was made for. Returns how many. `what` says to the log what is short. */
unsigned idle_reclaim(struct stream *stream, const struct fb_conn *user, const char *what);

/* Asserts that the list is in order. */
void idle_check(const struct stream *stream);
