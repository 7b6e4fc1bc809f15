/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of a session_conn; conn_end.c has the end. */
#include "session/conn.h"

#include <errno.h>

/* A relayed client costs one of each. */
static_assert(sizeof(struct session_conn) <= 72, "a session has become dearer");
static_assert(sizeof(struct session_outgoing) <= 104, "a connection to a server has become dearer");
static_assert(EADDRNOTAVAIL <= UINT16_MAX, "an errno has 16 bits");

static inline void init_session(struct session_conn *session)
{
    memory_clear(session, sizeof(*session));
    session->kind = SESSION_CONN_KIND;
}

struct session_outgoing *session_outgoing_create(struct stream *stream)
{
    struct session_outgoing *outgoing = spares_take(&stream->outgoing);

    if (outgoing == NULL)
        return NULL;
    init_session(&outgoing->session);
    outgoing->session.is_outgoing = true;
    outgoing->reuse = NULL;
    outgoing->keep_ms = 0;
    outgoing->log_level = 0;
    return outgoing;
}

struct session_conn *session_conn_add(struct fb_conn *conn)
{
    struct session_conn *session = spares_take(&stream_of(conn)->sessions);

    assert(conn->session == NULL && !conn->outgoing);
    if (session == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    init_session(session);
    session->conn = conn;
    conn->session = session;
    return session;
}
