/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connections piped together: input of one end is output of the other, until both have ended.
 *
 * Responsible for the callbacks of piped connections, and for the pipe's idle timeout, kept as the
 * deadline of one end. Bytes are copied at first; a busy direction is spliced (conn_direction.c).
 * Invariant: the pipe lives until the second end has ended, and `closed` runs for both owners. */
#include "net/conn_pipe.h"

#include "net/conn_deadline.h"
#include "net/conn_direction.h"
#include "net/conn_flush.h"
#include "net/conn_output.h"

#include <errno.h>

/* A proxied session has a pipe. */
static_assert(sizeof(struct conn_pipe) <= 120, "a pipe has become dearer");
/* A whole buffer is no limit. */
static_assert(NET_SCRATCH <= UINT16_MAX + 1, "a limit does not fit into a direction");

uint64_t conn_pipe_moved_ms(const struct fb_conn *conn)
{
    const struct conn_pipe *pipe = conn_pipe_of(conn);
    uint64_t last = 0;

    for (int i = 0; i < 2; i++) {
        const struct conn_pipe_end *end = &pipe->ends[i];
        uint64_t moved = end->conn != NULL ? end->conn->moved_ms : end->ended_moved_ms;

        if (moved > last)
            last = moved;
    }
    return last;
}

/* Makes the rest of the timeout the deadline of an end, which may wait for its connect() too. */
static void time_end(struct conn_pipe *pipe, struct fb_conn *conn, uint64_t ms)
{
    uint64_t now = conn->net->loop.clock.mono_ms;
    uint64_t most = pipe->connect_by > now ? pipe->connect_by - now : 0;

    pipe->timed = (int8_t)conn->pipe->from.index;
    conn_deadline_set(conn, ms < most ? ms : most);
}

/* Moves the pipe's timeout to an end's deadline; the end had no timeout before. */
static void time_other(struct conn_pipe *pipe, struct fb_conn *conn, uint64_t ms)
{
    pipe->connect_by = UINT64_MAX;
    if (conn->limited && (conn->phase == CONN_OPENING || conn_is_connecting(conn)))
        pipe->connect_by = conn_deadline_at(conn);
    time_end(pipe, conn, ms);
}

/* Whether the rate stops reading from an end: then no peer is to blame for the silence. */
static bool is_throttled(const struct conn_pipe *pipe)
{
    for (int i = 0; i < 2; i++)
        if (pipe->ends[i].conn != NULL && conn_throttle_waits(pipe->ends[i].conn))
            return true;
    return false;
}

/* Ends both after the timeout without a byte. An end with an expired connect() ends alone. */
static void pipe_expired(struct fb_conn *conn)
{
    struct conn_pipe *pipe = conn_pipe_of(conn);
    uint64_t now = conn->net->loop.clock.mono_ms, idle = now - conn_pipe_moved_ms(conn);

    CHECK_KIND(pipe, CONN_PIPE_KIND);
    if (pipe->reset == CONN_PIPE_AWAITS_QUEUE) {
        conn_mark_dirty(conn);
    } else if (pipe->timed != conn_pipe_index(conn) || now >= pipe->connect_by) {
        conn_connect_failed(conn, ETIMEDOUT, IO_CONNECT);
    } else if (idle < pipe->timeout) {
        time_end(pipe, conn, pipe->timeout - idle);
    } else if (is_throttled(pipe)) { /* the timeout begins when the rate allows more */
        time_end(pipe, conn, pipe->timeout);
    } else {
        for (int i = 0; i < 2; i++)
            if (pipe->ends[i].conn != NULL)
                conn_fail(pipe->ends[i].conn, FB_TIMED_OUT);
    }
}

/* The time of the connect() is over: the deadline, if also the pipe's, may come early now. */
static void pipe_opened(struct fb_conn *conn)
{
    if (conn_pipe_of(conn)->timed == conn_pipe_index(conn))
        conn_pipe_of(conn)->connect_by = UINT64_MAX;
    else
        conn_deadline_clear(conn);
}

/* The rate allows more: reads on, or leaves that to the flush of the other end's output. */
static void throttle_expired(struct loop *loop, struct timer *timer)
{
    struct conn_throttle *throttle = container_of(timer, struct conn_throttle, timer);
    struct fb_conn *conn = throttle->end->conn;
    struct fb_conn *to = conn_pipe_other(conn);

    assert(conn_throttle_of(conn) == throttle && loop == &conn->net->loop);
    conn_note_moved(conn);
    if (to != NULL && !conn_is_connecting(to))
        conn_mark_dirty(to);
    net_flush(conn->net);
}

