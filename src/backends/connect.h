/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers: made, taken from the keepalive pool, waited for. */
#pragma once

#include "session/conn.h"

/* Time for a server to answer a connect(). */
#define BACKEND_TIMEOUT_MS 60000
/* fb_connect(), with the time for the server to answer, and the level of a failure. */
struct fb_conn *backend_connect(struct fb_conn *owner, const struct fb_target *target,
    const fb_ops *ops, void *state, uint64_t timeout, uint8_t log_level);
/* Whether these options need a trunk: else a lasting target of an owner is backend_connect()'s. */
bool backend_connect_wants_trunk(const fb_connect_options *options);
/* fb_connect_with(). The target is the caller's for the call alone, unless lasting. */
struct fb_conn *backend_connect_with(struct stream *stream, struct binding *own,
    const struct fb_target *target, bool lasting, const fb_ops *ops, void *state,
    const fb_connect_options *options);
/* Begins a connect() put off for lack of a descriptor, or of a place. */
void backend_connect_again(struct fb_conn *conn);
/* Ends a connection without the server's answer in time. */
void backend_connect_expired(struct fb_conn *conn);
/* Logs a failure, with the level asked for. */
void backend_connect_failed(struct fb_conn *conn, int error, enum io_step step);
/* Table of the sessions' calls on connections to servers, for stream_init(). */
extern const struct session_backends backends_ops;
