/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of a session_conn; session_conn_end.c has the end. */
#include "stream/session_conn.h"

#include <string.h>

/* A relayed client costs two of them. */
static_assert(sizeof(struct session_conn) <= 104, "a session has become dearer");

/* session_conn_create() clears a struct in two parts, of which the second begins here. */
#define SECOND_PART offsetof(struct session_conn, children)

struct session_conn *session_conn_create(struct stream *stream)
{
    struct session_conn *session = spares_take(&stream->sessions);

    if (session == NULL)
        return NULL;
    /* two parts: the compiler would clear the whole by an instruction that is slow to begin */
    memset(session, 0, SECOND_PART);
    memset((char *)session + SECOND_PART, 0, sizeof(*session) - SECOND_PART);
    session->kind = SESSION_CONN_KIND;
    return session;
}

void session_conn_discard(struct stream *stream, struct session_conn *session)
{
    CHECK_KIND(session, SESSION_CONN_KIND);
    session->kind = 0;
    spares_give(&stream->sessions, session);
}

struct session_conn *session_conn_add(struct fb_conn *conn)
{
    struct session_conn *session = session_conn_create(stream_of(conn));

    assert(conn->session == NULL);
    if (session == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    session->conn = conn;
    conn->session = session;
    return session;
}
