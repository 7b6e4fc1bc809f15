/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of a session_reuse, its end, and what protocols attach to a connection to a server. */
#include "session/reuse.h"

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
    reuse = session_reuse_make(stream_of(conn), session_conn_of(conn));
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
    const struct session_reuse *reuse = session_reuse_of(session_conn_of(conn));

    return reuse != NULL && reuse->attached != NULL ? reuse->attached->ref.arg : NULL;
}
