/* SPDX-License-Identifier: BSD-2-Clause */
/* The input of a connection: received into the worker's scratch buffer and lent to the owner; only
 * what it leaves is copied, and received behind from then on. */
#include "net/conn_private.h"

#include <string.h>

/* A connection with endless input gives the others their turn after so many. */
#define RECEIVES_A_TURN 16

/* Room behind the kept bytes; NULL without memory. */
static struct fb_chunk *make_room(struct fb_conn *conn, size_t least)
{
    struct fb_chunk *old = conn->in, *chunk;
    size_t length = fb_chunk_length(old);

    if (fb_chunk_room(old) >= least)
        return old;
    if ((size_t)(old->limit - old->data) - length >= least && old->p > old->data) {
        memmove(old->data, old->p, length);
        old->p = old->data;
        old->end = old->data + length;
        return old;
    }
    chunk = fb_chunk_create(conn->net, 2 * length > length + least ? 2 * length : length + least);
    if (chunk == NULL)
        return NULL;
    memcpy(chunk->data, old->p, length);
    chunk->end += length;
    fb_chunk_free(conn->net, old);
    return conn->in = chunk;
}

/* Keeps what the owner has left of bytes that lie outside `conn->in`. */
static void keep(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    if (n == 0)
        return;
    conn->in = fb_chunk_create(conn->net, n);
    if (conn->in == NULL) {
        fb_conn_fail(conn, FB_NO_MEMORY);
        return;
    }
    memcpy(conn->in->end, p, n);
    conn->in->end += n;
}

/* Lends bytes to a callback and settles what it touched while they are still valid; false when the
 * connection has gone. `chunk`: the bytes are in it, and it comes back as conn->in or is freed. */
static bool lend(struct fb_conn *conn, fb_bytes in, struct fb_chunk *chunk, bool last)
{
    struct fb_net *net = conn->net;
    uint32_t generation = conn->source.generation;
    size_t used = in.n;
    bool alive;

    conn->in = NULL; /* so that an end of the connection leaves the lent bytes alone */
    conn->redeliver = 0;
    net->lent = in;
    if (last)
        conn->ops->eof(conn, in);
    else
        used = conn->ops->data(conn, in);
    if (used < in.n && conn->keeping) /* its next user would be given what is left */
        conn->keeping = 0;
    fb_net_settle(net);
    net->lent = (fb_bytes) { NULL, 0 };

    alive = conn->source.generation == generation;
    if (alive && !conn->lingering && chunk != NULL && used < in.n) {
        chunk->p += used;
        conn->in = chunk;
        return true;
    }
    if (alive && !conn->lingering && chunk == NULL)
        keep(conn, in.p + used, in.n - used);
    if (chunk != NULL)
        fb_chunk_free(net, chunk);
    return alive;
}

static bool lend_kept(struct fb_conn *conn, bool last)
{
    struct fb_chunk *chunk = conn->in;
    fb_bytes in = { NULL, 0 };

    if (chunk != NULL)
        in = (fb_bytes) { chunk->p, fb_chunk_length(chunk) };
    return lend(conn, in, chunk, last);
}

/* Whether the kept bytes are to be offered without more behind them. */
static bool is_due_again(const struct fb_conn *conn)
{
    return conn->redeliver && conn->in != NULL;
}

static struct fb_io_result receive(struct fb_conn *conn, struct fb_span *span)
{
    struct fb_source *source = &conn->source;
    size_t room = span->n;
    struct fb_io_result result = source->io->recv(source, span);

