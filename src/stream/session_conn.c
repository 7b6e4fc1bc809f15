/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of a session_conn; session_conn_end.c has the end. */
#include "stream/session_conn.h"

struct session_conn *session_conn_create(struct stream *stream)
{
    struct session_conn *session = spares_take(&stream->sessions);

    if (session == NULL)
        return NULL;
    *session = (struct session_conn) { .kind = SESSION_CONN_KIND };
    TAILQ_INIT(&session->children);
    TAILQ_INIT(&session->reads);
    RB_INIT(&session->timers);
    return session;
}

void session_conn_discard(struct stream *stream, struct session_conn *session)
{
    CHECK_KIND(session, SESSION_CONN_KIND);
    session->kind = 0;
    spares_give(&stream->sessions, session);
}

struct session_conn *session_conn_make(struct fb_conn *conn)
{
    struct session_conn *session = session_conn_of(conn);

    if (session != NULL)
        return session;
    session = session_conn_create(stream_of(conn));
    if (session == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    session->conn = conn;
    conn->session = session;
    return session;
}

void *session_keep(struct fb_conn *conn, size_t n)
{
    struct fb_conn *client = session_client_of(conn);
    struct session_conn *session = session_conn_make(client);

    return session == NULL ? NULL : net_alloc(client->net, &session->kept, n);
}
