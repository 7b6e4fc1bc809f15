/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of a session_use, and its end. */
#include "session/use.h"

#include "session/session.h"

struct session_use *session_use_create(struct fb_conn *conn)
{
    struct session_conn *session = session_conn_make(conn);
    struct session_use *use;

    if (session == NULL || session->use != NULL)
        return session != NULL ? session->use : NULL;
    use = spares_take(&stream_of(conn)->uses);
    if (use == NULL)
        return NULL;
    *use = (struct session_use) { .kind = SESSION_USE_KIND, .session = session };
    TAILQ_INIT(&use->reads);
    RB_INIT(&use->timers);
    return session->use = use;
}

struct session_use *session_use_make(struct fb_conn *conn)
{
    struct session_use *use = session_use_create(conn);

    if (use == NULL)
        conn_fail(conn, FB_NO_MEMORY);
    return use;
}

void session_use_free(struct session_conn *session)
{
    struct session_use *use = session->use;
    struct net *net = session->conn->net;

    CHECK_KIND(use, SESSION_USE_KIND);
    assert(use->session == session);
    session_timers_clear(use);
    session_receive_clear(use);
    session_reads_clear(use);
    names_cancel_owned(&use->resolutions);
    frame_forget(use);
    net_release(net, &use->temporary);
    session_name_drop(use);
    session->use = NULL;
    use->kind = 0;
    spares_give(&stream_of(session->conn)->uses, use);
}

void session_use_check(const struct session_conn *session)
{
    const struct session_use *use = session->use;
    const struct fb_conn *conn = session->conn;

    CHECK_KIND(use, SESSION_USE_KIND);
    assert(use->session == session && !session_is_keepalive(conn));
    assert(use->name == 0 || session_name_was_given(stream_of(conn), use->name));
    assert(use->name != 0 || use->unanswered == 0);
    assert(use->frame.most > 0 || !timer_is_set(&use->frame.timer));
    assert(use->receive == NULL || conn->ops != &session_conn_ops);
}
