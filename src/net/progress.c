/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection goes on after callbacks and when the peer has taken output, and how it ends. */
#include "net/conn_private.h"

#include <errno.h>

fb_reason fb_conn_reason(int error)
{
    switch (error) {
    case ECONNRESET:
    case EPIPE:
        return FB_RESET;
    case ETIMEDOUT:
        return FB_TIMED_OUT;
    case ECONNREFUSED:
    case ENOENT: /* a unix socket that is not there */
        return FB_REFUSED;
    case ENOMEM:
    case ENOBUFS:
        return FB_NO_MEMORY;
    default:
        return FB_IO_ERROR;
    }
}

/* The gauges tell the states apart; waiting is what neither reads nor writes. */
static void recount(struct fb_conn *conn, enum fb_conn_state now)
{
    static const int gauges[] = {
        [FB_CONN_WAITING] = -1, [FB_CONN_READING] = FB_READING, [FB_CONN_WRITING] = FB_WRITING
    };

    if (conn->counted == now || conn->outgoing) /* clients alone are counted */
        return;
    if (gauges[conn->counted] != -1)
        fb_count(conn->net->counters, (enum fb_counter)gauges[conn->counted], -1);
    if (gauges[now] != -1)
        fb_count(conn->net->counters, (enum fb_counter)gauges[now], 1);
    conn->counted = now;
}

void fb_conn_count(struct fb_conn *conn)
{
    if (conn->unsent > 0)
        recount(conn, FB_CONN_WRITING);
    else
        recount(conn, conn->in != NULL ? FB_CONN_READING : FB_CONN_WAITING);
}

/* The owner's part ends: after this only the descriptor is left. */
static void detach_owner(struct fb_conn *conn, fb_reason reason)
{
    struct fb_net *net = conn->net;

    conn->closing = 1; /* it takes nothing more, whatever `closed` does */
    fb_timer_del(&net->loop, &conn->timer);
    fb_conn_drop_output(conn);
    if (conn->in != NULL)
        fb_chunk_free(net, conn->in);
    conn->in = NULL;
    recount(conn, FB_CONN_WAITING);
    if (!conn->opening || conn->outgoing)
        conn->ops->closed(conn, reason);
}

void fb_conn_end(struct fb_conn *conn, fb_reason reason)
{
    struct fb_net *net = conn->net;
    bool outgoing = conn->outgoing;

    fb_conn_debug(conn, "closed, reason %d", (int)reason);
    if (!conn->lingering)
        detach_owner(conn, reason);
    fb_timer_del(&net->loop, &conn->timer);
    fb_source_close(&net->loop, &conn->source, reason == FB_ABORTED);
    net->connection_n--;
    if (!outgoing) {
        net->client_n--;
        fb_count(net->counters, FB_ACTIVE, -1);
    }
    if (net->released != NULL)
        net->released(net);
}

/* Whether the peer's bytes lie unread in the kernel, which would make closing a reset. */
static bool input_is_pending(struct fb_conn *conn)
{
    uint8_t bytes[512]; /* not the scratch buffer: somebody's lent bytes may still lie there */
    struct fb_span span = { bytes, sizeof(bytes) };

    if (conn->eof)
        return false;
    return conn->source.io->recv(&conn->source, &span).status == FB_IO_DONE;
}

/* All output has left. */
static void finish(struct fb_conn *conn)
{
    struct fb_loop *loop = &conn->net->loop;

    if (conn->keeping && conn->in == NULL && !conn->eof) {
        conn->keeping = 0;
        conn->ops->kept(conn);
        return;
    }
    if (!input_is_pending(conn)) {
        fb_conn_end(conn, FB_FINISHED);
        return;
    }
    if (!conn->shut)
        conn->source.io->shutdown(&conn->source);
    detach_owner(conn, FB_FINISHED);
    conn->lingering = 1;
    conn->source.events[FB_READ].ready = true; /* the probe has not emptied it */
    if (fb_source_arm(loop, &conn->source, FB_READ) == -1)
        fb_conn_end(conn, FB_NO_MEMORY);
    else
        fb_timer_set(loop, &conn->timer, conn->net->lingering_timeout);
}

/* Reading pauses while too much output waits, and the owner hears when it has left. */
static void press_back(struct fb_conn *conn)
{
    if (conn->pipe != NULL)
        return;
    if (!conn->held && conn->unsent > FB_HIGH_WATER) {
        conn->held = 1;
        fb_conn_update_reading(conn);
    } else if (conn->held && conn->unsent < FB_LOW_WATER) {
        conn->held = 0;
        fb_conn_update_reading(conn);
        if (!conn->opening && !conn->closing)
            conn->ops->writable(conn);
    }
}

/* Watches for what output waits for. */
static void update_writing(struct fb_conn *conn)
{
    struct fb_loop *loop = &conn->net->loop;
    struct fb_event *event = &conn->source.events[FB_WRITE];

    if (conn->out == NULL && !conn->connecting && fb_pipe_is_empty(conn)) {
        fb_source_disarm(loop, &conn->source, FB_WRITE);
        return;
    }
    if (event->ready) /* it has had its turn */
        fb_loop_post(loop, event, FB_QUEUE_NEXT);
    if (fb_source_arm(loop, &conn->source, FB_WRITE) == -1)
        conn->failed = FB_NO_MEMORY;
}

static void send_output(struct fb_conn *conn)
{
    size_t unsent = conn->unsent;

    if (!fb_conn_send(conn) || !fb_conn_own_output(conn))
        return;
    if (conn->unsent < unsent || conn->pushed) {
        conn->pushed = 0;
        conn->ops->moved(conn);
    }
    if (conn->pipe != NULL)
        fb_pipe_progress(conn);
    if (conn->shutting && !conn->shut && conn->out == NULL && fb_pipe_is_empty(conn)) {
        conn->source.io->shutdown(&conn->source);
        conn->shut = 1;
    }
    update_writing(conn);
    press_back(conn);
}

static void answer_connect(struct fb_conn *conn)
{
    struct fb_io_result result;

    if (!conn->source.events[FB_WRITE].ready) {
        update_writing(conn);
        return;
    }
    result = conn->source.io->connected(&conn->source);
    switch (result.status) {
    case FB_IO_DONE:
        fb_conn_established(conn);
        break;
    case FB_IO_AGAIN_READ:
    case FB_IO_AGAIN_WRITE:
        conn->source.events[FB_WRITE].ready = false;
        update_writing(conn);
        break;
    default:
        fb_conn_refused(conn, result.error);
    }
}

/* Does what callbacks have asked for, and goes on when the peer has taken output. */
void fb_conn_progress(struct fb_loop *loop, struct fb_source *source)
{
    struct fb_conn *conn = fb_container(source, struct fb_conn, source);
    struct fb_net *net = conn->net;

    (void)loop;
    if (conn->connecting && conn->failed == 0)
        answer_connect(conn);
    if (conn->failed == 0 && !conn->connecting)
        send_output(conn);
    else if (conn->failed == 0)
        fb_conn_own_output(conn);

    if (conn->failed != 0)
        fb_conn_end(conn, (fb_reason)conn->failed);
    else if (conn->connecting && conn->closing && conn->out == NULL)
        fb_conn_end(conn, FB_FINISHED);
    else if (conn->closing && conn->out == NULL && fb_pipe_is_empty(conn) && !conn->lingering)
        finish(conn);
    else if (conn->shut && conn->eof && fb_pipe_is_done(conn))
        fb_conn_end(conn, FB_FINISHED);
    else
        fb_conn_count(conn);
    fb_net_settle(net);
}
