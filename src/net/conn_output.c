/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a connection: gathered while a callback runs, sent once after it.
 *
 * Responsible for the ring of chunks conn->out and for handing it to the kernel. Never ends the
 * connection and never watches for room; the flush does. Invariant: conn->unsent is the sum of the
 * chunks, and after the flush no chunk lies in lent input. */
#include "net/conn_private.h"

#include <errno.h>
#include <string.h>

/* System calls after which a connection whose peer takes everything gives the others their turn. */
#define SENDS_A_TURN 16
/* Bytes of a file that one system call takes. */
#define FILE_PIECE (1024 * 1024)

/* Appends to the ring: conn->out is the last chunk, and its next is the first. */
static void append_chunk(struct fb_conn *conn, struct chunk *chunk)
{
    if (conn->out == NULL) {
        chunk->next = chunk;
    } else {
        chunk->next = conn->out->next;
        conn->out->next = chunk;
    }
    conn->out = chunk;
}

static void remove_first(struct fb_conn *conn)
{
    struct chunk *first = conn->out->next;

    if (first == conn->out)
        conn->out = NULL;
    else
        conn->out->next = first->next;
    chunk_free(&conn->net->chunks, first);
}

static bool is_lent(const struct net *net, const uint8_t *p, size_t n)
{
    uintptr_t start = (uintptr_t)net->lent.p, at = (uintptr_t)p;

    return net->lent.n > 0 && at >= start && n <= net->lent.n && at - start <= net->lent.n - n;
}

static bool append_view(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    struct chunk *chunk = conn->out;

    if (chunk != NULL && chunk->kind == CHUNK_VIEW && chunk->end == p) {
        chunk->end += n;
        return true;
    }
    chunk = chunk_create_foreign(&conn->net->chunks, CHUNK_VIEW, p, n);
    if (chunk == NULL)
        return false;
    append_chunk(conn, chunk);
    return true;
}

static bool append_copy(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    struct chunk *chunk = conn->out;

    if (chunk != NULL && chunk->kind == CHUNK_OWN) {
        size_t part = chunk_room(chunk) < n ? chunk_room(chunk) : n;

        memcpy(chunk->end, p, part);
        chunk->end += part;
        p += part;
        n -= part;
    }
    if (n == 0)
        return true;
    chunk = chunk_create(&conn->net->chunks, n);
    if (chunk == NULL)
        return false;
    memcpy(chunk->end, p, n);
    chunk->end += n;
    append_chunk(conn, chunk);
    return true;
}

static void note_added(struct fb_conn *conn, size_t n)
{
    assert(conn->out != NULL);
    conn->unsent += n;
    conn_mark_dirty(conn);
}

void conn_write(struct fb_conn *conn, const void *p, size_t n)
{
    if (!conn_may_write(conn) || n == 0)
        return;
    if ((is_lent(conn->net, p, n) ? append_view : append_copy)(conn, p, n))
        note_added(conn, n);
    else
        conn_fail(conn, FB_NO_MEMORY);
}

int conn_write_ref(
    struct fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg)
{
    struct chunk *chunk =
        conn_may_write(conn) ? chunk_create_foreign(&conn->net->chunks, CHUNK_REF, p, n) : NULL;

    if (chunk == NULL)
        return -1;
    chunk->ref.release = release;
    chunk->ref.arg = arg;
    chunk->protocol = heartbeat_running_protocol(conn->net->heartbeat);
    append_chunk(conn, chunk);
    note_added(conn, n);
    return 0;
}

int conn_write_file(struct fb_conn *conn, int fd, uint64_t offset, uint64_t n)
{
    struct chunk *chunk =
        conn_may_write(conn) ? chunk_create_foreign(&conn->net->chunks, CHUNK_FILE, NULL, 0) : NULL;

    if (chunk == NULL)
        return -1;
    chunk->file.fd = fd;
    chunk->file.offset = offset;
    chunk->file.left = n;
    append_chunk(conn, chunk);
    note_added(conn, n);
    return 0;
}

void conn_drop_output(struct fb_conn *conn)
{
    while (conn->out != NULL)
        remove_first(conn);
    conn->unsent = 0;
}

/* Returns the bytes of a chunk that is no file. */
static size_t memory_length(const struct chunk *chunk)
{
    assert(chunk->kind != CHUNK_FILE);
    return (size_t)(chunk->end - chunk->p);
}

