/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates session_conn and session_reuse, and calls the protocol's callbacks. Never calls for a
 * connection after `closed`. conn_end.c has the end. */
#include "session/conn.h"

#include <errno.h>

/* A relayed client costs a session_client and a session_outgoing. */
static_assert(sizeof(struct session_client) <= 72, "a session has become dearer");
static_assert(sizeof(struct session_outgoing) <= 104, "a connection to a server has become dearer");
static_assert(EADDRNOTAVAIL <= UINT16_MAX, "an errno has 16 bits");

struct session_outgoing *session_outgoing_create(struct stream *stream)
{
    struct session_outgoing *outgoing = spares_take(&stream->outgoing);

    if (outgoing == NULL)
        return NULL;
    memory_clear(&outgoing->session, sizeof(outgoing->session));
    outgoing->session.kind = SESSION_CONN_KIND;
    outgoing->session.is_outgoing = true;
    outgoing->target = NULL;
    outgoing->reuse = NULL;
    outgoing->keep_ms = 0;
    outgoing->log_level = 0;
    return outgoing;
}

struct session_conn *session_conn_add(struct fb_conn *conn)
{
    struct session_client *client = spares_take(&stream_of(conn)->clients);

    assert(conn->session == NULL && !conn->outgoing);
    if (client == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    memory_clear(&client->session, sizeof(client->session));
    client->session.kind = SESSION_CONN_KIND;
    client->tries = NULL;
    client->session.conn = conn;
    conn->session = &client->session;
    return &client->session;
}

struct session_reuse *session_reuse_make(struct stream *stream, struct session_conn *session)
{
    struct session_reuse *reuse = session_reuse_of(session);

    if (reuse != NULL)
        return reuse;
    reuse = memory_alloc(stream->net.memory, sizeof(*reuse));
    if (reuse != NULL)
        *reuse = (struct session_reuse) { .session = session };
    return session_outgoing_of(session)->reuse = reuse;
}

void session_reuse_free(struct stream *stream, struct session_conn *session)
{
    struct session_reuse *reuse = session_reuse_of(session);

    assert(reuse->session == session);
    if (reuse->trunk != NULL)
        stream->backends->leave_trunk(stream, reuse);
    if (reuse->attached != NULL)
        chunk_free(&stream->net.chunks, reuse->attached);
    session_outgoing_of(session)->reuse = NULL;
    memory_release(stream->net.memory, reuse);
}

int session_attach(struct fb_conn *conn, void *p, void (*release)(void *p))
{
    struct session_reuse *reuse;
    struct chunk *chunk;

    assert(conn->outgoing && release != NULL);
    if (conn->phase == CONN_ENDING)
        return -1;
    reuse = session_reuse_make(stream_of(conn), conn->session);
    if (reuse == NULL)
        return -1;
    chunk = reuse->attached;
    if (chunk == NULL)
        chunk = chunk_create_foreign(&conn->net->chunks, CHUNK_REF, p, 0);
    if (chunk == NULL)
        return -1;
    chunk->ref.release = release;
    chunk->ref.arg = p;
    chunk->protocol = heartbeat_running_protocol(conn->net->heartbeat);
    reuse->attached = chunk;
    return 0;
}

void *session_attached(const struct fb_conn *conn)
{
    const struct session_reuse *reuse = session_reuse_of(conn->session);

    return reuse != NULL && reuse->attached != NULL ? reuse->attached->ref.arg : NULL;
}

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
    if (conn->outgoing)
        stream_of(conn)->backends->first_byte(conn);
    if (call == NULL)
        return;
    session_callback_begin(conn, CALLBACK_FIRST_BYTE);
    call(conn, conn->state);
    session_callback_end(conn);
}

void session_call_tls_started(struct fb_conn *conn)
{
    const fb_ops *ops = session_ops_of(conn);

    if (!SESSION_HAS(ops, tls_started))
        return;
    session_callback_begin(conn, CALLBACK_TLS_STARTED);
    ops->tls_started(conn, conn->state);
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
