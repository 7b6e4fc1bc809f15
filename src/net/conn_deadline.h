/* SPDX-License-Identifier: BSD-2-Clause */
/* The deadline of a connection: the owner's, or for lingering. */
#pragma once

#include "net/conn_log.h"

/* The latest deadline, in ms from now: more than 24 days. */
#define CONN_DEADLINE_MOST INT32_MAX
/* The least time in ms until a deadline left aside. */
#define CONN_DEADLINE_ASIDE 1000

void conn_wheel_init(struct conn_wheel *wheel, void (*expired)(struct fb_conn *conn));
/* Requires that no connection has a deadline. */
void conn_wheel_done(struct net *net);
/* Looks for deadlines left aside, from this time of the monotonic clock on. */
void conn_wheel_look_at(struct net *net, uint64_t at);
/* Asserts the order of the buckets, and a sum of `timed_n` connections. */
void conn_wheel_check(const struct net *net, uint32_t timed_n);
/* Enter the connection into the wheel, and remove it with the deadline. */
void conn_deadline_enter(struct fb_conn *conn);
void conn_deadline_leave(struct fb_conn *conn);
/* Returns the deadline, set before, in ms of the monotonic clock. */
uint64_t conn_deadline_at(const struct fb_conn *conn);

/* Sets or moves the deadline: `expired` runs in `ms` (at least 1) from the cached time, and at the
 * latest in CONN_DEADLINE_MOST. */
static inline void conn_deadline_set(struct fb_conn *conn, uint64_t ms)
{
    struct net *net = conn->net;
    uint64_t now = net->loop.clock.mono_ms;
    uint32_t deadline =
        (uint32_t)now + (uint32_t)(ms < CONN_DEADLINE_MOST ? ms : CONN_DEADLINE_MOST) + (ms == 0);
    bool put_off = conn->limited && (int32_t)(deadline - conn->deadline) >= 0;

    conn->deadline = deadline;
    conn->limited = 1;
    if (put_off) {
        conn_trace(conn, "deadline put off: in %" PRIu64 " ms", ms);
    } else if (likely(ms >= CONN_DEADLINE_ASIDE && conn->timed.prev == 0)) {
        conn_trace(conn, "deadline set: in %" PRIu64 " ms", ms);
        if (unlikely(now + ms / 2 < net->wheel.look.at))
            conn_wheel_look_at(net, now + ms / 2);
    } else {
        conn_deadline_enter(conn);
    }
}

/* May be called where there is no deadline. */
static inline void conn_deadline_clear(struct fb_conn *conn)
{
    if (conn->timed.prev != 0)
        conn_deadline_leave(conn);
    else if (conn->limited)
        conn_trace(conn, "deadline deleted: %" PRId32 " ms were left",
            (int32_t)(conn->deadline - (uint32_t)conn->net->loop.clock.mono_ms));
    conn->limited = 0;
}
