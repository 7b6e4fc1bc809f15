/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of connections in references: numbers that a worker gives once and never again.
 *
 * Responsible for finding a connection by a name that came from elsewhere. Never trusts one: a name
 * whose connection has ended is not found. Invariant: a session_conn is in the tree if its name is
 * not 0. */
#include "stream/session_conn.h"

static int compare_names(const struct fb_side *a, const struct fb_side *b)
{
    return (a->name > b->name) - (a->name < b->name);
}

RB_GENERATE_INTERNAL(fb_named, fb_side, named, compare_names, static __attribute__((unused)))

uint64_t fb_session_name(struct fb_conn *conn)
{
    struct fb_stream *stream = fb_stream_of(conn);
    struct fb_side *session = fb_side_make(conn);

    if (session == NULL)
        return 0;
    if (session->name == 0) {
        session->name = ++stream->last_name;
        RB_INSERT(fb_named, &stream->named, session);
    }
    assert(session->name <= stream->last_name);
    return session->name;
}

struct fb_conn *fb_session_find(struct fb_stream *stream, uint64_t name)
{
    struct fb_side key = { .name = name };
    struct fb_side *session = RB_FIND(fb_named, &stream->named, &key);

    if (session == NULL)
        return NULL;
    CHECK_KIND(session, SESSION_CONN_KIND);
    assert(session->conn->session == session);
    return session->conn;
}

void session_name_drop(struct fb_side *session)
{
    if (session->name != 0)
        RB_REMOVE(fb_named, &fb_stream_of(session->conn)->named, session);
    session->name = 0;
}
