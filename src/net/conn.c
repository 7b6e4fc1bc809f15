/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a connection, the two halves, and the owners' calls that change them.
 *
 * Keeps the events armed accordingly. Never moves bytes, and runs no callback but `failed` and
 * `connect_failed`. Invariant: a step that is not in conn_steps does not happen. */
#include "net/conn.h"

#include "net/conn_direction.h"
#include "net/conn_log.h"

#include <errno.h>

void conn_set_write(struct fb_conn *conn, enum conn_write write)
{
    assert(conn->write < (unsigned)write); /* a half only gets nearer to the end */
    conn->write = write;
}

void conn_update_reading(struct fb_conn *conn)
{
    struct loop *loop = &conn->net->loop;

    if (!conn_may_read(conn)) {
        source_disarm(loop, &conn->source, EVENT_READ);
    } else if (source_arm(loop, &conn->source, EVENT_READ) == -1) {
        conn_log(conn, LEVEL_ALERT, errno, "the connection cannot be watched");
        conn_fail(conn, FB_NO_MEMORY);
    } else if (conn->redeliver) {
        loop_post(loop, &conn->source.events[EVENT_READ], QUEUE_NEXT);
    }
}

void conn_redeliver(struct fb_conn *conn)
{
    const struct net *net = conn->net;

    /* the rest is unknown while `data` runs, or the flush afterwards */
    if (conn->in != NULL || net->lent.n > 0 || net->flushing)
        conn->redeliver = 1;
    conn_update_reading(conn);
}

void conn_watch_writing(struct fb_conn *conn)
{
    struct loop *loop = &conn->net->loop;
    struct event *event = &conn->source.events[EVENT_WRITE];

    if (event->ready) /* the connection has had its turn */
        loop_post(loop, event, QUEUE_NEXT);
    if (source_arm(loop, &conn->source, EVENT_WRITE) == -1)
        conn_fail(conn, FB_NO_MEMORY);
}

void conn_watch_connect(struct fb_conn *conn)
{
    struct loop *loop = &conn->net->loop;
    struct source *source = &conn->source;

    if (!loop->mechanism->edge || source->events[EVENT_WRITE].active)
        conn_watch_writing(conn);
    else if (source_arm_both(loop, source) == -1)
        conn_fail(conn, FB_NO_MEMORY);
    else if (unlikely(conn->read != CONN_READ_ON || conn->paused)) /* since before the connect() */
        source_disarm(loop, source, EVENT_READ);
}

void conn_establish(struct fb_conn *conn)
{
    if (conn->phase == CONN_CLOSING_UNCONNECTED)
        conn_set_phase(conn, CONN_CLOSING);
    else
        conn_set_phase(conn, CONN_OPENING);
    conn->source.events[EVENT_WRITE].ready = true; /* a new socket takes output */
    conn_open_soon(conn);
}

void conn_open_soon(struct fb_conn *conn)
{
    assert(conn->phase == CONN_OPENING || conn->phase == CONN_CLOSING);
    loop_post_soon(&conn->net->loop, &conn->source.events[EVENT_READ]);
}

void conn_count_as(struct fb_conn *conn, enum conn_activity activity)
{
    static const int gauges[] = {
        [CONN_WAITING] = -1, [CONN_READING] = COUNTER_READING, [CONN_WRITING] = COUNTER_WRITING
    };

    if (conn->outgoing) /* clients alone are counted */
        return;
    assert(conn->counted != (unsigned)activity);
    if (gauges[conn->counted] != -1)
        counters_add(conn->net->counters, (enum counter)gauges[conn->counted], -1);
    if (gauges[activity] != -1)
        counters_add(conn->net->counters, (enum counter)gauges[activity], 1);
    conn->counted = activity;
}

