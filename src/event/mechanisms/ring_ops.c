/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of a ring: given to the kernel for the wishes of each watch, at most one of a
 * kind, and taken back; unwanted operations are cancelled. Only ring_drain() waits. Invariant:
 * input is received only while the owner wants input and has taken earlier input, so that an unread
 * connection holds no buffer for longer than a turn. */

#include "event/mechanisms/ring_ops.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* A watch's number and its operation in the kernel's number of an operation. */
#define OP_BITS 8
/* The most waits for cancellations, and the time of a wait in ms. */
#define DRAINS 1000
#define DRAIN_MS 10

static uint64_t op_number(const struct ring *ring, const struct ring_watch *watch, int op)
{
    return (uint64_t)(watch - ring->watches) << OP_BITS | (unsigned)op;
}

static bool has_input(const struct ring_watch *watch)
{
    return watch->in.p != NULL || watch->in.eof || watch->in.error != 0;
}

void ring_update_unread(struct ring *ring, struct ring_watch *watch)
{
    bool unread = watch->source != NULL && watch->wanted[EVENT_READ] && has_input(watch);

    if (unread == watch->unread)
        return;
    watch->unread = unread;
    if (unread)
        TAILQ_INSERT_TAIL(&ring->unread, watch, unread_link);
    else
        TAILQ_REMOVE(&ring->unread, watch, unread_link);
}

/* ---- To the kernel ---- */

/* Words of debug lines. */
static const char *const op_words[] = {
    [RING_READ] = "read",
    [RING_WRITE] = "wait for room",
    [RING_SEND] = "send",
};

static void note_busy(struct ring *ring, struct ring_watch *watch, enum ring_op op)
{
    assert(!watch->busy[op]);
    watch->busy[op] = true;
    watch->cancelled[op] = false;
    ring->busy_n++;
    if (watch->source != NULL)
        debug_source(ring->loop, watch->source, "io_uring is given a %s", op_words[op]);
}

static bool begin_poll(
    struct ring *ring, struct ring_watch *watch, enum ring_op op, unsigned events)
{
    struct io_uring_sqe *entry = ring_entry(ring);

    if (entry == NULL)
        return false;
    io_uring_prep_poll_add(entry, watch->source->fd, events);
    entry->user_data = op_number(ring, watch, op);
    note_busy(ring, watch, op);
    return true;
}

