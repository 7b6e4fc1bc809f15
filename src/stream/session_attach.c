/* SPDX-License-Identifier: BSD-2-Clause */
/* A pointer that stays with a connection to a server from one user to the next. Its release runs
 * from the loop, once, after the last user's `closed`. Never looks at what it points to. */
#include "stream/session_conn.h"

int session_attach(struct fb_conn *conn, void *p, void (*release)(void *p))
{
    struct session_conn *session = session_conn_of(conn);
    struct chunk *chunk = session->attached;

    assert(conn->outgoing && release != NULL);
    if (conn->phase == CONN_ENDING)
        return -1;
    if (chunk == NULL)
        chunk = chunk_create_foreign(&conn->net->chunks, CHUNK_REF, p, 0);
    if (chunk == NULL)
        return -1;
    chunk->ref.release = release;
    chunk->ref.arg = p;
    chunk->protocol = heartbeat_running_protocol(conn->net->heartbeat);
    session->attached = chunk;
    session->is_rare = true;
    return 0;
}

void *session_attached(const struct fb_conn *conn)
{
    const struct session_conn *session = session_conn_of(conn);

    return session->attached != NULL ? session->attached->ref.arg : NULL;
}
