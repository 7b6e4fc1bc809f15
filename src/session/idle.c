/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle connections, to be closed where a worker runs out of connections or descriptors.
 *
 * Responsible for the list, and for closing a few connections. Never closes a connection not
 * marked idle by the protocol, and none within a call: the flush does. Invariant: the list holds
 * the connections whose `idle` is set, in the order of the last marks. */
#include "session/idle.h"

#include "session/end.h"

/* Limit of connections closed at a time, and the share of the idle connections. */
#define RECLAIM_MOST 32
#define RECLAIM_SHARE 8
/* Least interval between log lines about a shortage. */
#define SAID_MS 60000

void idle_enter(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);
    uint32_t slot = conn_slot(conn), last = stream->idle.last;

    assert(!conn->idle && conn_is_owned(conn));
    conn->among = (struct conn_link) { .next = 0, .prev = last };
    if (last != 0)
        conn_at_slot(&stream->net, last)->among.next = slot;
    else
        stream->idle.first = slot;
    stream->idle.last = slot;
    stream->idle.n++;
    conn->idle = 1;
}

void idle_leave(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);
    uint32_t next = conn->among.next, prev = conn->among.prev;

    assert(conn->idle && stream->idle.n > 0);
    if (next != 0)
        conn_at_slot(&stream->net, next)->among.prev = prev;
    else
        stream->idle.last = prev;
    if (prev != 0)
        conn_at_slot(&stream->net, prev)->among.next = next;
    else
        stream->idle.first = next;
    stream->idle.n--;
    conn->idle = 0;
}

bool idle_can_reclaim(const struct stream *stream)
{
    return !TAILQ_EMPTY(&stream->keepalive) || (stream->reclaims_idle && stream->idle.n > 0);
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

static void close_idle(struct fb_conn *conn)
{
    conn_log(conn, LEVEL_INFO, 0, "an idle connection is closed to make room");
    counters_add(conn->net->counters, COUNTER_RECLAIMED, 1);
    session_end_note(conn, SESSION_END_RECLAIMED);
    conn_close(conn);
}

unsigned idle_reclaim(struct stream *stream, const struct fb_conn *user, const char *what)
{
    uint32_t slot = stream->idle.first;
    unsigned most = (stream->idle.n + RECLAIM_SHARE - 1) / RECLAIM_SHARE, n = 0;

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
        close_idle(conn);
    }
    return n;
}

void idle_check(const struct stream *stream)
{
    uint32_t prev = 0, n = 0;

    for (uint32_t slot = stream->idle.first; slot != 0; n++) {
        const struct fb_conn *conn = conn_at_slot(&stream->net, slot);

        assert(conn->idle && conn->among.prev == prev);
        prev = slot;
        slot = conn->among.next;
    }
    assert(prev == stream->idle.last && n == stream->idle.n);
}
