/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a session_conn, or of its present use.
 *
 * Responsible for giving back all that a connection's user has set up, children included. Never
 * calls a protocol but through the end of a child. Invariant: after it nothing points to the
 * connection but its slot, and in the keepalive pool its list. */
#include "stream/session_conn.h"

void fb_side_clear(struct fb_side *session)
{
    struct fb_conn *conn = session->conn;
    struct fb_net *net = conn->net;

    CHECK_KIND(session, SESSION_CONN_KIND);
    assert(TAILQ_EMPTY(&session->children));
    session_timers_clear(session);
    fb_timer_del(&net->loop, &session->frame_timer);
    session->frame_most = 0;
    fb_net_release(net, &session->lasting);
    fb_net_release(net, &session->temporary);
    session_name_drop(session);
    session->unanswered = 0;
    session->own_timeout = false;
    if (session->parent != NULL)
        TAILQ_REMOVE(&session->parent->children, session, sibling);
    session->parent = NULL;
}

void fb_side_free(struct fb_conn *conn)
{
    struct fb_side *session = fb_side_of(conn);

    if (session == NULL)
        return;
    assert(session->conn == conn);
    fb_side_clear(session);
    session->kind = 0;
    fb_memory_release(conn->net->memory, session);
    conn->session = NULL;
}

/* Returns why a connection ends with its owner: for a reason of its own, if it had one. */
static fb_reason reason_to_end(const struct fb_conn *conn)
{
    if (conn_has_failed(conn))
        return (fb_reason)conn->reason;
    if (conn->write == CONN_WRITE_ENDED && conn->read == CONN_READ_ENDED)
        return FB_FINISHED;
    return !conn_is_active(conn) && conn->unsent == 0 ? FB_FINISHED : FB_ABORTED;
}

void fb_session_end_children(struct fb_side *session)
{
    struct fb_side *child;

    CHECK_KIND(session, SESSION_CONN_KIND);
    while ((child = TAILQ_FIRST(&session->children)) != NULL) {
        assert(child->parent == session && child->conn->outgoing);
        fb_conn_end(child->conn, reason_to_end(child->conn));
    }
}
