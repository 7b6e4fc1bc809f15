/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a session_conn, or of its present use.
 *
 * Responsible for giving back all that a connection's user has set up, children included. Never
 * calls a protocol but through the end of a child. Invariant: after it nothing points to the
 * connection but its slot, and in the keepalive pool its list. */
#include "base/compiler.h"
#include "stream/limit_conn.h"
#include "stream/session_lifetime.h"
#include "stream/session_tries.h"
#include "stream/trunk.h"

/* Adds what a connection to a server has moved to the session of the client that it was made for,
 * directly or for another such connection. */
static void count_bytes(const struct fb_conn *conn, struct session_conn *parent)
{
    while (parent->conn->outgoing && parent->parent != NULL)
        parent = parent->parent;
    parent->server_n++;
    parent->from_servers += conn->received;
    parent->to_servers += conn->sent;
}

void session_conn_clear_use(struct session_conn *session)
{
    struct fb_conn *conn = session->conn;
    struct net *net = conn->net;

    CHECK_KIND(session, SESSION_CONN_KIND);
    assert(TAILQ_EMPTY(&session->children));
    if (session->tries != NULL)
        session_tries_clear(session);
    session_timers_clear(session);
    session_receive_clear(session);
    if (unlikely(session->lifetime != NULL))
        session_lifetime_clear(session);
    session_reads_clear(session);
    names_cancel_owned(&session->resolutions);
    timer_del(&net->loop, &session->frame_timer);
    session->frame_most = 0;
    net_release(net, &session->lasting);
    net_release(net, &session->temporary);
    session_name_drop(session);
    session->unanswered = 0;
    session->guesses = 0;
    session->own_timeout = session->has_become = session->untold = false;
    if (session->parent != NULL) {
        TAILQ_REMOVE(&session->parent->children, session, sibling);
        count_bytes(conn, session->parent);
    }
    session->parent = NULL;
    if (unlikely(session->is_own)) {
        TAILQ_REMOVE(&stream_of(conn)->own, session, sibling);
        session->is_own = false;
    }
}

void session_conn_clear(struct session_conn *session)
{
    session_conn_clear_use(session);
    if (unlikely(session->limits != NULL))
        limit_conn_release(session);
    session->limit_status = 0;
    net_release(session->conn->net, &session->kept);
    session->values = NULL;
    session->proxy = NULL;
    session->captures = NULL;
    session->passage = NULL;
    session->status = 0;
    session->more_received = session->more_sent = 0;
}

static COLD void free_rare(struct session_conn *session)
{
    struct fb_conn *conn = session->conn;

    if (session->trunk != NULL)
        trunk_leave(stream_of(conn), session);
    if (session->attached != NULL)
        chunk_free(&conn->net->chunks, session->attached);
}

void session_conn_free(struct fb_conn *conn)
{
    struct session_conn *session = session_conn_of(conn);

    assert(session != NULL && session->conn == conn);
    session_conn_clear(session);
    if (unlikely(session->is_rare))
        free_rare(session);
    session_conn_discard(stream_of(conn), session);
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

void session_conn_end_children(struct session_conn *session)
{
    struct session_conn *child;

    CHECK_KIND(session, SESSION_CONN_KIND);
    while ((child = TAILQ_FIRST(&session->children)) != NULL) {
        assert(child->parent == session && child->conn->outgoing);
        conn_end(child->conn, reason_to_end(child->conn));
    }
}
