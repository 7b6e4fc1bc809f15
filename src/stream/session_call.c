/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a protocol that more than one file makes, each within a heartbeat. Never called for a
 * connection whose protocol has been told `closed`. */
#include "stream/session_call.h"

void fb_session_ended(struct fb_conn *conn, const fb_ops *ops, fb_reason reason)
{
    if (!FB_HAS(ops, closed))
        return;
    fb_callback_begin(conn, FB_CALLBACK_CLOSED);
    ops->closed(conn, conn->state, reason);
    fb_callback_end(conn);
}

void fb_session_draining(struct fb_conn *conn)
{
    const struct fb_stream *stream = fb_stream_of(conn);
    const fb_ops *ops = fb_ops_of(conn);
    uint64_t now = conn->net->loop.clock.mono_ms, deadline = 0;

    assert(stream->draining && conn_is_active(conn));
    if (stream->deadline_at != 0)
        deadline = stream->deadline_at > now ? stream->deadline_at - now : 1;
    if (!FB_HAS(ops, draining))
        return;
    fb_callback_begin(conn, FB_CALLBACK_DRAINING);
    ops->draining(conn, conn->state, deadline);
    fb_callback_end(conn);
}
