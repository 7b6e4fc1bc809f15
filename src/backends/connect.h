/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers: made, taken from the keepalive pool, waited for.
 *
 * Responsible for what such a connection gets from the session that it is made for, or from its
 * options. */
#pragma once

#include "session/conn.h"

/* Time in which a server has to answer a connect(). */
#define BACKEND_TIMEOUT_MS 60000
/* fb_connect(), with the time in which the server has to answer, and the level of the
 * line about a failure. */
struct fb_conn *backend_connect(struct fb_conn *owner, const struct fb_target *target,
    const fb_ops *ops, void *state, uint64_t timeout, uint8_t log_level);
/* Asks for idle connections to be closed by the flush that follows the running callback, and lets
 * as many be made now; `owner`, or NULL, keeps what it uses. */
void backend_make_room(struct stream *stream, const struct fb_conn *owner);
/* Table of what sessions ask of connections to servers, for stream_init(). */
extern const struct session_backends backends_ops;
