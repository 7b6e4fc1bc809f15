/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of a session_conn; session_conn_end.c has the end. */
#include "stream/session_conn.h"

struct fb_side *fb_side_create(struct fb_net *net)
{
    struct fb_side *session = fb_memory_alloc(net->memory, sizeof(*session));

    if (session == NULL)
        return NULL;
    *session = (struct fb_side) { .kind = SESSION_CONN_KIND };
    TAILQ_INIT(&session->children);
    LIST_INIT(&session->timers);
    return session;
}

struct fb_side *fb_side_make(struct fb_conn *conn)
{
    struct fb_side *session = fb_side_of(conn);

    if (session != NULL)
        return session;
    session = fb_side_create(conn->net);
    if (session == NULL) {
        fb_conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    session->conn = conn;
    conn->session = session;
    return session;
}
