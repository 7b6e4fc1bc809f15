/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle connections, and the end of sessions in a worker without new clients.
 *
 * Responsible for the list of idle connections, for closing a few where there is no room, for
 * calling the protocols' `draining` once, and for closing idle sessions of a drain, spread over a
 * time. Never closes a session not marked idle by the protocol, but for session_drain_idle(), and
 * none within a call: the flush does. Invariants: the list holds the connections whose `idle` is
 * set, in the order of the last marks; the drain timer is set while a draining worker has idle
 * sessions. */
#include "session/idle.h"

#include "net/conn_pipe.h"
#include "session/end.h"
#include "session/secure.h"
#include "session/timeouts.h"

/* Limit of connections closed at a time, and the share of the idle connections. */
#define RECLAIM_MOST 32
#define RECLAIM_SHARE 8
/* Least interval between log lines about a shortage. */
#define SAID_MS 60000

/* Returns the links of a connection of the list; of slot 0: the ends of the list. */
static struct conn_link *link_at(struct stream *stream, uint32_t slot)
{
    return slot == 0 ? &stream->idle : &conn_at_slot(&stream->net, slot)->among;
}

void idle_enter(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);
    uint32_t last = stream->idle.prev;

    assert(!conn->idle && conn_is_owned(conn));
    conn->among = (struct conn_link) { .next = 0, .prev = last };
    link_at(stream, last)->next = stream->idle.prev = conn_slot(conn);
    stream->idle_n++;
    conn->idle = 1;
}

void idle_leave(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);

    assert(conn->idle && stream->idle_n > 0);
    link_at(stream, conn->among.next)->prev = conn->among.prev;
    link_at(stream, conn->among.prev)->next = conn->among.next;
    stream->idle_n--;
    conn->idle = 0;
}

bool idle_can_reclaim(const struct stream *stream)
{
    return !TAILQ_EMPTY(&stream->keepalive) || (stream->reclaims_idle && stream->idle_n > 0);
}

/* Whether the connection is `user`, or an ancestor of `user`. */
static bool is_used_by(const struct fb_conn *conn, const struct fb_conn *user)
{
    const struct session_conn *session;

    for (; user != NULL && user != conn; user = session->maker->conn) {
        session = user->session;
        if (session == NULL || !session->is_child)
            return false;
    }
    return user != NULL;
}

static void log_shortage(struct stream *stream, const char *what)
{
    uint64_t now = stream->net.loop.clock.mono_ms;

    if (stream->reclaim_said_ms != 0 && now - stream->reclaim_said_ms <= SAID_MS)
        return;
    stream->reclaim_said_ms = now;
    log_write(stream->net.log, LEVEL_WARN, 0, "%s, idle connections are closed", what);
}

static void close_reclaimed(struct fb_conn *conn)
{
    conn_log(conn, LEVEL_INFO, 0, "an idle connection is closed to make room");
    counters_add(conn->net->counters, COUNTER_RECLAIMED, 1);
    session_end_note(conn, SESSION_END_RECLAIMED);
    conn_close(conn);
}

unsigned idle_reclaim(struct stream *stream, const struct fb_conn *user, const char *what)
{
    uint32_t slot = stream->idle.next;
    unsigned most = (stream->idle_n + RECLAIM_SHARE - 1) / RECLAIM_SHARE, n = 0;

    if (stream->backends->evict(stream))
        return 1;
    if (!stream->reclaims_idle)
        return 0;
    if (most > RECLAIM_MOST)
        most = RECLAIM_MOST;
    while (slot != 0 && n < most) {
        struct fb_conn *conn = conn_at_slot(&stream->net, slot);

        assert(conn->idle && conn_is_owned(conn));
        slot = conn->among.next;
        if (is_used_by(conn, user))
            continue;
        idle_leave(conn);
        if (!conn_is_active(conn)) /* ends by itself */
            continue;
        if (n++ == 0)
            log_shortage(stream, what);
        close_reclaimed(conn);
    }
    return n;
}

