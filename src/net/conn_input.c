/* SPDX-License-Identifier: BSD-2-Clause */
/* The input of a connection: received into the worker's scratch buffer and lent to the owner; only
 * what the owner leaves is copied, and more is received behind it from then on.
 *
 * Responsible for conn->in and for the system call that receives. Never calls the owner and never
 * flushes; the caller does. Invariant: conn->in is NULL or holds at least one byte. */
#include "net/conn_private.h"

#include <string.h>

/* System calls after which a lingering connection gives the others their turn. */
#define DISCARDS_A_TURN 16

/* Returns a chunk with the unconsumed bytes and room for `least` behind them; NULL without
 * memory. */
static struct chunk *make_room(struct fb_conn *conn, size_t least)
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

/* Copies bytes that the owner has left in the scratch buffer. */
static void copy_rest(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    assert(conn->in == NULL && n > 0);
    conn->in = chunk_create(&conn->net->chunks, n);
    if (conn->in == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return;
    }
    memcpy(conn->in->end, p, n);
    conn->in->end += n;
}

void conn_keep_input(struct fb_conn *conn, fb_bytes in, size_t used, struct chunk *chunk)
{
    assert(used <= in.n && conn_is_owned(conn));
    if (chunk == NULL) {
        copy_rest(conn, in.p + used, in.n - used);
    } else if (used < in.n) {
        assert(conn->in == NULL);
        chunk->p += used;
        conn->in = chunk;
    } else {
        chunk_free(&conn->net->chunks, chunk);
    }
    conn_count(conn);
}

void conn_drop_input(struct fb_conn *conn)
{
    if (conn->in != NULL)
        chunk_free(&conn->net->chunks, conn->in);
    conn->in = NULL;
}

/* Receives once into *span, and notes what that says of the receiving half. */
static struct io_result receive_span(struct fb_conn *conn, struct io_span *span)
{
    struct source *source = &conn->source;
    size_t room = span->n;
    struct io_result result = source->io->recv(source, span);

    switch (result.status) {
    case IO_DONE:
        conn->received += span->n;
        /* less than there was room for: no more is there, unless the end is known to follow */
        if (span->n < room && !source->eof &&
            (source->io->pending == NULL || source->io->pending(source) == 0))
            source->events[EVENT_READ].ready = false;
        break;
    case IO_AGAIN_READ:
    case IO_AGAIN_WRITE:
        source->events[EVENT_READ].ready = false;
        break;
    case IO_EOF:
        conn_set_read(conn, CONN_READ_ENDED);
        conn_update_reading(conn);
        conn_mark_dirty(conn); /* the sending half may have ended before */
        break;
    case IO_FAILED:
        conn_log(conn, LEVEL_INFO, result.error, "recv() failed");
        conn_fail(conn, conn_reason_of(result.error));
        break;
    }
    return result;
}

static struct io_result fail_without_memory(struct fb_conn *conn)
{
    conn_fail(conn, FB_NO_MEMORY);
    return (struct io_result) { .status = IO_FAILED };
}

/* Receives behind the unconsumed bytes, so that the owner is given all in one piece. */
static struct io_result receive_behind(struct fb_conn *conn)
{
    struct chunk *chunk = make_room(conn, CHUNK_ROOM / 2);
    struct io_result result;
    struct io_span span;

    if (chunk == NULL)
        return fail_without_memory(conn);
    span = (struct io_span) { chunk->end, chunk_room(chunk) };
    result = receive_span(conn, &span);
    if (result.status != IO_DONE)
        return result;
    if (span.p != chunk->end) { /* in memory of the operation's own */
        chunk = make_room(conn, span.n);
        if (chunk == NULL)
            return fail_without_memory(conn);
        memcpy(chunk->end, span.p, span.n);
    }
    chunk->end += span.n;
    assert(chunk->end <= chunk->limit);
    return result;
}

/* Detaches the unconsumed bytes, so that an end of the connection leaves them alone while they are
 * lent. */
static void detach_input(struct fb_conn *conn, fb_bytes *in, struct chunk **chunk)
{
    *chunk = conn->in;
    *in = (fb_bytes) { conn->in->p, chunk_length(conn->in) };
    conn->in = NULL;
    conn->redeliver = 0;
}

/* Receives for a connection that has unconsumed input, unless that is to be offered again as it
 * is. */
static enum conn_input receive_more(struct fb_conn *conn, fb_bytes *in, struct chunk **chunk)
{
    struct io_result result = { .status = IO_DONE };

    if (!conn->redeliver)
        result = receive_behind(conn);
    if (result.status != IO_DONE && result.status != IO_EOF)
        return CONN_INPUT_NONE;
    if (result.n > 0)
        conn_debug(conn, "received %zu bytes", result.n);
    detach_input(conn, in, chunk);
    return result.status == IO_EOF ? CONN_INPUT_END : CONN_INPUT_DATA;
}

enum conn_input conn_receive(struct fb_conn *conn, fb_bytes *in, struct chunk **chunk)
{
    struct io_span span = { conn->net->scratch, conn->net->scratch_size };
    struct io_result result;

    assert(conn->read == CONN_READ_ON && !conn->paused);
    if (conn->in != NULL)
        return receive_more(conn, in, chunk);
    result = receive_span(conn, &span);
    if (result.status != IO_DONE && result.status != IO_EOF)
        return CONN_INPUT_NONE;
    conn->redeliver = 0;
    *chunk = NULL;
    *in = (fb_bytes) { NULL, 0 };
    if (result.status == IO_EOF)
        return CONN_INPUT_END;
    *in = (fb_bytes) { span.p, span.n };
    conn_debug(conn, "received %zu bytes", span.n);
    return CONN_INPUT_DATA;
}

/* The peer of a closed connection still sends: without reading that, the kernel would answer with a
 * reset, which takes away the reply from a peer that has not read it yet. */
void conn_discard_input(struct fb_conn *conn)
{
    assert(conn->phase == CONN_LINGERING);
    for (int i = 0; i < DISCARDS_A_TURN && conn->source.events[EVENT_READ].ready; i++) {
        struct io_span span = { conn->net->scratch, conn->net->scratch_size };
        struct io_result result = receive_span(conn, &span);

        if (result.status == IO_EOF)
            conn_fail(conn, FB_PEER_GONE);
        if (conn_has_failed(conn))
            return;
    }
}

bool conn_input_is_pending(struct fb_conn *conn)
{
    uint8_t bytes[512]; /* the scratch buffer may still hold lent bytes */
    struct io_span span = { bytes, sizeof(bytes) };

    if (conn->read == CONN_READ_ENDED)
        return false;
    return conn->source.io->recv(&conn->source, &span).status == IO_DONE;
}
