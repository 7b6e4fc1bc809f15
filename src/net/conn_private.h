/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the files of connections share. The files call downwards only:
 *
 *     conn_connect.c                 owners' calls that make connections
 *     conn.c                         slots
 *     net.c                          all connections: failed, counted, checked
 *     conn_input.c                   readable: received, given to the owner, flushed
 *     conn_pipe.c                    two connections joined
 *     conn_pass.c                    a pipe's bytes, from one socket to the other
 *     conn_output.c                  owners' calls that send; the flush of dirty connections
 *     conn_flush.c                   what else a flush has to do, and the end of a connection
 *     conn_splice.c                  a pipe's bytes within the kernel
 *     conn_throttle.c                how much a pipe receives
 *     conn_send.c                    output as a ring of chunks, and the system call
 *     conn_reset.c                   what resets take back and what they leave
 *     conn_state.c                   phase, halves, dirty mark
 *     conn_deadline.c, conn_log.c, chunk.c */
#pragma once

#include "net/conn.h"

#include <assert.h>

/* Unsent bytes above which a connection is not read, and below which reading goes on. */
#define CONN_HIGH_WATER (64 * 1024)
#define CONN_LOW_WATER (16 * 1024)

/* ---- conn_state.c ---- */

#define TO(phase) (1U << CONN_##phase)

/* For each phase those that may follow, as bits. */
static const uint16_t conn_steps[CONN_PHASES] = {
    [CONN_FREE] = TO(CONNECTING) | TO(OPENING),
    [CONN_LINGERING] = TO(LINGERED) | TO(FREE),
    [CONN_LINGERED] = TO(FREE),
    [CONN_CONNECTING] = TO(OPENING) | TO(CLOSING_UNCONNECTED) | TO(FAILED) | TO(ENDING),
    [CONN_OPENING] = TO(OPEN) | TO(CLOSING) | TO(FAILED) | TO(ENDING),
    [CONN_OPEN] =
        TO(OPENING) /* for another owner */ | TO(CLOSING) | TO(KEEPING) | TO(FAILED) | TO(ENDING),
    [CONN_CLOSING] = TO(FAILED) | TO(ENDING),
    [CONN_KEEPING] = TO(OPEN) | TO(CLOSING) | TO(FAILED) | TO(ENDING),
    [CONN_CLOSING_UNCONNECTED] = TO(CLOSING) | TO(FAILED) | TO(ENDING),
    [CONN_FAILED] = TO(ENDING),
    [CONN_ENDING] = TO(OPEN) /* for another owner */ | TO(LINGERING) | TO(FREE),
};
#undef TO

/* Returns the phases that one may follow, as bits: a constant, if the phase is one. */
static ALWAYS_INLINE unsigned conn_origins(enum conn_phase phase)
{
#define FROM(origin) ((conn_steps[CONN_##origin] >> phase & 1U) << CONN_##origin)
    return FROM(FREE) | FROM(LINGERING) | FROM(LINGERED) | FROM(CONNECTING) | FROM(OPENING) |
           FROM(OPEN) | FROM(CLOSING) | FROM(KEEPING) | FROM(CLOSING_UNCONNECTED) | FROM(FAILED) |
           FROM(ENDING);
#undef FROM
}

/* Change the phase, the receiving half and the sending half, and assert that the step is legal. */
static inline void conn_set_phase(struct fb_conn *conn, enum conn_phase phase)
{
    assert((conn_origins(phase) >> conn->phase & 1) != 0);
    conn->phase = phase;
}

static inline void conn_set_read(struct fb_conn *conn, enum conn_read read)
{
    assert(conn->read != CONN_READ_ENDED); /* no state follows the end */
    assert(conn->read != (unsigned)read);
    conn->read = read;
}

void conn_set_write(struct fb_conn *conn, enum conn_write write);

/* Returns the reason that an errno of the connection stands for. */
fb_reason conn_reason_of(int error);
/* Tells the owner of the first errno. */
void conn_tell_failed(struct fb_conn *conn, int error);
/* Watches or pauses reading as conn_may_read() says. */
void conn_update_reading(struct fb_conn *conn);

/* conn_stopped.c: Ends a stopped connection that its peer has broken. */
void conn_stopped_check(struct fb_conn *conn);
/* A connection was stopped: has it looked at where the mechanism does not tell when it breaks. */
void conn_stopped_begin(struct fb_conn *conn);

/* Offers unconsumed input to the owner again, and reads on. */
void conn_redeliver(struct fb_conn *conn);
/* Enters a connected socket's phase: `opened` will run. */
void conn_establish(struct fb_conn *conn);
/* Moves the client from one gauge of the statistics to another. */
void conn_count_as(struct fb_conn *conn, enum conn_activity activity);