void idle_check(const struct stream *stream)
{
    uint32_t prev = 0, n = 0;

    for (uint32_t slot = stream->idle.next; slot != 0; n++) {
        const struct fb_conn *conn = conn_at_slot(&stream->net, slot);

        assert(conn->idle && conn->among.prev == prev);
        prev = slot;
        slot = conn->among.next;
    }
    assert(prev == stream->idle.prev && n == stream->idle_n);
}

/* ---- The drain ---- */

/* Interval of closing idle sessions, all within SPREAD_MS, or half of the drain's time; a client
 * that has sent nothing yet has as long for its first request. */
#define SPREAD_MS 1000
#define TICK_MS 20
/* A session is idle for session_drain_idle() when so long no byte has moved. */
#define IDLE_MS 60000

/* Whether the connection's callbacks are its protocol's. */
static bool is_protocols(const struct fb_conn *conn)
{
    return conn->pipe == NULL && !session_is_keepalive(conn) && !session_secure_opens(conn) &&
           (conn->session_phase < SESSION_HEADER || conn->session_phase > SESSION_PREREAD);
}

static bool drains_idle(const struct fb_conn *conn)
{
    return conn->idle && conn_is_active(conn) && is_protocols(conn);
}

/* Whether the client, just accepted or done with the layers below, has had no time for a request:
 * it chose this worker by chance, and could not tell its end from a refusal. */
static bool is_fresh(const struct fb_conn *conn)
{
    uint64_t since = conn->opened_ms;

    if (conn->sent == 0 && conn->moved_ms > since) /* until then a layer below had the client */
        since = conn->moved_ms;
    return !conn->outgoing && conn->received == 0 &&
           conn->net->loop.clock.mono_ms - since < stream_of(conn)->spread;
}

struct idle_count {
    uint64_t all, fresh;
};

static void count_idle(struct fb_conn *conn, void *arg)
{
    struct idle_count *count = arg;

    if (!drains_idle(conn))
        return;
    count->all++;
    count->fresh += is_fresh(conn);
}

static void close_drained(struct fb_conn *conn, void *n)
{
    uint64_t *left = n;

    if (*left == 0 || !drains_idle(conn) || is_fresh(conn))
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
    uint64_t now = loop->clock.mono_ms, n;
    struct idle_count idle = { 0 };

    assert(stream->draining && &stream->net.loop == loop);
    if (stream->untold)
        net_each(&stream->net, tell_late, NULL);
    stream->untold = false;
    net_each(&stream->net, count_idle, &idle);
    n = idle.all - idle.fresh;
    if (now + TICK_MS < stream->spread_until) {
        uint64_t left = stream->spread_until - now;

        n = (n * TICK_MS + left - 1) / left;
    }
    if (n < idle.all)
        timer_set(loop, timer, TICK_MS);
    net_each(&stream->net, close_drained, &n);
}

static void tell_drain(struct fb_conn *conn, void *arg)
{
    (void)arg;
    if (is_protocols(conn) && conn->phase == CONN_OPEN &&
        !(conn->session != NULL && conn->session->told))
        session_call_draining(conn);
}

void session_drain(struct stream *stream, uint64_t deadline)
{
    struct loop *loop = &stream->net.loop;
    struct idle_count idle = { 0 };
    uint64_t now = loop->clock.mono_ms;

    stream->draining = true;
    stream->deadline_at = deadline > 0 ? now + deadline : 0;
    stream->spread = deadline > 0 && deadline / 2 < SPREAD_MS ? deadline / 2 : SPREAD_MS;
    stream->spread_until = now + stream->spread;
    stream->drain.expired = drain_tick;
    stream->backends->close_all(stream);
    net_each(&stream->net, tell_drain, NULL);
    net_each(&stream->net, count_idle, &idle);
    if (idle.all > 0)
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

/* Returns the size of the connection's family; 0: a member has a `draining`, and ends by itself. */
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