/* Goes over to splicing, where both ends can, or looks again later. */
static void try_to_splice(struct fb_conn *conn, struct fb_conn *to)
{
    struct conn_direction *direction = &conn->pipe->from;
    bool (*offload)(struct source *source) = to->source.io->offload;

    if (conn->source.io->splice_in == NULL)
        direction->look_at = UINT64_MAX;
    else if (conn->received < direction->look_at)
        return;
    else if (to->source.io->splice_out != NULL)
        conn_pipe_set_splices(conn, true);
    else if (offload == NULL || !offload(&to->source))
        direction->look_at = UINT64_MAX;
    else if (to->source.io->splice_out != NULL)
        conn_pipe_set_splices(conn, true);
    else
        direction->look_at = conn->received + CONN_PIPE_COPIED_MOST;
}

/* Tells of the first byte, or goes over to splicing. */
static COLD void look_at_direction(struct fb_conn *conn, struct fb_conn *to)
{
    struct conn_pipe *pipe = conn_pipe_of(conn);
    bool is_first = conn_pipe_index(conn) == 1 && pipe->awaits_first;

    if (is_first)
        conn->pipe->from.look_at = CONN_PIPE_COPIED_MOST; /* no byte came before the pipe */
    try_to_splice(conn, to);
    if (!is_first)
        return;
    pipe->awaits_first = false;
    conn->pipe->ops->first_byte(conn, pipe->first_byte);
}

static size_t pipe_data(struct fb_conn *conn, fb_bytes in)
{
    struct conn_direction *direction = &conn->pipe->from;
    struct fb_conn *to = conn_pipe_other(conn);

    if (unlikely(to == NULL))
        return in.n; /* the other end has gone */
    conn_write(to, in.p, in.n);
    if (unlikely(conn_is_connecting(to)))
        conn_stop(conn);
    if (unlikely(conn->received >= direction->look_at))
        look_at_direction(conn, to);
    return in.n;
}

/* Whether an end has nothing to send. */
static bool is_quiet(const struct fb_conn *conn)
{
    return conn->phase == CONN_OPEN && conn->unsent == 0 && conn->out == NULL &&
           conn_direction_to(conn)->buffered == 0;
}

/* The peer has ended its half: the flush ends the opposite half, after bytes sent before. */
static void pipe_eof(struct fb_conn *conn, fb_bytes rest)
{
    struct fb_conn *to = conn_pipe_other(conn);

    if (rest.n > 0 && to != NULL)
        conn_write(to, rest.p, rest.n);
    if (likely(to != NULL && conn_pipe_of(conn)->ends_together && is_quiet(to)))
        conn_close(to);
    else
        conn_mark_dirty(to != NULL ? to : conn);
}

/* Closes the remaining end after its unsent output. The timeout runs on, as the end's deadline. */
static void close_other(struct fb_conn *conn)
{
    struct conn_pipe *pipe = conn_pipe_of(conn);
    uint64_t idle = conn->net->loop.clock.mono_ms - conn_pipe_moved_ms(conn);

    conn_close(conn);
    if (pipe->timeout > 0 && pipe->timed == CONN_PIPE_UNTIMED)
        time_other(pipe, conn, idle < pipe->timeout ? pipe->timeout - idle : 1);
}

/* The other end is broken. Bytes received from b are delivered before `a` ends; with a reset,
 * unless the pipe hides breaks, lest the peer takes the bytes for complete. */
static COLD void follow_broken(struct conn_pipe *pipe, struct fb_conn *conn, fb_reason reason)
{
    bool delivers = reason == FB_RESET || reason == FB_IO_ERROR;

    if (!delivers || conn_pipe_index(conn) != 0 || conn->phase != CONN_OPEN) {
        conn_fail(conn, FB_PIPE_BROKEN);
        return;
    }
    assert(pipe->reset == CONN_PIPE_RESETS_NOT);
    if (!pipe->b_break_ends)
        pipe->reset = CONN_PIPE_RESETS;
    close_other(conn);
}

/* Ends the remaining connection, or its half, after the end of the first. */
static inline void follow_other(struct conn_pipe *pipe, struct fb_conn *conn, fb_reason reason)
{
    switch (reason) {
    case FB_FINISHED:
    case FB_PEER_GONE:
        if (pipe->ends_together && conn->read == CONN_READ_ENDED)
            conn_fail(conn, FB_PEER_GONE);
        else if (conn->write == CONN_WRITE_ENDED && conn->read == CONN_READ_ENDED)
            conn_mark_dirty(conn);
        else
            close_other(conn);
        break;
    case FB_TIMED_OUT:
    case FB_DRAINED:
    case FB_ABORTED:
        conn_fail(conn, reason);
        break;
    default:
        follow_broken(pipe, conn, reason);
    }
}

