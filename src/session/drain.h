/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of sessions in a worker without new clients. */
#pragma once

#include "session/stream.h"

/* Calls the protocols' `draining`, because no more clients will come, and closes idle sessions bit
 * by bit. `deadline` in ms; 0: none. */
void session_drain(struct stream *stream, uint64_t deadline);
/* Ends, in a draining worker, the sessions in which no byte has moved for a while. */
void session_drain_idle(struct stream *stream);
/* Lets the drain timer call `draining` of a session with new callbacks since the drain began. */
void session_drain_late(struct fb_conn *conn);
/* Whether the worker's own connections alone are left, all without a `draining`: a draining worker
 * ends the connections then. */
bool session_is_drained(const struct stream *stream);
/* fb_set_idle() */
void session_set_idle(struct fb_conn *conn, bool idle);
