/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a connection: gathered while a callback runs, sent once after it. */
#include "net/conn_private.h"

#include <errno.h>
#include <string.h>

/* Pieces that one system call takes. */
#define PIECES_MAX 64
/* A connection whose peer takes everything gives the others their turn after so many. */
#define SENDS_A_TURN 16
/* Bytes of a file that one system call takes. */
#define FILE_PIECE (1024 * 1024)

/* `conn->out` is the last chunk, and its next is the first. */
static void append(struct fb_conn *conn, struct fb_chunk *chunk)
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
    struct fb_chunk *first = conn->out->next;

    if (first == conn->out)
        conn->out = NULL;
    else
        conn->out->next = first->next;
    fb_chunk_free(conn->net, first);
}

static bool is_lent(const struct fb_net *net, const uint8_t *p, size_t n)
{
    uintptr_t start = (uintptr_t)net->lent.p, at = (uintptr_t)p;

    return net->lent.n > 0 && at >= start && n <= net->lent.n && at - start <= net->lent.n - n;
}

static bool append_view(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    struct fb_chunk *chunk = conn->out;

    if (chunk != NULL && chunk->kind == FB_CHUNK_VIEW && chunk->end == p) {
        chunk->end += n;
        return true;
    }
    chunk = fb_chunk_foreign(conn->net, FB_CHUNK_VIEW, p, n);
    if (chunk == NULL)
        return false;
    append(conn, chunk);
    return true;
}

static bool append_copy(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    struct fb_chunk *chunk = conn->out;

    if (chunk != NULL && chunk->kind == FB_CHUNK_OWN) {
        size_t part = fb_chunk_room(chunk) < n ? fb_chunk_room(chunk) : n;

        memcpy(chunk->end, p, part);
        chunk->end += part;
        p += part;
        n -= part;
    }
    if (n == 0)
        return true;
    chunk = fb_chunk_create(conn->net, n);
    if (chunk == NULL)
        return false;
    memcpy(chunk->end, p, n);
    chunk->end += n;
    append(conn, chunk);
    return true;
}

static void added(struct fb_conn *conn, size_t n)
{
    conn->unsent += n;
    fb_conn_touch(conn);
}

void fb_conn_write(struct fb_conn *conn, const void *p, size_t n)
{
    if (!fb_conn_may_write(conn) || n == 0)
        return;
    if ((is_lent(conn->net, p, n) ? append_view : append_copy)(conn, p, n))
        added(conn, n);
    else
        fb_conn_fail(conn, FB_NO_MEMORY);
}

int fb_conn_write_ref(
    struct fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg)
{
    struct fb_chunk *chunk =
        fb_conn_may_write(conn) ? fb_chunk_foreign(conn->net, FB_CHUNK_REF, p, n) : NULL;

    if (chunk == NULL)
        return -1;
    chunk->ref.release = release;
    chunk->ref.arg = arg;
    append(conn, chunk);
    added(conn, n);
    return 0;
}

int fb_conn_write_file(struct fb_conn *conn, int fd, uint64_t offset, uint64_t n)
{
    struct fb_chunk *chunk =
        fb_conn_may_write(conn) ? fb_chunk_foreign(conn->net, FB_CHUNK_FILE, NULL, 0) : NULL;

    if (chunk == NULL)
        return -1;
    chunk->file.fd = fd;
    chunk->file.offset = offset;
    chunk->file.left = n;
    append(conn, chunk);
    added(conn, n);
    return 0;
}

void fb_conn_drop_output(struct fb_conn *conn)
{
    while (conn->out != NULL)
        remove_first(conn);
    conn->unsent = 0;
}

static void take_sent(struct fb_conn *conn, size_t n)
{
    conn->unsent -= n;
    conn->sent += n;
    while (n > 0) {
        struct fb_chunk *first = conn->out->next;
        size_t length = fb_chunk_length(first);

        if (n < length) {
            first->p += n;
            return;
        }
        n -= length;
        remove_first(conn);
    }
}

