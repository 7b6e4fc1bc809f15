/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a session_conn, of the present use, or of the present callbacks.
 *
 * Responsible for giving back everything set up by a connection's user, children included. Never
 * calls a protocol but for `closed`, of a child or of a server left behind. Invariant:
 * afterwards nothing points to the connection but the slot, and in the keepalive pool the list. */
#include "session/conn_end.h"

#include "base/compiler.h"
#include "net/conn_flush.h"
#include "session/frame.h"
#include "session/idle.h"
#include "session/log.h"
#include "session/read.h"
#include "session/record.h"
#include "session/timeouts.h"
#include "session/use.h"

/* Adds the bytes of a connection to a server to the record at the root of its session. */
static void count_bytes(const struct fb_conn *conn, struct session_conn *parent)
{
    struct session_record *record;

    while (parent->is_child)
        parent = parent->maker;
    record = session_record_create(parent);
    if (record == NULL)
        return;
    record->server_n++;
    record->from_servers += conn->received;
    record->to_servers += conn->sent;
}

/* Takes a connection to a server from the session's list, or the worker's. */
static inline void leave_maker(struct session_outgoing *outgoing)
{
    struct session_conn *session = &outgoing->session;
    struct fb_conn *conn = session->conn;

    if (likely(session->is_child)) {
        LIST_REMOVE(outgoing, sibling);
        if (session_keeps_slot(session->maker->conn))
            net_reserve(conn->net, 1);
        if (conn_logs(conn, LEVEL_INFO))
            count_bytes(conn, session->maker);
    } else if (session->is_own) {
        TAILQ_REMOVE(&stream_of(conn)->own, outgoing, among);
    }
}

/* Forgets the timers, reads, resolutions and the frame of the present callbacks. */
static void forget_use(struct session_use *use)
{
    session_timers_clear(use);
    session_reads_clear(use);
    names_cancel_owned(&use->resolutions);
    frame_forget(use);
}

static void free_use(struct session_conn *session)
{
    struct session_use *use = session->use;
    struct net *net = session->conn->net;

    CHECK_KIND(use, SESSION_USE_KIND);
    assert(use->session == session);
    forget_use(use);
    session_receive_clear(use);
    net_release(net, &use->temporary);
    session_name_drop(use);
    session->use = NULL;
    use->kind = 0;
    spares_give(&stream_of(session->conn)->uses, use);
}

/* Frees the memory and the session_use of the connection's present user. */
static inline void end_use(struct session_conn *session)
{
    assert(LIST_EMPTY(&session->children));
    if (unlikely(session->use != NULL))
        free_use(session);
    if (unlikely(session->lasting != NULL))
        net_release(session->conn->net, &session->lasting);
    if (session->is_outgoing)
        leave_maker(session_outgoing_of(session));
}

/* Frees the tries and the record of the session with the connection as root. */
static inline void end_session(struct session_conn *session)
{
    if (!session->is_outgoing && session_tries_of(session->conn) != NULL)
        stream_of(session->conn)->backends->clear_tries(session);
    if (unlikely(session_own_record(session) != NULL))
        session_record_free(session);
}

static void clear_use(struct session_conn *session)
{
    CHECK_KIND(session, SESSION_CONN_KIND);
    end_use(session);
    session->own_timeout = session->has_become = session->is_own = false;
    session->untold = session->told = false;
    if (session->is_child)
        session->known = NULL;
    session->is_child = false;
}

void session_conn_clear(struct session_conn *session)
{
    clear_use(session);
    end_session(session);
    session->status = 0;
}

void session_outgoing_discard(struct stream *stream, struct session_outgoing *outgoing)
{
    CHECK_KIND(&outgoing->session, SESSION_CONN_KIND);
    if (unlikely(outgoing->reuse != NULL))
        session_reuse_free(stream, &outgoing->session);
    outgoing->session.kind = 0;
    spares_give(&stream->outgoing, outgoing);
}

void session_conn_free(struct fb_conn *conn)
{
    struct session_conn *session = conn->session;

    assert(session->conn == conn && session->is_outgoing == conn->outgoing);
    end_use(session);
    end_session(session);
    if (session->is_outgoing) {
        session_outgoing_discard(stream_of(conn), session_outgoing_of(session));
    } else {
        session->kind = 0;
        spares_give(&stream_of(conn)->clients, session);
    }
    conn->session = NULL;
}

/* Returns the reason for a connection's end at the owner's end. */
static fb_reason reason_to_end(const struct fb_conn *conn)
{
    if (conn_has_failed(conn))
        return (fb_reason)conn->reason;
    if (conn->write == CONN_WRITE_ENDED && conn->read == CONN_READ_ENDED)
        return FB_FINISHED;
    return !conn_is_active(conn) && conn->unsent == 0 && !conn->source.held ? FB_FINISHED
                                                                            : FB_ABORTED;
}

void session_conn_end_children(struct session_conn *session)
{
    struct session_outgoing *child;

    CHECK_KIND(session, SESSION_CONN_KIND);
    while ((child = LIST_FIRST(&session->children)) != NULL) {
        struct fb_conn *conn = child->session.conn;

        assert(session_parent_of(&child->session) == session && conn->outgoing);
        conn_end(conn, reason_to_end(conn));
    }
}

void session_leave_server(struct fb_conn *conn)
{
    struct session_conn *session = conn->session;

    assert(!conn->outgoing && conn->session_phase > SESSION_PREREAD);
    session_conn_end_children(session);
    conn_leave_begin(conn);
    session_call_closed(conn, session_ops_of(conn), FB_FINISHED);
    conn_leave_end(conn);
    if (conn->idle)
        idle_leave(conn);
    clear_use(session);
    if (session_tries_of(conn) != NULL)
        stream_of(conn)->backends->clear_tries(session);
    session_record_reset(session);
    session->status = 0;
    session->end = 0;
    session->ops = NULL;
    conn->state = NULL;
    conn_deadline_clear(conn);
    conn_end_with_peer(conn, false);
    conn_resume(conn);
    session_set_phase(conn, SESSION_NEW);
    assert(session->use == NULL && !conn->limited);
}

/* Notes the operations a server connection was made with; -1 without memory. */
static int keep_first_ops(struct fb_conn *conn, struct session_conn *session)
{
    struct session_reuse *reuse = session_reuse_make(stream_of(conn), session);

    if (reuse == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return -1;
    }
    if (reuse->first_ops == NULL)
        reuse->first_ops = session->ops;
    return 0;
}

int session_become(struct fb_conn *conn, const fb_ops *ops, void *state)
{
    struct session_use *use = session_use_of(conn);
    struct session_conn *session;

    assert(ops != NULL && session_is_usable(conn));
    if (conn->phase == CONN_ENDING) /* `closed` is running */
        return -1;
    session = session_conn_make(conn);
    if (session == NULL)
        return -1;
    if (conn->outgoing && keep_first_ops(conn, session) == -1)
        return -1;
    if (!conn->outgoing && session->ops == NULL)
        stream_of(conn)->became_n++;
    if (use != NULL)
        forget_use(use);
    session->ops = ops;
    session->has_become = true;
    session->told = false;
    conn->state = state;
    if (stream_of(conn)->draining)
        session_drain_late(conn);
    conn_offer_again(conn);
    return 0;
}
