/* SPDX-License-Identifier: BSD-2-Clause */
/* The timers of protocols: any number a connection, each with an id of the protocol's.
 *
 * Responsible for running the protocol's `timer` once for each that was set. Never runs it for a
 * connection that closes or is piped. Invariant: a session_timer is in its session_conn's tree as
 * long as it lives, and its loop timer is set, for `due` or earlier. */
#include "stream/session_conn.h"

#define SESSION_TIMER_KIND KIND('S', 'T', 'I', 'M')

struct session_timer {
    RB_ENTRY(session_timer) node;
    struct timer timer;
    struct session_conn *session;
    uint64_t due; /* monotonic ms */
    uint32_t id;
    unsigned kind;
};

static int compare_ids(const struct session_timer *a, const struct session_timer *b)
{
    return (a->id > b->id) - (a->id < b->id);
}

RB_GENERATE_INTERNAL(
    session_timers, session_timer, node, compare_ids, static __attribute__((unused)))

static void free_timer(struct session_timer *timer)
{
    struct net *net = timer->session->conn->net;

    CHECK_KIND(timer, SESSION_TIMER_KIND);
    timer_del(&net->loop, &timer->timer);
    RB_REMOVE(session_timers, &timer->session->timers, timer);
    timer->kind = 0;
    memory_release(net->memory, timer);
}

void session_timers_clear(struct session_conn *session)
{
    while (!RB_EMPTY(&session->timers))
        free_timer(RB_ROOT(&session->timers));
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
    struct session_timer *timer = container_of(expired, struct session_timer, timer);
    struct fb_conn *conn = timer->session->conn;
    struct net *net = conn->net;
    uint32_t id = timer->id;

    CHECK_KIND(timer, SESSION_TIMER_KIND);
    CHECK_KIND(timer->session, SESSION_CONN_KIND);
    assert(conn_is_owned(conn) && !session_is_keepalive(conn));
    if (timer->due > loop->clock.mono_ms) { /* moved back since it was set */
        timer_set(loop, expired, timer->due - loop->clock.mono_ms);
        return;
    }
    free_timer(timer);
    call_timer(conn, id);
    net_flush(net);
}

static struct session_timer *find_timer(const struct fb_conn *conn, uint32_t id)
{
    struct session_conn *session = session_conn_of(conn);
    struct session_timer wanted = { .id = id };

    return session == NULL ? NULL : RB_FIND(session_timers, &session->timers, &wanted);
}

/* Returns NULL without memory, and then the connection has been failed. */
static struct session_timer *create_timer(struct fb_conn *conn, uint32_t id)
{
    struct session_conn *session = session_conn_make(conn);
    struct session_timer *timer;

    if (session == NULL)
        return NULL;
    timer = memory_alloc(conn->net->memory, sizeof(*timer));
    if (timer == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    *timer = (struct session_timer) { .kind = SESSION_TIMER_KIND, .session = session, .id = id };
    timer->timer.expired = timer_expired;
    RB_INSERT(session_timers, &session->timers, timer);
    return timer;
}

void session_timer_set(struct fb_conn *conn, uint32_t id, uint64_t ms)
{
    struct loop *loop = &conn->net->loop;
    struct session_timer *timer = find_timer(conn, id);

    assert(conn_is_owned(conn));
    if (timer == NULL)
        timer = create_timer(conn, id);
    if (timer == NULL)
        return;
    timer->due = loop->clock.mono_ms + (ms > 0 ? ms : 1);
    /* moving it back costs nothing until it expires */
    if (timer_is_set(&timer->timer) && timer->timer.deadline <= timer->due)
        return;
    timer_del(loop, &timer->timer);
    timer_set(loop, &timer->timer, ms);
}

void session_timer_cancel(struct fb_conn *conn, uint32_t id)
{
    struct session_timer *timer = find_timer(conn, id);

    if (timer != NULL)
        free_timer(timer);
}