/* What goes with one system call: pieces of memory, or of one file. */
static struct fb_io_result send_pieces(struct fb_conn *conn, size_t *offered)
{
    struct iovec pieces[PIECES_MAX];
    const struct fb_chunk *chunk = conn->out->next;
    int n = 0;

    *offered = 0;
    while (chunk->kind != FB_CHUNK_FILE && n < PIECES_MAX) {
        pieces[n++] = (struct iovec) { .iov_base = chunk->p, .iov_len = fb_chunk_length(chunk) };
        *offered += fb_chunk_length(chunk);
        if (chunk == conn->out)
            break;
        chunk = chunk->next;
    }
    return conn->source.io->send(&conn->source, pieces, n);
}

static struct fb_io_result send_file(struct fb_conn *conn, struct fb_chunk *chunk)
{
    size_t most = chunk->file.left < FILE_PIECE ? chunk->file.left : FILE_PIECE;
    off_t offset = (off_t)chunk->file.offset;
    struct fb_io_result result =
        conn->source.io->sendfile(&conn->source, chunk->file.fd, &offset, most);

    if (result.status == FB_IO_EOF)
        return (struct fb_io_result) { .status = FB_IO_FAILED, .error = ENODATA };
    if (result.status != FB_IO_DONE)
        return result;
    conn->unsent -= result.n;
    conn->sent += result.n;
    chunk->file.offset = (uint64_t)offset;
    chunk->file.left -= result.n;
    if (chunk->file.left == 0)
        remove_first(conn);
    return result;
}

static struct fb_io_result send_once(struct fb_conn *conn)
{
    struct fb_chunk *first = conn->out->next;
    struct fb_io_result result;
    size_t offered;

    if (fb_chunk_length(first) == 0) { /* a reference to nothing, or none of a file */
        remove_first(conn);
        return (struct fb_io_result) { .status = FB_IO_DONE };
    }
    if (first->kind == FB_CHUNK_FILE)
        return send_file(conn, first);
    result = send_pieces(conn, &offered);
    if (result.status == FB_IO_DONE) {
        take_sent(conn, result.n);
        if (result.n < offered)
            conn->source.events[FB_WRITE].ready = false;
    }
    return result;
}

bool fb_conn_send(struct fb_conn *conn)
{
    struct fb_event *writing = &conn->source.events[FB_WRITE];

    for (int i = 0; i < SENDS_A_TURN && conn->out != NULL && writing->ready; i++) {
        struct fb_io_result result = send_once(conn);

        switch (result.status) {
        case FB_IO_DONE:
            break;
        case FB_IO_AGAIN_READ:
        case FB_IO_AGAIN_WRITE:
            writing->ready = false;
            break;
        default:
            fb_conn_log(conn, FB_INFO, result.error,
                result.error == ENODATA ? "a file ends before what is to be sent of it"
                                        : "send() failed");
            conn->failed = fb_conn_reason(result.error);
            return false;
        }
    }
    return true;
}

void fb_conn_push(struct fb_conn *conn)
{
    uint64_t sent = conn->sent;

    if (conn->failed != 0 || conn->connecting)
        return;
    fb_conn_send(conn);
    conn->pushed |= conn->sent != sent;
    fb_conn_touch(conn);
}

bool fb_conn_own_output(struct fb_conn *conn)
{
    struct fb_chunk *all = conn->out, *chunk = all, *next;
    bool any = false;

    if (all == NULL)
        return true;
    do {
        any = any || chunk->kind == FB_CHUNK_VIEW;
        chunk = chunk->next;
    } while (chunk != all);
    if (!any)
        return true;

    next = all->next;
    all->next = NULL; /* the ring becomes a line */
    conn->out = NULL;
    while ((chunk = next) != NULL) {
        next = chunk->next;
        if (chunk->kind != FB_CHUNK_VIEW) {
            append(conn, chunk);
            continue;
        }
        if (!append_copy(conn, chunk->p, fb_chunk_length(chunk)))
            conn->failed = FB_NO_MEMORY;
        fb_chunk_free(conn->net, chunk);
    }
    return conn->failed == 0;
}
