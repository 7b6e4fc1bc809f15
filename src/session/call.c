/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a protocol that more than one file makes, each within a heartbeat. Never called for a
 * connection whose `closed` has run. */
#include "session/call.h"

void session_call_closed(struct fb_conn *conn, const fb_ops *ops, fb_reason reason)
{
    if (!SESSION_HAS(ops, closed))
        return;
    session_callback_begin(conn, CALLBACK_CLOSED);
    ops->closed(conn, conn->state, reason);
    session_callback_end(conn);
}

void session_call_first_byte(struct fb_conn *conn, conn_first_byte call)
{
    session_callback_begin(conn, CALLBACK_FIRST_BYTE);
    call(conn, conn->state);
    session_callback_end(conn);
}

void session_call_draining(struct fb_conn *conn)
{
    const struct stream *stream = stream_of(conn);
    uint64_t now = conn->net->loop.clock.mono_ms, deadline = 0;

    assert(stream->draining && conn_is_active(conn));
    if (stream->deadline_at != 0)
        deadline = stream->deadline_at > now ? stream->deadline_at - now : 1;
    session_call_draining_in(conn, deadline);
}

void session_call_draining_in(struct fb_conn *conn, uint64_t deadline)
{
    const fb_ops *ops = session_ops_of(conn);

    if (!SESSION_HAS(ops, draining))
        return;
    session_callback_begin(conn, CALLBACK_DRAINING);
    ops->draining(conn, conn->state, deadline);
    session_callback_end(conn);
}