fb_reason conn_reason_of(int error)
{
    switch (error) {
    case ECONNRESET:
    case EPIPE:
        return FB_RESET;
    case ETIMEDOUT:
        return FB_TIMED_OUT;
    case ECONNREFUSED:
    case ENOENT: /* the path of a unix socket does not exist */
        return FB_REFUSED;
    case ENOMEM:
    case ENOBUFS:
        return FB_NO_MEMORY;
    default:
        return FB_IO_ERROR;
    }
}

/* Returns the operations of the owner, also of a piped connection. */
static const struct conn_ops *owner_ops(const struct fb_conn *conn)
{
    return conn->pipe != NULL ? conn->pipe->ops : conn->ops;
}

void conn_tell_failed(struct fb_conn *conn, int error)
{
    if (conn->reason == 0 && owner_ops(conn)->failed != NULL)
        owner_ops(conn)->failed(conn, error);
}

/* ---- Calls of owners: the end ---- */

static void begin_close(struct fb_conn *conn, enum conn_phase phase)
{
    conn_set_phase(conn, phase);
    conn_mark_dirty(conn);
}

void conn_close(struct fb_conn *conn)
{
    if (conn_is_active(conn))
        begin_close(conn, conn->phase == CONN_CONNECTING ? CONN_CLOSING_UNCONNECTED : CONN_CLOSING);
}

void conn_keep(struct fb_conn *conn)
{
    if (conn->phase == CONN_OPEN && conn->write == CONN_WRITE_ON && conn->pipe == NULL)
        begin_close(conn, CONN_KEEPING);
    else
        conn_close(conn);
}

void conn_fail(struct fb_conn *conn, fb_reason reason)
{
    assert(conn->phase != CONN_FREE && reason >= FB_FINISHED && reason <= FB_TLS_TIMED_OUT);
    if (conn->reason != 0)
        return;
    conn->reason = reason;
    if (conn->phase == CONN_ENDING)
        return;
    conn_set_phase(conn, conn->phase == CONN_LINGERING ? CONN_LINGERED : CONN_FAILED);
    conn_mark_dirty(conn);
}

void conn_fail_by(struct fb_conn *conn, int error)
{
    assert(error != 0);
    conn_tell_failed(conn, error);
    conn_fail(conn, conn_reason_of(error));
}

void conn_connect_failed(struct fb_conn *conn, int error, enum io_step step)
{
    assert(conn->outgoing && error != 0);
    if (owner_ops(conn)->connect_failed != NULL)
        owner_ops(conn)->connect_failed(conn, error, step);
    else
        conn_log(conn, LEVEL_ERROR, error, step == IO_BIND ? "bind() failed" : "connect() failed");
    conn_fail_by(conn, error);
}

void conn_leave_begin(struct fb_conn *conn)
{
    assert(conn->phase == CONN_OPEN && conn->pipe == NULL && conn->reason == 0);
    conn_set_phase(conn, CONN_ENDING);
}

void conn_leave_end(struct fb_conn *conn)
{
    fb_reason reason = conn->reason;

    assert(conn->phase == CONN_ENDING && conn->owner_knows);
    conn_set_phase(conn, CONN_OPEN);
    conn->reason = 0;
    if (reason != 0)
        conn_fail(conn, reason);
}

/* ---- Stopped connections with a broken or closed peer ---- */

/* A broken connection ends at once where the event mechanism tells of errors of paused sources,
 * else by a look at all connections. A look also finds the end of a peer's half, for owners that
 * want to know. The timer runs while a stopped connection is not told of. */

/* How often, and at how many connections, a timer looks. */
#define LOOK_MS 500
#define LOOKS_A_TURN 1000

static bool is_stopped(const struct fb_conn *conn)
{
    /* a pipe still sends received bytes */
    return conn->read == CONN_READ_STOPPED && conn->pipe == NULL && conn_is_active(conn);
}

/* Whether only a look shows a peer's end: mechanisms tell of errors of added sources at most. */
static bool is_looked_at(const struct fb_conn *conn)
{
    const struct event *events = conn->source.events;

    return conn->ends_stopped || !conn->net->loop.mechanism->tells_broken ||
           (!events[EVENT_READ].active && !events[EVENT_WRITE].active);
}