/* Receives into a buffer of the kernel's choice; without known input it looks for some first. */
static bool begin_receive(struct ring *ring, struct ring_watch *watch)
{
    struct io_uring_sqe *entry = ring_entry(ring);

    if (entry == NULL)
        return false;
    io_uring_prep_recv(entry, watch->source->fd, NULL, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = RING_GROUP;
    if (!watch->in.more || watch->in.exhausted)
        entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
    entry->user_data = op_number(ring, watch, RING_READ);
    watch->in.more = watch->in.exhausted = false;
    note_busy(ring, watch, RING_READ);
    return true;
}

/* Sends as much as there is room for, without a result unless the owner waits, as a result would
 * end the wait; the rest waits for room. */
static bool begin_send(struct ring *ring, struct ring_watch *watch)
{
    struct io_uring_sqe *entry = ring_entry(ring);
    struct ring_output *out = &watch->out;
    int flags = MSG_NOSIGNAL | MSG_WAITALL | (out->waits ? 0 : MSG_DONTWAIT);

    if (entry == NULL)
        return false;
    io_uring_prep_send(entry, watch->source->fd, out->p + out->at, out->end - out->at, flags);
    entry->user_data = op_number(ring, watch, RING_SEND);
    note_busy(ring, watch, RING_SEND);
    out->silent = !out->waits && !watch->wanted[EVENT_WRITE];
    if (out->silent) {
        entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
        out->entry = ring->io.sq.sqe_tail - 1;
        TAILQ_INSERT_TAIL(&ring->silent, watch, silent_link);
    }
    return true;
}

static bool cancel(struct ring *ring, struct ring_watch *watch, enum ring_op op)
{
    struct io_uring_sqe *entry;

    if (!watch->busy[op] || watch->cancelled[op])
        return true;
    entry = ring_entry(ring);
    if (entry == NULL)
        return false;
    io_uring_prep_cancel64(entry, op_number(ring, watch, op), 0);
    entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
    entry->user_data = RING_CANCEL;
    watch->cancelled[op] = true;
    return true;
}

static bool prepare_read(struct ring *ring, struct ring_watch *watch)
{
    bool wanted = watch->wanted[EVENT_READ] && !watch->connecting && !has_input(watch);
    bool polls = watch->listening || watch->splices || watch->plain;

    if (watch->busy[RING_READ])
        return (wanted && polls == watch->polled) || cancel(ring, watch, RING_READ);
    if (!wanted)
        return true;
    watch->polled = polls;
    if (!polls)
        return begin_receive(ring, watch);
    return begin_poll(ring, watch, RING_READ, watch->listening ? POLLIN : POLLIN | POLLRDHUP);
}

/* A send under way stands for the wait for room. */
static bool prepare_write(struct ring *ring, struct ring_watch *watch)
{
    bool wanted = watch->wanted[EVENT_WRITE] && watch->out.p == NULL;

    if (watch->out.p != NULL && !watch->busy[RING_SEND] && !begin_send(ring, watch))
        return false;
    if (watch->busy[RING_WRITE])
        return wanted || cancel(ring, watch, RING_WRITE);
    return !wanted || begin_poll(ring, watch, RING_WRITE, POLLOUT);
}

/* Prepares the watch's operations; false: no room for more. */
static bool prepare(struct ring *ring, struct ring_watch *watch)
{
    if (watch->source == NULL) {
        for (int op = 0; op < RING_OPS; op++)
            if (!cancel(ring, watch, (enum ring_op)op))
                return false;
        return true;
    }
    if (!watch->wanted[EVENT_READ])
        ring_input_keep(ring, watch);
    return prepare_read(ring, watch) && prepare_write(ring, watch);
}

void ring_prepare(struct ring *ring)
{
    struct ring_watch *watch;

    while ((watch = TAILQ_FIRST(&ring->changed)) != NULL && prepare(ring, watch)) {
        TAILQ_REMOVE(&ring->changed, watch, changed_link);
        watch->changed = false;
        if (watch->source == NULL && !ring_is_busy(watch))
            ring_watch_put(ring, watch);
    }
}

void ring_renew(struct ring *ring)
{
    struct ring_watch *watch;

    TAILQ_FOREACH (watch, &ring->plain, silent_link)
        for (int op = 0; op < RING_OPS; op++)
            cancel(ring, watch, (enum ring_op)op); /* without room for that: the next time */
}

void ring_forget(struct ring *ring, struct source *source)
{
    struct ring_watch *watch = ring_watch_of(ring, source);

    if (watch == NULL)
        return;
    assert(watch->source == source);
    source->position = 0;
    watch->source = NULL;
    if (watch->plain)
        TAILQ_REMOVE(&ring->plain, watch, silent_link);
    watch->wanted[EVENT_READ] = watch->wanted[EVENT_WRITE] = false;
    ring_update_unread(ring, watch);
    ring_input_drop(ring, watch);
    if (!watch->busy[RING_SEND])
        ring_output_drop(ring, watch);
    if (ring_is_busy(watch)) {
        ring_note_change(ring, watch);
        return;
    }
    if (watch->changed)
        TAILQ_REMOVE(&ring->changed, watch, changed_link);
    watch->changed = false;
    ring_watch_put(ring, watch);
}

/* ---- From the kernel ---- */

/* A descriptor closed by foreign code: an alert, or the end of the loop. Told once. */
static COLD void note_closed(
    struct ring *ring, struct ring_watch *watch, enum event_direction direction)
{
    struct loop *loop = ring->loop;

    if (loop_report_closed(loop, watch->source, "io_uring", "io_uring_enter") &&
        watch->wanted[direction])
        loop_report(loop, watch->source, direction);
    watch->wanted[direction] = false;
}

/* Whether an operation is only to be given again. */
static bool error_passes(int error)
{
    return error == ECANCELED || error == EINTR || error == EAGAIN;
}

/* Takes a buffer filled for a source gone or failed. */
static void drop_received(struct ring *ring, int result, unsigned flags)
{
    if (result <= 0 || !(flags & IORING_CQE_F_BUFFER))
        return;
    ring_buffer_taken(ring, (int)(flags >> IORING_CQE_BUFFER_SHIFT));
    ring_buffer_release(ring, (int)(flags >> IORING_CQE_BUFFER_SHIFT));
}

/* Takes the result of a receive; the input is reported when all has been taken. */
static void take_received(struct ring *ring, struct ring_watch *watch, int result, unsigned flags)
{
    struct ring_input *in = &watch->in;

    assert(in->p == NULL && !in->eof);
    if (in->error != 0) { /* a send has failed meanwhile */
        drop_received(ring, result, flags);
        return;
    }
    in->more = (flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
    if (result > 0) {
        assert(flags & IORING_CQE_F_BUFFER);
        in->buffer = (int)(flags >> IORING_CQE_BUFFER_SHIFT);
        in->p = ring_buffer_taken(ring, in->buffer);
        in->end = (uint32_t)result;
    } else if (result == 0) {
        in->eof = true;
    } else if (result == -ENOBUFS) {
        in->exhausted = true; /* for one turn: lent buffers come back */
    } else if (!error_passes(-result)) {
        in->error = -result;
    }
    if (result == -EBADF)
        note_closed(ring, watch, EVENT_READ);
    ring_update_unread(ring, watch);
    if (!watch->unread)
        ring_note_change(ring, watch);
}

/* Reports the result of a wait, and waits again while wanted: levels, not edges. */
static void take_polled(
    struct ring *ring, struct ring_watch *watch, enum event_direction direction, int result)
{
    struct source *source = watch->source;

    ring_note_change(ring, watch);
    if (result == -EBADF)
        note_closed(ring, watch, direction);
    if (result < 0 && error_passes(-result))
        return;
    if (direction == EVENT_READ && result > 0 && (result & (POLLRDHUP | POLLHUP)))
        source->eof = true;
    if (watch->wanted[direction])
        loop_report(ring->loop, source, direction);
}

static void take_sent(struct ring *ring, struct ring_watch *watch, int result)
{
    struct ring_output *out = &watch->out;

    if (out->silent)
        TAILQ_REMOVE(&ring->silent, watch, silent_link);
    out->silent = false;
    out->waits = true;
    if (result > 0) {
        assert((uint32_t)result <= out->end - out->at);
        out->at += (uint32_t)result;
    }
    if (watch->source != NULL && (out->at < out->end && (result > 0 || error_passes(-result)))) {
        ring_note_change(ring, watch);
        return;
    }
    ring_output_drop(ring, watch);
    if (watch->source == NULL)
        return;
    if (result <= 0) { /* the owner finds out by any event */
        out->error = -result;
        if (watch->in.error == 0 && !watch->wanted[EVENT_WRITE])
            watch->in.error = -result;
        ring_update_unread(ring, watch);
    }
    if (!watch->wanted[EVENT_WRITE])
        return;
    ring_note_change(ring, watch);
    loop_report(ring->loop, watch->source, EVENT_WRITE);
}

static void take_result(
    struct ring *ring, struct ring_watch *watch, enum ring_op op, int result, unsigned flags)
{
    assert(watch->in_use && watch->busy[op]);
    watch->busy[op] = false;
    ring->busy_n--;
    if (watch->source != NULL)
        debug_source(ring->loop, watch->source, "io_uring returns a %s: %d", op_words[op], result);
    if (op == RING_SEND)
        take_sent(ring, watch, result);
    else if (watch->source == NULL)
        drop_received(ring, op == RING_READ && !watch->polled ? result : 0, flags);
    else if (op == RING_WRITE || watch->polled)
        take_polled(ring, watch, op == RING_READ ? EVENT_READ : EVENT_WRITE, result);
    else
        take_received(ring, watch, result, flags);
    if (watch->source == NULL && !watch->changed && !ring_is_busy(watch))
        ring_watch_put(ring, watch);
}

/* Takes the kernel's results; returns their number. */
static unsigned take_results(struct ring *ring)
{
    struct io_uring_cqe *result;
    unsigned head, n = 0;

    io_uring_for_each_cqe(&ring->io, head, result)
    {
        unsigned op = (unsigned)result->user_data & ((1u << OP_BITS) - 1);
        uint64_t index = result->user_data >> OP_BITS;

        n++;
        if (op == RING_CANCEL)
            continue;
        assert(index < ring->used_n && op < RING_OPS);
        take_result(ring, &ring->watches[index], (enum ring_op)op, result->res, result->flags);
    }
    io_uring_cq_advance(&ring->io, n);
    return n;
}

unsigned ring_reap(struct ring *ring)
{
    unsigned n = take_results(ring), head;
    struct ring_watch *watch;

    /* results for which there was no room */
    while (unlikely(io_uring_cq_has_overflow(&ring->io)) && ring_enter(ring, 0, NULL) >= 0)
        n += take_results(ring);
    head = *ring->io.sq.khead; /* sends before it have ended, or gave a result */
    while ((watch = TAILQ_FIRST(&ring->silent)) != NULL && (int)(watch->out.entry - head) < 0)
        take_result(ring, watch, RING_SEND, (int)(watch->out.end - watch->out.at), 0);
    TAILQ_FOREACH (watch, &ring->unread, unread_link)
        loop_report(ring->loop, watch->source, EVENT_READ);
    return n;
}

void ring_drain(struct ring *ring)
{
    ring_buffers_take_back(ring);
    for (int i = 0; i < DRAINS && ring->in_use_n > 0; i++) {
        ring_prepare(ring);
        if (ring->in_use_n == 0)
            break;
        ring_enter(ring, DRAIN_MS, NULL);
        ring_reap(ring);
    }
}
