/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of connections in references: numbers that a worker gives once and never again.
 *
 * Responsible for finding a connection by a name that came from elsewhere. Never trusts one: a name
 * whose connection has ended is not found. Invariant: a session_conn is in the tree if its name is
 * not 0. */
#include "stream/session_conn.h"

static int compare_names(const struct session_conn *a, const struct session_conn *b)
{
    return (a->name > b->name) - (a->name < b->name);
}

RB_GENERATE_INTERNAL(
    session_names, session_conn, named, compare_names, static __attribute__((unused)))

uint64_t session_name(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);
    struct session_conn *session = session_conn_make(conn);

    if (session == NULL)
        return 0;
    if (session->name == 0) {
        session->name = ++stream->last_name;
        RB_INSERT(session_names, &stream->named, session);
    }
    assert(session->name <= stream->last_name);
    return session->name;
}

struct fb_conn *session_find(struct stream *stream, uint64_t name)
{
    struct session_conn key = { .name = name };
    struct session_conn *session = RB_FIND(session_names, &stream->named, &key);

    if (session == NULL)
        return NULL;
    CHECK_KIND(session, SESSION_CONN_KIND);
    assert(session->conn->session == session);
    return session->conn;
}

void session_name_drop(struct session_conn *session)
{
    if (session->name != 0)
        RB_REMOVE(session_names, &stream_of(session->conn)->named, session);
    session->name = 0;
}
