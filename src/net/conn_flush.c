/* SPDX-License-Identifier: BSD-2-Clause */
/* The flush of a connection, and its end. Responsible for the requests of callbacks: output leaves,
 * FIN is sent, the connection is kept, lingers or ends; and for going on when the peer has taken
 * output. Never receives for the owner. Invariants: `closed` runs once, in CONN_ENDING, for each
 * connection with an owner; conn->sent leaves out what a reset has taken back. */
#include "net/conn_flush.h"

#include "net/conn_deadline.h"
#include "net/conn_direction.h"
#include "net/conn_output.h"
#include "os/descriptor.h"

/* The interval of asking whether the peer's system has acknowledged the output. */
#define QUEUE_LOOK_MS 20

/* Returns the bytes of output in the kernel's queue. */
static COLD size_t queued_by_kernel(const struct fb_conn *conn)
{
    size_t n;

    if (conn->peer.family == AF_UNIX) /* sent bytes lie with the peer */
        return 0;
    n = conn->source.io->queued(&conn->source);
    if (n > 0 && conn->write == CONN_WRITE_ENDED)
        n--; /* the end counts as a byte */
    return n < conn->sent ? n : (size_t)conn->sent;
}

/* Whether the reset after a break of the other end waits until the peer's system has acknowledged
 * the output; sets the deadline then. */
static COLD bool reset_waits(struct fb_conn *conn)
{
    struct conn_pipe *pipe = conn_pipe_of(conn);
    uint64_t now = conn->net->loop.clock.mono_ms;

    assert(conn->phase == CONN_CLOSING && conn_pipe_other(conn) == NULL);
    if (pipe->reset == CONN_PIPE_RESETS) {
        pipe->reset = CONN_PIPE_AWAITS_QUEUE;
        pipe->reset_by = now + conn->net->lingering_timeout;
        pipe->timed = CONN_PIPE_UNTIMED;
    }
    if (now >= pipe->reset_by || queued_by_kernel(conn) == 0)
        return false;
    conn_deadline_set(conn, QUEUE_LOOK_MS);
    return true;
}

/* Hands on output held by the operations; false: an event will tell, or the connection failed. */
static NOINLINE bool push_held_output(struct fb_conn *conn, bool ends)
{
    struct io_result result = conn->source.io->flush(&conn->source, ends);

    if (result.status == IO_DONE)
        return true;
    conn_note_sent(conn, result, 0);
    return false;
}

/* Whether all sent output has left the process; with `ends` a layer has told its peer of the
 * end. */
static inline bool has_left(struct fb_conn *conn, bool ends)
{
    return conn->source.io->flush == NULL || push_held_output(conn, ends);
}

/* Whether both directions of the connection's pipe have ended; true without a pipe. */
static bool both_have_ended(const struct fb_conn *conn)
{
    const struct fb_conn *to = conn->pipe != NULL ? conn_pipe_other(conn) : NULL;

    return conn->pipe == NULL ||
           (conn->write == CONN_WRITE_ENDED && conn->read == CONN_READ_ENDED &&
               (to == NULL || (to->write == CONN_WRITE_ENDED && to->read == CONN_READ_ENDED)));
}

/* Whether the connection ends with a reset: aborted, or cut off by our fault. */
static COLD bool ends_with_reset(const struct fb_conn *conn, fb_reason reason)
{
    switch (reason) {
    case FB_ABORTED:
    case FB_PIPE_BROKEN:
        return true;
    case FB_NO_MEMORY: /* for the output, too */
    case FB_IO_ERROR:
    case FB_OUTPUT_LIMIT:
        return conn->unsent > 0 || conn->out != NULL;
    default:
        return false;
    }
}

/* Ends the connection for its owner. */
static ALWAYS_INLINE void detach_owner(struct fb_conn *conn, fb_reason reason)
{
    bool owner_knows = conn->owner_knows;

    conn_set_phase(conn, CONN_ENDING); /* `closed` can add nothing */
    if (unlikely(conn->unsent > 0 || conn->out != NULL))
        conn_drop_output(conn);
    if (unlikely(conn->in != NULL)) {
        chunk_free(&conn->net->chunks, conn->in);
        conn->in = NULL;
    }
    if (unlikely(conn->counted != CONN_WAITING))
        conn_count_as(conn, CONN_WAITING);
    conn->owner_knows = 0;
    if (likely(owner_knows))
        conn->ops->closed(conn, reason);
    else
        conn->session_phase = 0;
    conn_deadline_clear(conn); /* `closed` may have set one */
}

/* Closes the socket and frees the slot. */
static inline void release_conn_slot(struct fb_conn *conn, bool reset)
{
    struct net *net = conn->net;
    bool outgoing = conn->outgoing;

    assert(net->connection_n > 0);
    conn_set_phase(conn, CONN_FREE);
    if (unlikely(net->unfiltered) && !outgoing && !reset)
        descriptor_stop_linger(conn->source.fd); /* perhaps set by another process */
    source_close(&net->loop, &conn->source, reset);
    net->connection_n--;
    counters_add(net->counters, COUNTER_SLOTS, -1);
    if (unlikely(net->overdraft > 0))
        net->overdraft--;
    if (!outgoing) {
        assert(net->client_n > 0);
        net->client_n--;
        counters_add(net->counters, COUNTER_ACTIVE, -1);
    }
    if (unlikely(net->released != NULL))
        net->released(net);
    if (unlikely(net->awaited != NULL))
        net->awaited(net);
}

