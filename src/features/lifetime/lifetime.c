/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest lifetime of a client's session.
 *
 * Responsible for telling the protocol that the time is over, as a worker that drains does, and for
 * ending what is left a while later. Looks at the clock when a timer expires, and at no event.
 * Invariant: a session_lifetime is its session_conn's, and its timer runs until the session
 * closes. */
#include "features/lifetime/lifetime.h"

#include "session/conn.h"
#include "session/end.h"
#include "session/record.h"
#include "session/timeouts.h"

#define SESSION_LIFETIME_KIND KIND('S', 'L', 'I', 'F')
/* A session that is not idle when its time is over is looked at so often until it is. */
#define TICK_MS 500

struct lifetime_part {
    struct session_part part; /* the first member */
    unsigned kind;
    struct session_conn *session;
    uint64_t grace;   /* ms */
    uint64_t ends_at; /* monotonic ms; 0: the time is not over */
    struct timer timer;
};

/* Closes a session that is idle, and fails one that has had its grace, also where its client does
 * not take the last output; returns whether it has failed. */
static bool end_session(struct lifetime_part *lifetime, struct fb_conn *conn, uint64_t now)
{
    bool over = now >= lifetime->ends_at;

    if (!over && (!conn_is_active(conn) || !conn->idle || conn->pipe != NULL))
        return false;
    session_end_note(conn, SESSION_END_LIFETIME);
    if (over)
        conn_fail(conn, FB_DRAINED);
    else
        session_close(conn);
    return over;
}

/* Calls `draining` once of any callbacks that the session has; a worker that drains has done
 * so. */
static void tell_session(struct lifetime_part *lifetime, struct fb_conn *conn, uint64_t now)
{
    assert(now < lifetime->ends_at);
    if (conn->pipe != NULL || conn->phase != CONN_OPEN || stream_of(conn)->draining ||
        conn->session_phase == SESSION_PREREAD || lifetime->session->told)
        return;
    lifetime->session->told = true;
    session_call_draining_in(conn, lifetime->ends_at - now);
}

static void lifetime_expired(struct loop *loop, struct timer *timer)
{
    struct lifetime_part *lifetime = container_of(timer, struct lifetime_part, timer);
    struct fb_conn *conn = lifetime->session->conn;
    uint64_t now = loop->clock.mono_ms, left;

    CHECK_KIND(lifetime, SESSION_LIFETIME_KIND);
    assert(!conn->outgoing);
    if (conn_has_failed(conn))
        return;
    if (lifetime->ends_at == 0)
        lifetime->ends_at = now + lifetime->grace;
    if (!end_session(lifetime, conn, now)) {
        left = lifetime->ends_at - now;
        timer_set(loop, timer, left < TICK_MS ? left : TICK_MS);
        tell_session(lifetime, conn, now);
    }
    net_flush(conn->net);
}

static void lifetime_part_ended(struct fb_conn *conn, struct session_part *part)
{
    struct lifetime_part *lifetime = container_of(part, struct lifetime_part, part);

    CHECK_KIND(lifetime, SESSION_LIFETIME_KIND);
    assert(lifetime->session->conn == conn);
    timer_del(&conn->net->loop, &lifetime->timer);
    lifetime->kind = 0;
    memory_release(conn->net->memory, lifetime);
}

static const struct session_part_kind lifetime_part_kind = { .ended = lifetime_part_ended };

unsigned lifetime_begin(struct fb_conn *conn, const void *arg)
{
    const struct lifetime_setting *setting = arg;
    struct session_record *record = session_record_make(conn);
    struct lifetime_part *lifetime;
    uint64_t now = conn->net->loop.clock.mono_ms, ends, age = now - conn->opened_ms;

    if (record == NULL)
        return 0;
    lifetime = memory_alloc(conn->net->memory, sizeof(*lifetime));
    if (lifetime == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return 0;
    }
    assert(setting->jitter <= setting->time);
    *lifetime = (struct lifetime_part) {
        .kind = SESSION_LIFETIME_KIND,
        .session = conn->session,
        .grace = (uint64_t)setting->grace,
        .timer.expired = lifetime_expired,
    };
    session_part_add(record, &lifetime->part, &lifetime_part_kind);
    ends = (uint64_t)setting->time - session_spread(conn, (uint64_t)setting->jitter);
    timer_set(&conn->net->loop, &lifetime->timer, ends > age ? ends - age : 1);
    return 0;
}
