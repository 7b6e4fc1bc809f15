/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading: input is received into the worker's scratch buffer, lent to the owner, and requests of
 * the owner are flushed. The rest that the owner leaves is copied, and more is received behind it.
 *
 * Invariant: lent input stays valid until the flush behind its callback has ended; conn->in is NULL
 * or holds at least one byte. */
#include "net/conn_input.h"

#include "net/conn_direction.h"
#include "net/conn_log.h"
#include "net/conn_pipe.h"

#include <string.h>

/* Receives after which a connection with endless input lets the rest of the loop run. */
#define RECEIVES_A_TURN 16
/* Receives equal to a splice in bytes. */
#define SPLICE_COUNTS 4

/* Returns the unconsumed bytes' chunk with room for `least` behind; NULL without memory. */
static struct chunk *make_input_room(struct fb_conn *conn, size_t least)
{
    struct chunk *old = conn->in, *chunk;
    size_t length = chunk_length(old);

    assert(old->kind == CHUNK_OWN && length > 0);
    if (chunk_room(old) >= least)
        return old;
    if ((size_t)(old->limit - old->data) - length >= least && old->p > old->data) {
        memmove(old->data, old->p, length);
        old->p = old->data;
        old->end = old->data + length;
        return old;
    }
    chunk =
        chunk_create(&conn->net->chunks, 2 * length > length + least ? 2 * length : length + least);
    if (chunk == NULL)
        return NULL;
    memcpy(chunk->data, old->p, length);
    chunk->end += length;
    assert(chunk_room(chunk) >= least);
    chunk_free(&conn->net->chunks, old);
    return conn->in = chunk;
}

/* Keeps the input after `used` bytes, in `chunk`, or NULL: in the scratch buffer. */
static void keep_input(struct fb_conn *conn, fb_bytes in, size_t used, struct chunk *chunk)
{
    size_t left = in.n - used;

    assert(used <= in.n && conn_is_owned(conn) && conn->in == NULL);
    if (left == 0) {
        chunk_free(&conn->net->chunks, chunk);
    } else if (chunk != NULL) {
        chunk->p += used;
        conn->in = chunk;
    } else if ((conn->in = chunk_create(&conn->net->chunks, left)) == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
    } else {
        memcpy(conn->in->end, in.p + used, left);
        conn->in->end += left;
    }
    conn_count(conn);
}

/* Notes the result of an empty receive. */
static NOINLINE void note_nothing(struct fb_conn *conn, struct io_result result)
{
    if (result.status == IO_AGAIN_READ || result.status == IO_AGAIN_WRITE) {
        conn_trace(conn, "nothing to receive");
        conn->source.events[EVENT_READ].ready = false;
    } else if (conn_direction_fail_broken(conn)) {
        return;
    } else if (result.status == IO_EOF) {
        conn_trace(conn, "received the end of the peer's half");
        conn_set_read(conn, CONN_READ_ENDED);
        source_disarm(&conn->net->loop, &conn->source, EVENT_READ);
        if (conn->write == CONN_WRITE_ENDED && conn->pipe == NULL) /* the pipe's other end does */
            conn_mark_dirty(conn);
    } else {
        conn_log_failed(conn, LOG_RECEIVING, result.error, "recv()");
        conn_fail_by(conn, result.error);
    }
}

/* Receives once into *span; false: nothing, as conn->read and conn->phase explain. */
static inline bool receive_into(struct fb_conn *conn, struct io_span *span)
{
    struct source *source = &conn->source;
    size_t room = span->n;
    struct io_result result = source->io->recv(source, span);

    if (unlikely(result.status != IO_DONE)) {
        note_nothing(conn, result);
        return false;
    }
    conn_count_received(conn, span->n);
    /* less than there was room for: no more is there, unless the end is known to follow; a layer
     * knows what room there was */
    if (likely((span->n < room || source->layered) && !source->eof) &&
        (source->io->pending == NULL || source->io->pending(source) == 0))
        source->events[EVENT_READ].ready = false;
    conn_debug(conn, "received %zu bytes", span->n);
    return true;
}

/* Receives behind the unconsumed bytes, for a single piece; false as above. */
static bool receive_behind(struct fb_conn *conn)
{
    struct chunk *chunk = make_input_room(conn, CHUNK_ROOM / 2);
    struct io_span span;

    if (chunk != NULL) {
        span = (struct io_span) { chunk->end, chunk_room(chunk) };
        if (!receive_into(conn, &span))
            return false;
        if (span.p != chunk->end) { /* in memory of the operation's own */
            chunk = make_input_room(conn, span.n);
            if (chunk != NULL)
                memcpy(chunk->end, span.p, span.n);
        }
    }
    if (chunk == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return false;
    }
    chunk->end += span.n;
    assert(chunk->end <= chunk->limit);
    return true;
}