void conn_check_stopped(struct fb_conn *conn)
{
    const struct io_ops *io = conn->source.io;
    struct io_result result;

    if (!is_stopped(conn) || conn_is_connecting(conn))
        return;
    result = io->connected(&conn->source);
    if (result.status == IO_FAILED) {
        conn_log(conn, LEVEL_INFO, result.error, "the connection is broken, while it is not read");
        conn_fail_by(conn, result.error);
        return;
    }
    if (!conn->ends_stopped || conn->in != NULL ||
        (!conn->source.layered && io->pending != NULL && io->pending(&conn->source) > 0))
        return;                        /* an end known to a layer is pending, too */
    result = io->ended(&conn->source); /* the end comes next, without input before */
    if (result.status == IO_EOF)
        conn_fail(conn, FB_PEER_GONE);
    else if (result.status == IO_FAILED)
        conn_fail_by(conn, result.error);
}

void conn_check_all_stopped(struct net *net)
{
    struct loop *loop = &net->loop;
    uint32_t end = loop->sources.used_n;

    assert(net->stopped.index <= end);
    if (end - net->stopped.index > LOOKS_A_TURN)
        end = net->stopped.index + LOOKS_A_TURN;
    while (net->stopped.index < end) {
        struct fb_conn *conn = conn_at_index(net, net->stopped.index++);

        if (conn == NULL || !is_stopped(conn))
            continue;
        net->stopped.found = net->stopped.found || is_looked_at(conn);
        conn_check_stopped(conn);
    }
    if (end < loop->sources.used_n) {
        timer_set(loop, &net->stopped.timer, 1); /* others have their turn */
        return;
    }
    if (net->stopped.found)
        timer_set(loop, &net->stopped.timer, LOOK_MS);
    net->stopped.found = false;
    net->stopped.index = 0;
}

/* Begins the looks at a stopped connection, where the mechanism does not tell of its end. */
static void look_when_stopped(struct fb_conn *conn)
{
    struct net *net = conn->net;

    if (conn->read != CONN_READ_STOPPED || conn->pipe != NULL || !is_looked_at(conn))
        return;
    net->stopped.found = true; /* the look under way may have passed by */
    if (!timer_is_set(&net->stopped.timer))
        timer_set(&net->loop, &net->stopped.timer, LOOK_MS);
}

void conn_end_with_peer(struct fb_conn *conn, bool ends)
{
    conn->ends_stopped = ends;
    if (ends)
        look_when_stopped(conn);
}

/* ---- Calls of owners: reading and writing ---- */

void conn_stop(struct fb_conn *conn)
{
    struct loop *loop = &conn->net->loop;
    struct source *source = &conn->source;
    const struct event *events = source->events;

    if (conn->read == CONN_READ_ON)
        conn_set_read(conn, CONN_READ_STOPPED);
    if (loop->mechanism->tells_broken && !events[EVENT_READ].active &&
        !events[EVENT_WRITE].active && !events[EVENT_READ].ready && source->fd != -1)
        source_arm(loop, source, EVENT_READ); /* added, to be told of; if refused, looked at */
    source_disarm(loop, source, EVENT_READ);
    look_when_stopped(conn);
}

void conn_resume(struct fb_conn *conn)
{
    if (conn->read != CONN_READ_STOPPED || !conn_is_active(conn))
        return;
    conn_set_read(conn, CONN_READ_ON);
    if (conn->phase == CONN_OPEN)
        conn_redeliver(conn);
}

void conn_offer_again(struct fb_conn *conn)
{
    if (conn->phase == CONN_OPEN && conn->pipe == NULL)
        conn_redeliver(conn);
}

void conn_shutdown(struct fb_conn *conn)
{
    if (!conn_may_write(conn))
        return;
    conn_set_write(conn, CONN_WRITE_ENDING);
    conn_mark_dirty(conn);
}