    switch (result.status) {
    case FB_IO_DONE:
        conn->received += span->n;
        /* less than there was room for: no more is there, unless the end is known to follow */
        if (span->n < room && !source->eof && source->io->pending(source) == 0)
            source->events[FB_READ].ready = false;
        break;
    case FB_IO_AGAIN_READ:
    case FB_IO_AGAIN_WRITE:
        source->events[FB_READ].ready = false;
        break;
    case FB_IO_EOF:
        conn->eof = 1;
        fb_conn_update_reading(conn);
        fb_conn_touch(conn); /* both halves may have ended now */
        break;
    case FB_IO_FAILED:
        fb_conn_log(conn, FB_INFO, result.error, "recv() failed");
        fb_conn_fail(conn, fb_conn_reason(result.error));
        break;
    }
    return result;
}

/* Receives behind the kept bytes, so that the owner is given all in one piece. */
static struct fb_io_result receive_behind(struct fb_conn *conn)
{
    struct fb_chunk *chunk = make_room(conn, FB_CHUNK_ROOM / 2);
    struct fb_io_result result = { .status = FB_IO_FAILED };
    struct fb_span span;

    if (chunk == NULL) {
        fb_conn_fail(conn, FB_NO_MEMORY);
        return result;
    }
    span = (struct fb_span) { chunk->end, fb_chunk_room(chunk) };
    result = receive(conn, &span);
    if (result.status != FB_IO_DONE)
        return result;
    if (span.p != chunk->end) { /* in memory of the operation's own */
        chunk = make_room(conn, span.n);
        if (chunk == NULL) {
            fb_conn_fail(conn, FB_NO_MEMORY);
            return (struct fb_io_result) { .status = FB_IO_FAILED };
        }
        memcpy(chunk->end, span.p, span.n);
    }
    chunk->end += span.n;
    return result;
}

/* One receive and what follows from it; false when the connection has gone. */
static bool read_once(struct fb_conn *conn)
{
    struct fb_net *net = conn->net;
    struct fb_span span = { net->scratch, net->scratch_size };
    struct fb_io_result result;

    if (is_due_again(conn))
        return lend_kept(conn, false);
    result = conn->in != NULL ? receive_behind(conn) : receive(conn, &span);
    if (result.status == FB_IO_EOF)
        return lend_kept(conn, true);
    if (result.status != FB_IO_DONE)
        return true;
    fb_conn_debug(conn, "received %zu bytes", result.n);
    if (conn->in != NULL)
        return lend_kept(conn, false);
    return lend(conn, (fb_bytes) { span.p, span.n }, NULL, false);
}

/* A closed connection whose peer still sends: without reading it the kernel would answer with a
 * reset, which takes away the reply from a peer that has not read it yet. */
static void discard(struct fb_conn *conn)
{
    for (int i = 0; i < RECEIVES_A_TURN && conn->source.events[FB_READ].ready; i++) {
        struct fb_span span = { conn->net->scratch, conn->net->scratch_size };
        struct fb_io_result result = receive(conn, &span);

        if (result.status == FB_IO_EOF)
            fb_conn_fail(conn, FB_PEER_GONE);
        if (conn->failed != 0)
            return;
    }
}

void fb_conn_readable(struct fb_loop *loop, struct fb_source *source)
{
    struct fb_conn *conn = fb_container(source, struct fb_conn, source);
    struct fb_net *net = conn->net;
    uint32_t generation = source->generation;

    if (conn->opening && !(conn->outgoing && conn->closing)) {
        conn->opening = 0;
        conn->ops->opened(conn);
        fb_conn_update_reading(conn);
    } else if (conn->lingering) {
        discard(conn);
    } else {
        for (int i = 0; i < RECEIVES_A_TURN && fb_conn_may_read(conn); i++) {
            if (!source->events[FB_READ].ready && !is_due_again(conn))
                break;
            if (conn->pipe != NULL && !is_due_again(conn) && fb_pipe_readable(conn))
                continue;
            if (!read_once(conn))
                return;
        }
    }
    fb_net_settle(net);
    if (source->generation != generation)
        return;
    fb_conn_count(conn);
    if (source->events[FB_READ].ready && source->events[FB_READ].armed)
        fb_loop_post(loop, &source->events[FB_READ], FB_QUEUE_NEXT);
}