void conn_end(struct fb_conn *conn, fb_reason reason)
{
    bool reset = false;

    conn_debug(conn, "closed, reason %d", (int)reason);
    if (unlikely(reason != FB_FINISHED && reason != FB_PEER_GONE)) {
        reset = ends_with_reset(conn, reason);
        if ((reset || reason == FB_RESET) && conn_is_owned(conn) && conn->source.fd != -1)
            conn->sent -= queued_by_kernel(conn);
        if (conn->source.layered && !reset && reason != FB_RESET && conn->unsent == 0)
            conn->source.io->flush(&conn->source, true); /* output that was dropped looks cut off */
    }
    if (likely(conn_is_owned(conn)))
        detach_owner(conn, reason);
    else
        conn_deadline_clear(conn);
    release_conn_slot(conn, reset);
}

/* Ends the connection for the owner, sends FIN and discards input: a close would be a reset. */
static COLD void linger(struct fb_conn *conn)
{
    struct loop *loop = &conn->net->loop;

    conn_trace(conn, "lingers: the end of our half is sent, input is discarded");
    if (conn->write != CONN_WRITE_ENDED) {
        conn->source.io->shutdown(&conn->source);
        conn_set_write(conn, CONN_WRITE_ENDED);
    }
    if (conn->source.layered)
        conn->source.io->leave(&conn->source);
    source_disarm(loop, &conn->source, EVENT_WRITE); /* awaited for held output, perhaps */
    detach_owner(conn, FB_FINISHED);
    conn_set_phase(conn, CONN_LINGERING);
    if (conn->reason != 0) { /* aborted from `closed` */
        conn_end(conn, (fb_reason)conn->reason);
        return;
    }
    conn->source.events[EVENT_READ].ready = true; /* input_is_pending() has left it there */
    if (source_arm(loop, &conn->source, EVENT_READ) == -1)
        conn_end(conn, FB_NO_MEMORY);
    else
        conn_deadline_set(conn, conn->net->lingering_timeout);
}

/* Leaves an open connection to the next owner; it fails without memory, or while draining. */
static COLD void keep_open(struct fb_conn *conn)
{
    assert(conn->outgoing && conn->phase == CONN_KEEPING);
    if (!conn->ops->keepalive(conn))
        conn_fail(conn, FB_NO_MEMORY);
    if (conn->phase != CONN_KEEPING)
        return; /* failed, by its last owner perhaps */
    conn_set_phase(conn, CONN_OPEN);
    if (conn->read == CONN_READ_STOPPED)
        conn_set_read(conn, CONN_READ_ON);
    conn_redeliver(conn);
}

/* Whether the peer, before its end, has sent bytes still unread in the kernel. */
static NOINLINE bool input_is_pending(struct fb_conn *conn)
{
    uint8_t bytes[512]; /* the scratch buffer may still hold lent bytes */
    struct io_span span = { bytes, sizeof(bytes) };

    assert(conn->phase >= CONN_CLOSING && conn->read != CONN_READ_ENDED);
    /* past a layer, whose memory may hold the lent bytes */
    return conn->net->loop.mechanism->io->recv(&conn->source, &span).status == IO_DONE;
}

/* Leaves a closed connection until more happens: reading stops. */
static void wait_closed(struct fb_conn *conn)
{
    source_disarm(&conn->net->loop, &conn->source, EVENT_READ);
    conn_count(conn);
}

/* Whether the connection is left to a next owner, who must not be given input of the last one. */
static inline bool is_to_be_kept(const struct fb_conn *conn)
{
    return unlikely(conn->phase == CONN_KEEPING) && conn->in == NULL && !conn->source.partial &&
           conn->read != CONN_READ_ENDED;
}

void conn_finish_close(struct fb_conn *conn)
{
    assert(conn->out == NULL && conn->unsent == 0);
    if (!has_left(conn, !is_to_be_kept(conn))) {
        conn_watch_writing(conn);
        wait_closed(conn);
    } else if (is_to_be_kept(conn)) {
        keep_open(conn);
    } else if (unlikely(conn->pipe != NULL && conn_pipe_of(conn)->reset != CONN_PIPE_RESETS_NOT)) {
        if (reset_waits(conn))
            wait_closed(conn);
        else
            conn_end(conn, FB_PIPE_BROKEN);
    } else if (conn->read != CONN_READ_ENDED && input_is_pending(conn)) {
        linger(conn);
    } else {
        conn_end(conn, FB_FINISHED);
    }
}