static void drop_sent(struct fb_conn *conn, size_t n)
{
    assert(n <= conn->unsent);
    conn->unsent -= n;
    conn->sent += n;
    while (n > 0) {
        struct chunk *first = conn->out->next;
        size_t length = memory_length(first);

        if (n < length) {
            first->p += n;
            return;
        }
        n -= length;
        remove_first(conn);
    }
}

/* Sends chunks of memory up to the next file. */
static struct io_result send_pieces(struct fb_conn *conn)
{
    struct iovec *pieces = conn->net->pieces;
    const struct chunk *chunk = conn->out->next;
    struct io_result result;
    size_t offered = 0;
    int n = 0;

    while (chunk->kind != CHUNK_FILE && n < NET_PIECES) {
        size_t length = memory_length(chunk);

        pieces[n++] = (struct iovec) { .iov_base = chunk->p, .iov_len = length };
        offered += length;
        if (chunk == conn->out)
            break;
        chunk = chunk->next;
    }
    result = conn->source.io->send(&conn->source, pieces, n);
    if (result.status == IO_DONE) {
        drop_sent(conn, result.n);
        if (result.n < offered)
            conn->source.events[EVENT_WRITE].ready = false;
    }
    return result;
}

/* A function of its own, so that memory, the usual case, does without the offset on the stack. */
static NOINLINE struct io_result send_file(struct fb_conn *conn, struct chunk *chunk)
{
    size_t most = chunk->file.left < FILE_PIECE ? chunk->file.left : FILE_PIECE;
    off_t offset = (off_t)chunk->file.offset;
    struct io_result result =
        conn->source.io->sendfile(&conn->source, chunk->file.fd, &offset, most);

    if (result.status == IO_EOF)
        return (struct io_result) { .status = IO_FAILED, .error = ENODATA };
    if (result.status != IO_DONE)
        return result;
    assert(result.n <= chunk->file.left && result.n <= conn->unsent);
    conn->unsent -= result.n;
    conn->sent += result.n;
    chunk->file.offset = (uint64_t)offset;
    chunk->file.left -= result.n;
    if (chunk->file.left == 0)
        remove_first(conn);
    return result;
}

static bool is_empty(const struct chunk *chunk)
{
    return chunk->kind == CHUNK_FILE ? chunk->file.left == 0 : chunk->p == chunk->end;
}

static struct io_result send_once(struct fb_conn *conn)
{
    struct chunk *first = conn->out->next;

    if (is_empty(first)) { /* a reference to nothing, or none of a file */
        remove_first(conn);
        return (struct io_result) { .status = IO_DONE };
    }
    return first->kind == CHUNK_FILE ? send_file(conn, first) : send_pieces(conn);
}

bool conn_send(struct fb_conn *conn)
{
    struct event *writing = &conn->source.events[EVENT_WRITE];

    assert(conn->source.fd != -1 && conn->phase >= CONN_OPENING);
    for (int i = 0; i < SENDS_A_TURN && conn->out != NULL && writing->ready; i++) {
        struct io_result result = send_once(conn);

        switch (result.status) {
        case IO_DONE:
            if (result.n > 0)
                conn_note_moved(conn);
            break;
        case IO_AGAIN_READ:
        case IO_AGAIN_WRITE:
            writing->ready = false;
            break;
        default:
            conn_log(conn, LEVEL_INFO, result.error,
                result.error == ENODATA ? "a file ends before what is to be sent of it"
                                        : "send() failed");
            conn_fail(conn, conn_reason_of(result.error));
            return false;
        }
    }
    return true;
}

void conn_push(struct fb_conn *conn)
{
    if (!conn_can_send(conn))
        return;
    conn_send(conn);
    conn_mark_dirty(conn);
}

static bool has_view(const struct fb_conn *conn)
{
    const struct chunk *chunk = conn->out;

    do {
        if (chunk->kind == CHUNK_VIEW)
            return true;
        chunk = chunk->next;
    } while (chunk != conn->out);
    return false;
}

bool conn_own_output(struct fb_conn *conn)
{
    struct chunk *chunk, *next;

    assert(conn->out != NULL);
    if (!has_view(conn))
        return true;
    next = conn->out->next;
    conn->out->next = NULL; /* the ring becomes a line */
    conn->out = NULL;
    while ((chunk = next) != NULL) {
        next = chunk->next;
        if (chunk->kind != CHUNK_VIEW) {
            append_chunk(conn, chunk);
            continue;
        }
        if (!append_copy(conn, chunk->p, chunk_length(chunk)))
            conn_fail(conn, FB_NO_MEMORY);
        chunk_free(&conn->net->chunks, chunk);
    }
    return !conn_has_failed(conn);
}
