/* SPDX-License-Identifier: BSD-2-Clause */
/* Stopped connections whose peers have broken them.
 *
 * Responsible for ending these: at once where the event mechanism tells of an error of a source
 * that is paused, else by a look at all connections a while later; the mechanism does not know a
 * source for which nothing was ever waited. Never receives: the end of a peer's half waits until
 * reading goes on. Invariant: the timer runs while a connection is stopped of which the mechanism
 * does not tell. */
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

void conn_stopped_check(struct fb_conn *conn)
{
    struct io_result result;

    if (!is_stopped(conn) || conn_is_connecting(conn))
        return;
    result = conn->source.io->connected(&conn->source);
    if (result.status != IO_FAILED)
        return;
    conn_log(conn, LEVEL_INFO, result.error, "the connection is broken, while it is not read");
    conn_fail_by(conn, result.error);
}

void conn_stopped_expired(struct loop *loop, struct timer *timer)
{
    struct net *net = net_of_loop(loop);
    struct fb_conn *conn;
    int n = 0;

    assert(timer == &net->stopped.timer && net->stopped.index <= loop->sources.used_n);
    while (n++ < LOOKS_A_TURN && (conn = net_next_conn(net, &net->stopped.index)) != NULL) {
        net->stopped.found = net->stopped.found || (is_stopped(conn) && !is_told(conn));
        conn_stopped_check(conn);
    }
    if (n > LOOKS_A_TURN) {
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

    if (conn->read != CONN_READ_STOPPED || conn->pipe != NULL || is_told(conn))
        return;
    net->stopped.found = true; /* the look that is under way may have passed it by */
    if (!timer_is_set(&net->stopped.timer))
        timer_set(&net->loop, &net->stopped.timer, LOOK_MS);
}
