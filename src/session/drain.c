/* SPDX-License-Identifier: BSD-2-Clause */
/* How sessions come to an end when their worker takes no more clients.
 *
 * Responsible for calling the protocols' `draining` once, and for closing idle sessions, spread
 * over a time. Never closes a session that its protocol has not marked idle. Invariant: while
 * sessions are idle in a draining worker, the drain timer is set. */
#include "session/drain.h"
#include "net/conn_pipe.h"
#include "session/end.h"
#include "session/idle.h"
#include "session/timeouts.h"

/* Interval of closing idle sessions: all within SPREAD_MS, or half of the drain's time, every
 * TICK_MS. */
#define SPREAD_MS 1000
#define TICK_MS 20
/* A session is idle for session_drain_idle() when so long no byte has moved. */
#define IDLE_MS 60000

/* Whether the connection's callbacks are its protocol's. */
static bool is_protocols(const struct fb_conn *conn)
{
    return conn->pipe == NULL && !session_is_keepalive(conn) &&
           conn->session_phase != SESSION_HEADER && conn->session_phase != SESSION_PREREAD;
}

static bool is_idle(const struct fb_conn *conn)
{
    return conn->idle && conn_is_active(conn) && is_protocols(conn);
}

static void count_idle(struct fb_conn *conn, void *n)
{
    *(uint64_t *)n += is_idle(conn);
}

static void close_idle(struct fb_conn *conn, void *n)
{
    uint64_t *left = n;

    if (!is_idle(conn) || *left == 0)
        return;
    session_end_note(conn, SESSION_END_DRAINED);
    session_close(conn);
    --*left;
}

static void tell_late(struct fb_conn *conn, void *arg)
{
    struct session_conn *session = conn->session;

    (void)arg;
    if (session == NULL || !session->untold)
        return;
    session->untold = false;
    if (is_protocols(conn) && conn->phase == CONN_OPEN)
        session_call_draining(conn);
}

static void drain_tick(struct loop *loop, struct timer *timer)
{
    struct stream *stream = container_of(timer, struct stream, drain);
    uint64_t now = loop->clock.mono_ms, left = 0, n = 0;

    assert(stream->draining && &stream->net.loop == loop);
    if (stream->untold)
        net_each(&stream->net, tell_late, NULL);
    stream->untold = false;
    if (now + TICK_MS < stream->spread_until)
        left = stream->spread_until - now;
    net_each(&stream->net, count_idle, &n);
    if (n > 0 && left > 0) {
        n = (n * TICK_MS + left - 1) / left;
        timer_set(loop, timer, TICK_MS);
    }
    net_each(&stream->net, close_idle, &n);
}

static bool was_told(const struct fb_conn *conn)
{
    return conn->session != NULL && conn->session->told;
}

static void tell_session(struct fb_conn *conn, void *arg)
{
    (void)arg;
    if (is_protocols(conn) && conn->phase == CONN_OPEN && !was_told(conn))
        session_call_draining(conn);
}

void session_drain(struct stream *stream, uint64_t deadline)
{
    struct loop *loop = &stream->net.loop;
    uint64_t now = loop->clock.mono_ms, idle = 0;

    stream->draining = true;
    stream->deadline_at = deadline > 0 ? now + deadline : 0;
    stream->spread_until =
        now + (deadline > 0 && deadline / 2 < SPREAD_MS ? deadline / 2 : SPREAD_MS);
    stream->drain.expired = drain_tick;
    stream->backends->close_all(stream);
    net_each(&stream->net, tell_session, NULL);
    net_each(&stream->net, count_idle, &idle);
    if (idle > 0)
        timer_set(loop, &stream->drain, 1);
}

static void end_idle(struct fb_conn *conn, void *arg)
{
    uint64_t moved_ms = conn->pipe != NULL ? conn_pipe_moved_ms(conn) : conn->moved_ms;
    uint64_t now = conn->net->loop.clock.mono_ms;

    (void)arg;
    if (conn->outgoing || !conn_is_active(conn) || now - moved_ms < IDLE_MS ||
        now - conn->opened_ms < IDLE_MS)
        return;
    conn_log(conn, LEVEL_INFO, 0, "an idle session ends, because too many old workers drain");
    session_end_note(conn, SESSION_END_DRAINED);
    conn_fail(conn, FB_DRAINED);
}

void session_drain_idle(struct stream *stream)
{
    assert(stream->draining);
    net_each(&stream->net, end_idle, NULL);
}

void session_drain_late(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);

    assert(stream->draining);
    conn->session->untold = stream->untold = true;
    if (!timer_is_set(&stream->drain))
        timer_set(&stream->net.loop, &stream->drain, 1);
}

void session_set_idle(struct fb_conn *conn, bool idle)
{
    struct stream *stream = stream_of(conn);

    assert(session_is_usable(conn));
    if (conn->idle)
        idle_leave(conn);
    if (idle) /* the time begins anew */
        idle_enter(conn);
    if (idle && stream->draining && !timer_is_set(&stream->drain))
        timer_set(&stream->net.loop, &stream->drain, TICK_MS);
}

/* Returns the number of connections of the family of this connection; 0: a member has a `draining`
 * and has to end by itself. */
static uint32_t count_family(const struct session_conn *session)
{
    const struct session_outgoing *child;
    uint32_t all = 1, n;

    if (conn_is_active(session->conn) && session->conn->phase == CONN_OPEN &&
        SESSION_HAS(session->ops, draining))
        return 0;
    LIST_FOREACH (child, &session->children, sibling) {
        n = count_family(&child->session);
        if (n == 0)
            return 0;
        all += n;
    }
    return all;
}

bool session_is_drained(const struct stream *stream)
{
    const struct session_outgoing *own;
    uint32_t all = 0, n;

    if (stream->net.client_n > 0)
        return false;
    TAILQ_FOREACH (own, &stream->own, among) {
        n = count_family(&own->session);
        if (n == 0)
            return false;
        all += n;
    }
    return all == stream->net.connection_n;
}