static void free_pipe(struct conn_pipe *pipe, struct net *net)
{
    for (int i = 0; i < 2; i++)
        assert(pipe->ends[i].from.buffered == 0);
    pipe->kind = 0;
    if (unlikely(pipe->limits != NULL))
        memory_release(net->memory, pipe->limits);
    spares_give(&net->pipes, pipe);
}

/* Gives the connection back to its owner. */
static inline void leave_pipe(struct conn_pipe_end *end)
{
    struct fb_conn *conn = end->conn;

    conn->ops = end->ops;
    conn->by_pipe = 0;
    conn->pipe = NULL;
    end->conn = NULL;
}

static void pipe_closed(struct fb_conn *conn, fb_reason reason)
{
    struct conn_pipe *pipe = conn_pipe_of(conn);
    struct conn_pipe_end *end = conn->pipe, *other = conn_pipe_other_end(conn);

    CHECK_KIND(pipe, CONN_PIPE_KIND);
    conn_direction_release(conn->net, &other->from);
    if (other->conn == NULL)
        conn_direction_release(conn->net, &end->from);
    if (unlikely(pipe->limits != NULL))
        timer_del(&conn->net->loop, &conn_throttle_of(conn)->timer);
    if (pipe->timed == end->from.index)
        pipe->timed = CONN_PIPE_UNTIMED;
    leave_pipe(end);
    end->ended_moved_ms = conn->moved_ms;
    if (other->conn != NULL)
        follow_other(pipe, other->conn, reason);
    else
        free_pipe(pipe, conn->net);
    conn->ops->closed(conn, reason);
}

/* Whether an end is open, and nothing of it lies in the kernel's pipe or in a layer. */
static inline bool is_plain_end(const struct conn_pipe_end *end)
{
    return end->from.kernel.read == -1 && end->conn->source.io->flush == NULL &&
           end->conn->write == CONN_WRITE_ON;
}

/* Whether the latest receive has emptied the socket. For a server whose client has gone; a client
 * gets a closer look, as a close with unread input takes away the reply on its way. */
static inline bool was_emptied(const struct fb_conn *conn)
{
    const struct event *reading = &conn->source.events[EVENT_READ];
    const struct io_ops *io = conn->source.io;

    return conn->received > 0 && reading->armed && !reading->ready &&
           (io->pending == NULL || io->pending(&conn->source) == 0);
}

bool conn_pipe_end_both(struct fb_conn *conn)
{
    struct conn_pipe *pipe = conn_pipe_of(conn);
    struct conn_pipe_end *other = conn_pipe_other_end(conn);
    uint32_t generation = conn->source.generation;
    struct fb_conn *to = other->conn;

    CHECK_KIND(pipe, CONN_PIPE_KIND);
    assert(conn->read == CONN_READ_ENDED && conn->in == NULL);
    if (unlikely(to == NULL || !pipe->ends_together || pipe->limits != NULL || !is_quiet(to) ||
                 !is_plain_end(conn->pipe) || !is_plain_end(other) || conn->out != NULL))
        return false;
    leave_pipe(conn->pipe);
    leave_pipe(other);
    free_pipe(pipe, conn->net);
    conn->reason = FB_PEER_GONE; /* the owner can add no output in `closed` of the second */
    conn_set_phase(conn, CONN_FAILED);
    conn_set_phase(to, CONN_CLOSING);
    if (likely(to->outgoing && was_emptied(to)))
        conn_end(to, FB_FINISHED);
    else
        conn_finish_close(to);
    if (likely(conn->source.generation == generation)) /* not ended with the other */
        conn_end(conn, FB_PEER_GONE);
    return true;
}

static void pipe_connect_again(struct fb_conn *conn)
{
    conn->pipe->ops->connect_again(conn);
}

static void pipe_describe(
    const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT])
{
    conn->pipe->ops->describe(conn, line, client);
}

static const struct conn_ops pipe_ops = {
    .opened = pipe_opened,
    .data = pipe_data,
    .eof = pipe_eof,
    .expired = pipe_expired,
    .closed = pipe_closed,
    .connect_again = pipe_connect_again,
    .describe = pipe_describe,
};