/* Pauses reading, and asks the owner to stop where its limit is reached. */
static NOINLINE void note_pressure(struct fb_conn *conn)
{
    if (!conn->paused) {
        conn->paused = 1;
        conn_update_reading(conn);
    }
    if (conn->unwritable || conn->phase != CONN_OPEN || !conn_output_is_at(conn, 1))
        return;
    conn_debug(conn, "%zu bytes of output are unsent", conn->unsent);
    conn->unwritable = 1;
    conn->ops->unwritable(conn);
}

/* Back-pressure: reading pauses until the output has left, and `writable` runs then. */
static void update_pressure(struct fb_conn *conn)
{
    if (conn->pipe != NULL)
        return;
    if (conn->unsent > CONN_HIGH_WATER) {
        note_pressure(conn);
    } else if (conn->paused && conn->unsent < CONN_LOW_WATER) {
        conn->paused = 0;
        conn->unwritable = 0;
        conn_update_reading(conn);
        if (conn->phase == CONN_OPEN)
            conn->ops->writable(conn);
        if (conn->net->borrower == conn)
            conn_mark_dirty(conn); /* the connection counts as writing until the output has left */
    }
}

static void send_output(struct fb_conn *conn)
{
    if (conn_has_output(conn) && (!conn_send(conn) || !conn_own_output(conn)))
        return;
    if (unlikely(conn->source.held) && conn->source.events[EVENT_WRITE].ready &&
        !push_held_output(conn, false) && conn_has_failed(conn))
        return;
    if (conn->pipe != NULL)
        conn_direction_progress(conn);
    if (conn->write == CONN_WRITE_ENDING && conn->out == NULL && conn_pipe_is_empty(conn) &&
        has_left(conn, true)) {
        conn_trace(conn, "ends our half");
        conn_set_write(conn, CONN_WRITE_ENDED);
        if (conn->read != CONN_READ_ENDED || !both_have_ended(conn)) /* not reported by the close */
            conn->source.io->shutdown(&conn->source);
    }
    if (conn->out != NULL || !conn_pipe_is_empty(conn) || conn->write == CONN_WRITE_ENDING ||
        conn->source.held)
        conn_watch_writing(conn);
    else if (conn->source.events[EVENT_WRITE].armed)
        source_disarm(&conn->net->loop, &conn->source, EVENT_WRITE);
    update_pressure(conn);
}

/* Finds out how our connect() has ended. */
static void check_connect(struct fb_conn *conn)
{
    struct io_result result = { .status = IO_DONE };

    if (unlikely(conn->source.fd == -1)) {
        if (conn->net->flushing) /* written bytes wait for the next turn */
            loop_post(&conn->net->loop, &conn->source.events[EVENT_WRITE], QUEUE_NEXT);
        else
            conn->ops->connect_again(conn);
        return;
    }
    if (!conn->source.events[EVENT_WRITE].ready) {
        conn_watch_connect(conn);
        return;
    }
    if (!conn_is_told_connected(conn))
        result = conn->source.io->connected(&conn->source);
    switch (result.status) {
    case IO_DONE:
        conn_trace(conn, "connected");
        conn_establish(conn);
        break;
    case IO_AGAIN_READ:
    case IO_AGAIN_WRITE:
        conn->source.events[EVENT_WRITE].ready = false;
        conn_watch_writing(conn);
        break;
    default:
        conn_connect_failed(conn, result.error, IO_CONNECT);
    }
}

/* Ends the connection, or waits for further events. */
static void end_or_wait(struct fb_conn *conn)
{
    switch (conn->phase) {
    case CONN_OPENING:
    case CONN_OPEN:
        if (conn->write != CONN_WRITE_ENDED || conn->read != CONN_READ_ENDED ||
            !both_have_ended(conn))
            break;
        conn_end(conn, FB_FINISHED);
        return;
    case CONN_CLOSING:
    case CONN_KEEPING:
        if (conn_has_output(conn) || !conn_pipe_is_empty(conn)) /* `writable` may have added it */
            wait_closed(conn);
        else
            conn_finish_close(conn);
        return;
    case CONN_CLOSING_UNCONNECTED:
        if (conn_has_output(conn))
            wait_closed(conn);
        else
            conn_end(conn, FB_FINISHED);
        return;
    case CONN_FAILED:
    case CONN_LINGERED:
        conn_end(conn, (fb_reason)conn->reason);
        return;
    default:
        break;
    }
    conn_count(conn);
}

void conn_flush(struct fb_conn *conn)
{
    assert(conn->phase != CONN_FREE && conn->phase != CONN_ENDING);
    if (conn->phase == CONN_CLOSING && conn->unsent == 0 && conn->out == NULL &&
        conn_pipe_is_empty(conn) && conn->write != CONN_WRITE_ENDING &&
        !conn->source.events[EVENT_WRITE].armed) { /* no output, and no end to send */
        conn_finish_close(conn);
        return;
    }
    if (conn_has_failed(conn)) {
        conn_end(conn, (fb_reason)conn->reason);
        return;
    }
    if (!conn_can_send(conn) && conn_is_connecting(conn)) {
        check_connect(conn);
        if (conn_is_connecting(conn))
            conn_own_output(conn);
    }
    if (conn_can_send(conn))
        send_output(conn);
    end_or_wait(conn);
}
