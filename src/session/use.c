/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of a session_use, and the timers of protocols' connections: any number a connection,
 * each with an id of the protocol's.
 *
 * Responsible for running the protocol's `timer` once for each that was set. Never runs it for a
 * connection that closes or is piped. conn_end.c frees a session_use. */
#include "session/use.h"

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

void session_timers_clear(struct session_use *use)
{
    struct net *net = use->session->conn->net;

    id_timers_clear(&use->timers, &net->loop, net->memory);
}

static void call_timer(struct fb_conn *conn, uint32_t id)
{
    if (!conn_is_active(conn) || conn->pipe != NULL || !SESSION_HAS(session_ops_of(conn), timer))
        return;
    session_callback_begin(conn, CALLBACK_TIMER);
    session_ops_of(conn)->timer(conn, conn->state, id);
    session_callback_end(conn);
}

static void timer_expired(struct loop *loop, struct timer *expired)
{
    struct session_use *use = container_of(id_timers_owner(expired), struct session_use, timers);
    struct fb_conn *conn = use->session->conn;
    struct net *net = conn->net;
    uint32_t id;

    CHECK_KIND(use, SESSION_USE_KIND);
    assert(session_is_usable(conn));
    if (!id_timers_take(expired, loop, net->memory, &id))
        return;
    call_timer(conn, id);
    net_flush(net);
}

void session_timer_set(struct fb_conn *conn, uint32_t id, uint64_t ms)
{
    struct session_use *use = session_use_make(conn);
    struct net *net = conn->net;

    assert(conn_is_owned(conn));
    if (use != NULL &&
        id_timers_set(&use->timers, &net->loop, net->memory, timer_expired, id, ms) == -1)
        conn_fail(conn, FB_NO_MEMORY);
}

void session_timer_cancel(struct fb_conn *conn, uint32_t id)
{
    struct session_use *use = session_use_of(conn);

    if (use != NULL)
        id_timers_cancel(&use->timers, &conn->net->loop, conn->net->memory, id);
}