/* Discards input of a closed connection: unread bytes would become a reset, which destroys our
 * reply on its way. */
static void discard_input(struct fb_conn *conn)
{
    for (int i = 0; i < RECEIVES_A_TURN && conn->source.events[EVENT_READ].ready; i++) {
        struct io_span span = { conn->net->scratch, conn->net->scratch_size };

        if (receive_into(conn, &span))
            continue;
        if (conn->read == CONN_READ_ENDED)
            conn_fail(conn, FB_PEER_GONE);
        if (conn_has_failed(conn))
            return;
    }
}

/* Detaches the unconsumed bytes: an end of the connection would free lent bytes. */
static struct chunk *detach_input(struct fb_conn *conn)
{
    struct chunk *chunk = conn->in;

    conn->in = NULL;
    conn->redeliver = 0;
    return chunk;
}

void conn_drop_input(struct fb_conn *conn, size_t n)
{
    assert(conn->net->lent.n == 0 && n <= (conn->in != NULL ? chunk_length(conn->in) : 0));
    if (n == 0)
        return;
    conn->in->p += n;
    if (chunk_length(conn->in) == 0)
        chunk_free(&conn->net->chunks, detach_input(conn));
    conn_count(conn);
}

/* Flushes after a callback, and keeps the unconsumed input unless the connection has ended. */
static NOINLINE void flush_and_keep(
    struct fb_conn *conn, uint32_t generation, size_t used, struct chunk *chunk)
{
    struct net *net = conn->net;
    fb_bytes in = net->lent;

    assert(used <= in.n);
    if (used < in.n && conn->phase == CONN_KEEPING) /* the next owner would be given the rest */
        conn_set_phase(conn, CONN_CLOSING);
    net_flush(net);
    net->lent.n = 0;
    if (conn->source.generation == generation && conn_is_owned(conn) && in.n > 0)
        keep_input(conn, in, used, chunk);
    else if (chunk != NULL)
        chunk_free(&net->chunks, chunk);
    net_flush(net); /* without memory the connection has failed */
}

/* Gives input to the owner and flushes while it is valid; false: the connection has gone. */
static inline bool deliver(struct fb_conn *conn, fb_bytes in, struct chunk *chunk)
{
    struct net *net = conn->net;
    uint32_t generation = conn->source.generation;
    size_t used;

    assert(conn->owner_knows && net->lent.n == 0);
    net->lent = in;
    conn_note_moved(conn);
    used = conn->ops->data(conn, in);
    if (likely(used == in.n && chunk == NULL)) {
        net_flush(net);
        net->lent.n = 0;
    } else {
        flush_and_keep(conn, generation, used, chunk);
    }
    return conn->source.generation == generation;
}

/* Tells the owner of the end of the peer's half, with the unconsumed input; false as above. */
static COLD bool deliver_end(struct fb_conn *conn)
{
    struct net *net = conn->net;
    uint32_t generation = conn->source.generation;
    struct chunk *chunk = detach_input(conn);
    fb_bytes rest = { NULL, 0 };

    assert(conn->owner_knows && net->lent.n == 0);
    if (chunk != NULL)
        rest = (fb_bytes) { chunk->p, chunk_length(chunk) };
    net->lent = rest;
    conn->ops->eof(conn, rest);
    if (chunk == NULL)
        net_flush(net);
    else
        flush_and_keep(conn, generation, rest.n, chunk);
    return conn->source.generation == generation;
}

/* Handles an empty receive: delivers the peer's end, if any, and flushes. */
static NOINLINE void end_input(struct fb_conn *conn)
{
    struct net *net = conn->net;

    if (conn->read != CONN_READ_ENDED || (conn->pipe != NULL && conn_pipe_end_both(conn)) ||
        deliver_end(conn))
        net_flush(net);
}

/* Returns how many bytes a connection receives at once. */
static inline size_t input_room(const struct fb_conn *conn)
{
    size_t room = conn->net->scratch_size, most = conn->pipe != NULL ? conn->pipe->from.most : 0;

    return most > 0 && most < room ? most : room;
}