/* Whether input may be received and given to the owner. */
static inline bool conn_may_read(const struct fb_conn *conn)
{
    return (unsigned)conn->phase - CONN_OPENING <= CONN_OPEN - CONN_OPENING &&
           conn->read == CONN_READ_ON && !conn->paused;
}

/* Whether the owner may add output. */
static inline bool conn_may_write(const struct fb_conn *conn)
{
    return conn_is_active(conn) && conn->write == CONN_WRITE_ON;
}

static inline bool conn_is_connecting(const struct fb_conn *conn)
{
    return conn->phase == CONN_CONNECTING || conn->phase == CONN_CLOSING_UNCONNECTED;
}

/* Whether the report that our connect() has ended says by itself that it has succeeded. */
static inline bool conn_is_told_connected(const struct fb_conn *conn)
{
    const struct source *source = &conn->source;

    return conn->net->loop.mechanism->tells_refused && !source->eof && source->io->pending == NULL;
}

static inline enum conn_activity conn_activity(const struct fb_conn *conn)
{
    if (conn->unsent > 0)
        return CONN_WRITING;
    return conn->in != NULL ? CONN_READING : CONN_WAITING;
}

/* Counts the client as what it does now. */
static inline void conn_count(struct fb_conn *conn)
{
    enum conn_activity activity = conn_activity(conn);

    if (conn->counted != activity)
        conn_count_as(conn, activity);
}

/* Marks the connection dirty: the flush after the running callback looks at it. The mark is the
 * WRITE event in the loop's flush queue: a dirty connection needs no list link of its own, and it
 * is flushed by the same code that runs when its peer has taken output. */
static inline void conn_mark_dirty(struct fb_conn *conn)
{
    struct loop *loop = &conn->net->loop;
    struct event *event = &conn->source.events[EVENT_WRITE];

    assert(conn->phase != CONN_FREE);
    if (event->queue == QUEUE_FLUSH)
        return;
    /* moved from where the mechanism may have posted it: borrowed input is lent no longer then */
    if (event->queue != QUEUE_NONE)
        loop_unpost(loop, event);
    loop_post(loop, event, QUEUE_FLUSH);
}

/* Leaves the flush of a dirty connection, which borrows nothing, to the next turn. */
static inline void conn_postpone_flush(struct fb_conn *conn)
{
    struct event *event = &conn->source.events[EVENT_WRITE];

    assert(event->queue == QUEUE_FLUSH);
    loop_unpost(&conn->net->loop, event);
    loop_post(&conn->net->loop, event, QUEUE_NEXT);
}

/* Flushes what may have become dirty since the latest flush. */
static inline void net_flush_rest(struct net *net)
{
    if (net_is_dirty(net) || net->borrower != NULL || DEBUG_BUILD)
        net_flush(net);
}

/* ---- conn_debug.c ---- */

/* Logs a debug line about a connection's source, if such are wanted of the connection. */
void conn_debug_event(const struct source *source, const char *format, va_list args)
    PRINTF_FORMAT(2, 0);

/* A debug line that builds with --enable-debug alone have, with the connection's descriptor. */
#define conn_trace(conn, ...) debug_source(&(conn)->net->loop, &(conn)->source, __VA_ARGS__)

/* ---- conn_send.c ---- */

/* Whether there is output: chunks, or what is borrowed. */
static inline bool conn_has_output(const struct fb_conn *conn)
{
    return conn->out != NULL || conn->net->borrower == conn;
}

/* Sends from the output and returns true; false: the connection has failed. */
bool conn_send(struct fb_conn *conn);
/* Notes what a system call says that was offered so many bytes of memory; false as above. */
NOINLINE bool conn_note_sent(struct fb_conn *conn, struct io_result result, size_t offered);
/* Sending has failed by an errno, of which the owner is told; returns whether the connection has
 * failed with it. If not, no more is sent. */
bool conn_send_failed(struct fb_conn *conn, int error);
/* Hands on what the operations hold of the output; false: it has not left, which an event will
 * tell, or the connection has failed. */
NOINLINE bool conn_push_held(struct fb_conn *conn);
/* Whether all that was sent has left the process. */
static inline bool conn_has_left(struct fb_conn *conn)
{
    return conn->source.io->flush == NULL || conn_push_held(conn);
}
/* Adds a copy to the ring; false without memory. What the connection has borrowed comes before it,
 * and is copied by conn_own_output(). */
