/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers that are made with options, and the callbacks of all before they are
 * open. */
#pragma once

#include "session/conn.h"

/* fb_connect_with(). The target is the caller's for the call alone, unless it is lasting. */
struct fb_conn *backend_connect_with(struct stream *stream, struct binding *own,
    const struct fb_target *target, bool lasting, const fb_ops *ops, void *state,
    const fb_connect_options *options);
/* Begins a connect() for which there was no descriptor, or no place. */
void backend_connect_again(struct fb_conn *conn);
/* Ends a connection whose server has not answered in time. */
void backend_connect_expired(struct fb_conn *conn);
/* Logs, with the level that was asked for. */
void backend_connect_failed(struct fb_conn *conn, int error, enum io_step step);