/* Gives a pipe rates; false without memory. */
static bool add_limits(struct conn_pipe *pipe, struct net *net, const uint64_t rates[2])
{
    struct conn_limits *limits = memory_alloc(net->memory, sizeof(*limits));

    assert(pipe->limits == NULL && (rates[0] | rates[1]) != 0);
    if (limits == NULL)
        return false;
    *limits = (struct conn_limits) { .began_ms = net->loop.clock.mono_ms };
    for (int i = 0; i < 2; i++)
        limits->from[i] = (struct conn_throttle) {
            .timer.expired = throttle_expired, .end = &pipe->ends[i], .rate = rates[i]
        };
    pipe->limits = limits;
    return true;
}

static void join_end(struct conn_pipe *pipe, int index, struct fb_conn *conn, size_t most)
{
    pipe->ends[index] = (struct conn_pipe_end) {
        .conn = conn,
        .ops = conn->ops,
        .from = { .kernel = { -1, -1 },
            .index = index != 0,
            .most = most < NET_SCRATCH ? (uint16_t)most : 0,
            .look_at = conn->received + CONN_PIPE_COPIED_MOST },
    };
    conn->pipe = &pipe->ends[index];
    conn->ops = &pipe_ops;
    if (unlikely(pipe->limits != NULL)) {
        pipe->limits->from[index].before =
            conn->received - (conn->in != NULL ? chunk_length(conn->in) : 0);
        conn->by_pipe = 1;
    }
    conn->paused = 0;
    conn->unwritable = 0;
}

/* Ends the owner's deadlines, but those of connects, and begins the pipe's time. */
static inline void begin_time(struct conn_pipe *pipe, struct fb_conn *a, struct fb_conn *b)
{
    struct fb_conn *timed = NULL;

    if (pipe->timeout > 0) {
        /* an open end, preferably with a deadline, only to be put off */
        timed =
            a->phase != CONN_OPEN || (!a->limited && b->limited && b->phase == CONN_OPEN) ? b : a;
        time_other(pipe, timed, pipe->timeout);
    }
    if (a->limited && a != timed && a->phase == CONN_OPEN)
        conn_deadline_clear(a);
    if (b->limited && b != timed && b->phase == CONN_OPEN)
        conn_deadline_clear(b);
}

/* Reads on, whether or not the owner had stopped the connection, and offers input that was left. */
static inline void begin_end(struct fb_conn *conn, const struct fb_conn *other)
{
    const struct event *reading = &conn->source.events[EVENT_READ];
    bool is_read = reading->armed && !reading->ready && conn->in == NULL &&
                   conn->net->lent.n == 0 && !conn->net->flushing;

    if (conn->read == CONN_READ_STOPPED)
        conn_set_read(conn, CONN_READ_ON);
    if (likely(conn->phase == CONN_OPEN) && !is_read)
        conn_redeliver(conn);
    if (unlikely(conn->unsent > 0 || conn->out != NULL || conn->write != CONN_WRITE_ON ||
                 other->read == CONN_READ_ENDED))
        conn_mark_dirty(conn);
}

int conn_pipe(struct fb_conn *a, struct fb_conn *b, const struct conn_pipe_options *options)
{
    struct net *net = a->net;
    struct conn_pipe *pipe;

    assert(a != b && a->net == b->net && a->pipe == NULL && b->pipe == NULL);
    assert(conn_is_active(a) && conn_is_active(b));
    pipe = spares_take(&net->pipes);
    if (pipe == NULL)
        return -1;
    pipe->limits = NULL;
    if ((options->rates[0] | options->rates[1]) != 0 && !add_limits(pipe, net, options->rates)) {
        spares_give(&net->pipes, pipe);
        return -1;
    }
    pipe->kind = CONN_PIPE_KIND;
    pipe->ends_together = options->ends_together;
    pipe->b_break_ends = options->b_break_ends;
    pipe->reset = CONN_PIPE_RESETS_NOT;
    pipe->timeout = options->timeout;
    pipe->timed = CONN_PIPE_UNTIMED;
    join_end(pipe, 0, a, options->most);
    join_end(pipe, 1, b, options->most);
    pipe->first_byte = options->first_byte;
    pipe->awaits_first = b->received == 0 && pipe->ends[1].ops->first_byte != NULL;
    if (pipe->awaits_first)
        pipe->ends[1].from.look_at = 1;
    begin_time(pipe, a, b);
    begin_end(a, b);
    begin_end(b, a);
    return 0;
}
