/* SPDX-License-Identifier: BSD-2-Clause */
/* Stopped connections whose peers have broken them, or have gone where the owner wants to know.
 *
 * Responsible for ending these: broken ones at once where the event mechanism tells of an error of
 * a source that is paused, else by a look at all connections a while later; the mechanism does not
 * know a source for which nothing was ever waited. Never receives: the end of a peer's half waits
 * until reading goes on, but for an owner that wants to know, by a look as well. Invariant: the
 * timer runs while a connection is stopped of which the mechanism does not tell. */
#include "net/conn_private.h"

/* How often, and at how many connections, a timer looks. */
#define LOOK_MS 500
#define LOOKS_A_TURN 1000

static bool is_stopped(const struct fb_conn *conn)
{
    /* a pipe still sends what it has received */
    return conn->read == CONN_READ_STOPPED && conn->pipe == NULL && conn_is_active(conn);
}

/* Whether the mechanism tells of an error of the connection, though it waits for nothing: of a
 * source that it has been given. */
static bool is_told(const struct fb_conn *conn)
{
    const struct event *events = conn->source.events;

    return conn->net->loop.mechanism->tells_broken &&
           (events[EVENT_READ].active || events[EVENT_WRITE].active);
}

/* Whether a look is the only way to find out what the owner wants to know. */
static bool is_looked_at(const struct fb_conn *conn)
{
    return conn->ends_stopped || !is_told(conn);
}

/* Ends a connection whose peer has ended its half, with nothing left to receive. */
static void check_end(struct fb_conn *conn)
{
    const struct io_ops *io = conn->source.io;
    struct io_result result;

    assert(conn->ends_stopped && is_stopped(conn));
    if (conn->in != NULL || (io->pending != NULL && io->pending(&conn->source) > 0))
        return;
    result = io->ended(&conn->source);
    if (result.status == IO_EOF)
        conn_fail(conn, FB_PEER_GONE);
    else if (result.status == IO_FAILED)
        conn_fail_by(conn, result.error);
}

void conn_stopped_check(struct fb_conn *conn)
{
    struct io_result result;

    if (!is_stopped(conn) || conn_is_connecting(conn))
        return;
    result = conn->source.io->connected(&conn->source);
    if (result.status != IO_FAILED) {
        if (conn->ends_stopped)
            check_end(conn);
        return;
    }
    conn_log(conn, LEVEL_INFO, result.error, "the connection is broken, while it is not read");
    conn_fail_by(conn, result.error);
}

void conn_stopped_expired(struct loop *loop, struct timer *timer)
{
    struct net *net = net_of_loop(loop);
    uint32_t end = loop->sources.used_n;

    assert(timer == &net->stopped.timer && net->stopped.index <= end);
    if (end - net->stopped.index > LOOKS_A_TURN)
        end = net->stopped.index + LOOKS_A_TURN;
    while (net->stopped.index < end) {
        struct fb_conn *conn = net_conn_at(net, net->stopped.index++);

        if (conn == NULL || !is_stopped(conn))
            continue;
        net->stopped.found = net->stopped.found || is_looked_at(conn);
        conn_stopped_check(conn);
    }
    if (end < loop->sources.used_n) {
        timer_set(loop, timer, 1); /* others have their turn */
    } else {
        if (net->stopped.found)
            timer_set(loop, timer, LOOK_MS);
        net->stopped.found = false;
        net->stopped.index = 0;
    }
    net_flush(net);
}

void conn_stopped_begin(struct fb_conn *conn)
{
    struct net *net = conn->net;

    if (conn->read != CONN_READ_STOPPED || conn->pipe != NULL || !is_looked_at(conn))
        return;
    net->stopped.found = true; /* the look that is under way may have passed it by */
    if (!timer_is_set(&net->stopped.timer))
        timer_set(&net->loop, &net->stopped.timer, LOOK_MS);
}

void conn_end_with_peer(struct fb_conn *conn, bool ends)
{
    conn->ends_stopped = ends;
    if (ends)
        conn_stopped_begin(conn);
}