bool conn_append_copy(struct fb_conn *conn, const uint8_t *p, size_t n);
void conn_append_chunk(struct fb_conn *conn, struct chunk *chunk);
/* Copies what the connection has borrowed, which others may overwrite after the flush; false: the
 * connection has failed. */
bool conn_own_output(struct fb_conn *conn);
void conn_drop_output(struct fb_conn *conn);
/* Returns the owner's limit of unsent memory; SIZE_MAX: none. */
size_t conn_output_limit(const struct fb_conn *conn);
/* Whether at least so many bytes of memory are unsent. */
bool conn_memory_is_unsent(const struct fb_conn *conn, size_t n);
/* Whether there is room for more output; false: there is twice the limit, and the connection has
 * failed. */
NOINLINE bool conn_check_room(struct fb_conn *conn);

/* ---- conn_reset.c ---- */

/* Subtracts from conn->sent what the reset takes back that ends the connection, ours or the
 * peer's. */
void conn_reset_note(struct fb_conn *conn);
/* Whether the reset of a piped connection that has sent all its output, and whose other end is
 * broken, waits until its peer's system has taken that; the deadline is set then. */
bool conn_reset_waits(struct fb_conn *conn);
/* Whether a connection goes on to be received from though sending has failed for this reason. */
bool conn_reset_leaves_input(struct fb_conn *conn, fb_reason reason);
/* Fails such a connection, when its end is received; false: it is none. */
bool conn_reset_found(struct fb_conn *conn);

/* ---- conn_connect.c ---- */

/* Goes on when the peer has taken output, or our connect() has been answered. */
void conn_run_write(struct loop *loop, struct source *source);

/* ---- conn_input.c ---- */

/* Receives, gives the input to the owner, and flushes what that has led to. */
void conn_run_read(struct loop *loop, struct source *source);

/* ---- conn_splice.c ---- */

/* Moves input of a piped connection within the kernel; false: it is to be copied. */
bool conn_splice_input(struct fb_conn *conn);
/* Goes on where output has left, or more can: called by the flush of the connection, which ends its
 * half if that is ending then. */
void conn_splice_progress(struct fb_conn *conn);
/* Bytes for a piped connection that wait in the kernel's pipe. */
size_t conn_splice_buffered(const struct fb_conn *conn);
/* Whether none do; true without a pipe. */
static inline bool conn_splice_is_empty(const struct fb_conn *conn)
{
    return conn->pipe == NULL || conn_splice_buffered(conn) == 0;
}
/* Whether both directions of its pipe have ended; true without a pipe. */
bool conn_splice_is_done(const struct fb_conn *conn);

/* ---- conn_throttle.c ---- */

/* Returns how many of `most` bytes the rate lets a piped connection receive now, at least 1. */
size_t conn_throttle_room(const struct fb_conn *conn, size_t most);
/* Stops reading where the rate asks for it, when n bytes were received. */
void conn_throttle_note(struct fb_conn *conn, size_t n);

/* ---- conn_flush.c ---- */

/* Flushes one connection: does what callbacks have asked for, and goes on when the peer has taken
 * output. */
NOINLINE void conn_flush(struct fb_conn *conn);
/* The output of a closed connection was sent: when it has left too, keeps it open for another
 * owner, lingers, or ends it. */
void conn_finish_close(struct fb_conn *conn);
/* Watches for the end of our connect(), and, where that is one system call less, for input too:
 * what is reported of it is left until `opened` has run. */
void conn_watch_connect(struct fb_conn *conn);

/* ---- conn.c ---- */

extern const struct source_ops conn_source_ops;

/* Takes a slot and fills in what all connections begin with; NULL when worker_connections are in
 * use. Its phase is CONN_FREE until the caller sets it. */
static inline struct fb_conn *conn_take_slot(
    struct net *net, const struct sockaddr *peer, const struct conn_ops *ops, void *owner)
{
    struct loop *loop = &net->loop;
    struct source *source;
    struct fb_conn *conn;

    if (net_is_full(net))
        return NULL;
    source = source_get_sized(&loop->sources, sizeof(struct fb_conn));
    if (source == NULL)
        return NULL;

    conn = container_of(source, struct fb_conn, source);
    source->ops = &conn_source_ops;
    source->io = loop->mechanism->io;
    source->io_state = loop->mechanism_state;
    conn->net = net;
    conn->ops = ops;
    conn->owner = owner;
    conn_peer_set(&conn->peer, peer);
    net->connection_n++;
    counters_add(net->counters, COUNTER_SLOTS, 1);
    return conn;
}
