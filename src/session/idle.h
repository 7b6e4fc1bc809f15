/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle connections, as marked by protocols, in the order of the last marks, and the closing of a
 * few where there is no room.
 *
 * Nothing here runs a callback, but for the end of a connection of the keepalive pool, without
 * callbacks. */
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