/* Receives or offers input until the input ends or the turn's share is used; false: has ended. */
static bool read_input(struct fb_conn *conn)
{
    const struct event *reading = &conn->source.events[EVENT_READ];

    for (int i = 0; i < RECEIVES_A_TURN && conn_may_read(conn); i++) {
        struct io_span in = { conn->net->scratch, input_room(conn) };
        bool again = conn->redeliver && conn->in != NULL, by_pipe = conn->by_pipe;
        struct chunk *chunk;

        if (!reading->ready && !again)
            break;
        if (by_pipe && !again) {
            if (conn_direction_splice(conn)) {
                i += SPLICE_COUNTS - 1;
                continue;
            }
            in.n = conn_direction_room(conn, in.n);
        }
        if (!again && !(conn->in != NULL ? receive_behind(conn) : receive_into(conn, &in)))
            return conn->read != CONN_READ_ENDED || deliver_end(conn);
        chunk = detach_input(conn);
        if (chunk != NULL)
            in = (struct io_span) { chunk->p, chunk_length(chunk) };
        if (!deliver(conn, (fb_bytes) { in.p, in.n }, chunk))
            return false;
        if (by_pipe && conn->by_pipe)
            conn_direction_note(conn, in.n);
    }
    return true;
}

/* Reads input from before the opening, in the present turn; false: the connection has gone. */
static COLD bool read_early_input(struct fb_conn *conn)
{
    struct net *net = conn->net;
    uint32_t generation = conn->source.generation;

    loop_unpost(&net->loop, &conn->source.events[EVENT_READ]);
    if (!read_input(conn))
        return false;
    net_flush(net);
    return conn->source.generation == generation;
}

/* Goes on in the next turn with a connection that has more to receive. */
static inline void read_on_later(struct fb_conn *conn)
{
    struct event *reading = &conn->source.events[EVENT_READ];

    if (reading->ready && reading->armed)
        loop_post(&conn->net->loop, reading, QUEUE_NEXT);
}

void conn_open(struct fb_conn *conn)
{
    struct net *net = conn->net;
    uint32_t generation = conn->source.generation;

    assert(!net->flushing);
    conn->source.events[EVENT_READ].turn = net->loop.turn; /* a slot that is taken again waits */
    conn_set_phase(conn, CONN_OPEN);
    conn->owner_knows = 1;
    conn->ops->opened(conn);
    if (!conn->source.events[EVENT_READ].armed && conn_may_read(conn))
        conn_update_reading(conn);
    net_flush(net);
    if (conn->source.generation == generation && unlikely(conn->source.events[EVENT_READ].ready) &&
        read_early_input(conn))
        read_on_later(conn);
}

/* Handles a readable connection where more is to be done than to receive. */
static NOINLINE void read_otherwise(struct fb_conn *conn)
{
    struct net *net = conn->net;
    uint32_t generation = conn->source.generation;

    assert(conn->phase != CONN_FREE && !net->flushing);
    if (conn_is_connecting(conn)) /* `opened` runs before the peer's input is read */
        return;
    if (conn->phase == CONN_OPENING) {
        conn_open(conn);
        return;
    }
    if (conn->phase == CONN_LINGERING)
        discard_input(conn);
    else if (unlikely(conn->read == CONN_READ_STOPPED && conn->source.eof))
        conn_check_stopped(conn);
    else if (!read_input(conn))
        return;
    net_flush(net);
    if (conn->source.generation == generation)
        read_on_later(conn);
}

/* Whether a connection is open, and there is nothing to do but to receive. */
static inline bool reads_plainly(const struct fb_conn *conn)
{
    return conn->phase == CONN_OPEN && conn->read == CONN_READ_ON && !conn->paused &&
           !conn->by_pipe && !conn->redeliver && conn->in == NULL &&
           conn->source.events[EVENT_READ].ready;
}

void conn_run_read(struct loop *loop, struct source *source)
{
    struct fb_conn *conn = container_of(source, struct fb_conn, source);
    struct net *net = conn->net;
    size_t passed = 0;
    bool alive = true;

    (void)loop;
    if (unlikely(!reads_plainly(conn))) {
        read_otherwise(conn);
        return;
    }
    net->received = (struct io_span) { net->scratch, input_room(conn) };
    if (unlikely(!receive_into(conn, &net->received))) {
        end_input(conn);
        return;
    }
    if (conn->pipe != NULL)
        passed = conn_direction_pass(conn, net->received);
    if (passed < net->received.n)
        alive =
            deliver(conn, (fb_bytes) { net->received.p + passed, net->received.n - passed }, NULL);
    if (unlikely(source->events[EVENT_READ].ready) && alive)
        read_otherwise(conn);
}
