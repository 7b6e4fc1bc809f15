/* SPDX-License-Identifier: BSD-2-Clause */
/* How much piped connections may receive: a rate of each direction.
 *
 * Responsible for stopping a direction that is ahead of its rate, and for the time until it may go
 * on. Never reads on: conn_pipe.c does. Invariant: what a direction has received is at most its
 * rate times the seconds that have begun since the pipe did, but for input from before the pipe; a
 * direction that is read may receive at least one byte. */
#include "net/conn_pipe.h"

#include <inttypes.h>

bool conn_throttle_begin(struct conn_pipe *pipe, struct net *net, const uint64_t rates[2],
    void (*expired)(struct loop *loop, struct timer *timer))
{
    struct conn_limits *limits = memory_alloc(net->memory, sizeof(*limits));

    assert(pipe->limits == NULL && (rates[0] | rates[1]) != 0);
    if (limits == NULL)
        return false;
    *limits = (struct conn_limits) { .began_ms = net->loop.clock.mono_ms };
    for (int i = 0; i < 2; i++)
        limits->from[i] = (struct conn_throttle) {
            .timer.expired = expired, .end = &pipe->ends[i], .rate = rates[i]
        };
    pipe->limits = limits;
    return true;
}

void conn_throttle_join(struct conn_pipe *pipe, int index)
{
    struct fb_conn *conn = pipe->ends[index].conn;
    size_t left = conn->in != NULL ? chunk_length(conn->in) : 0;

    pipe->limits->from[index].before = conn->received - left;
    conn->by_pipe = 1;
}

void conn_throttle_end(struct fb_conn *conn)
{
    timer_del(&conn->net->loop, &conn_throttle_of(conn)->timer);
}

/* Returns the bytes that were received in the pipe. */
static uint64_t moved_by(const struct fb_conn *conn, const struct conn_throttle *throttle)
{
    assert(conn->received >= throttle->before);
    return conn->received - throttle->before;
}

/* Returns how many bytes the rate allows now. */
static uint64_t allowed(const struct fb_conn *conn, const struct conn_throttle *throttle)
{
    uint64_t passed = conn->net->loop.clock.mono_ms - conn_pipe_of(conn)->limits->began_ms, most;
    uint64_t moved = moved_by(conn, throttle);

    if (__builtin_mul_overflow(throttle->rate, passed / 1000 + 1, &most))
        return UINT64_MAX;
    return most > moved ? most - moved : 0;
}

size_t conn_throttle_room(const struct fb_conn *conn, size_t most)
{
    const struct conn_throttle *throttle = conn_throttle_of(conn);
    uint64_t n;

    if (throttle == NULL || throttle->rate == 0)
        return most;
    n = allowed(conn, throttle);
    assert(n > 0 && !timer_is_set(&throttle->timer));
    return n < most ? (size_t)n : most;
}

/* Returns the ms to wait when n bytes were received: as long as the rate takes for these, and until
 * it allows more. */
static uint64_t time_to_wait(
    const struct fb_conn *conn, const struct conn_throttle *throttle, size_t n)
{
    uint64_t now = conn->net->loop.clock.mono_ms, wait = (uint64_t)n * 1000 / throttle->rate, at;

    if (allowed(conn, throttle) > 0)
        return wait;
    at = conn_pipe_of(conn)->limits->began_ms + moved_by(conn, throttle) / throttle->rate * 1000;
    assert(at > now);
    return at - now > wait ? at - now : wait;
}

void conn_throttle_note(struct fb_conn *conn, size_t n)
{
    struct conn_throttle *throttle = conn_throttle_of(conn);
    uint64_t wait;

    if (throttle == NULL || throttle->rate == 0 || !conn_is_active(conn))
        return;
    wait = time_to_wait(conn, throttle, n);
    if (wait == 0)
        return;
    conn_trace(conn, "is not read for %" PRIu64 " ms, for its rate", wait);
    conn_stop(conn);
    timer_set(&conn->net->loop, &throttle->timer, wait);
}
