/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a connection: gathered while a callback runs, sent once after it. */
#include "net/conn_private.h"

#include <string.h>

/* Pieces that one system call takes. */
#define PIECES_MAX 64

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

    if (chunk != NULL && chunk->limit == NULL && chunk->end == p) {
        chunk->end += n;
        return true;
    }
    chunk = fb_chunk_view(conn->net, p, n);
    if (chunk == NULL)
        return false;
    append(conn, chunk);
    return true;
}

static bool append_copy(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    struct fb_chunk *chunk = conn->out;

    if (chunk != NULL && chunk->limit != NULL) {
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

void fb_conn_write(struct fb_conn *conn, const void *p, size_t n)
{
    if (conn->closing || conn->failed != 0 || n == 0)
        return;
    if (!(is_lent(conn->net, p, n) ? append_view : append_copy)(conn, p, n)) {
        fb_conn_fail(conn, FB_NO_MEMORY);
        return;
    }
    conn->unsent += n;
    fb_conn_touch(conn);
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

static struct fb_io_result send_once(struct fb_conn *conn, size_t *offered)
{
    struct iovec pieces[PIECES_MAX];
    const struct fb_chunk *chunk = conn->out;
    int n = 0;

    *offered = 0;
    do {
        chunk = chunk->next;
        pieces[n++] = (struct iovec) { .iov_base = chunk->p, .iov_len = fb_chunk_length(chunk) };
        *offered += fb_chunk_length(chunk);
    } while (chunk != conn->out && n < PIECES_MAX);
    return conn->source.io->send(&conn->source, pieces, n);
}

/* What stays unsent moves out of the lent input, which ends with the callback. */
static bool own_views(struct fb_conn *conn)
{
    struct fb_chunk *all = conn->out, *chunk = all, *next;
    bool any = false;

    if (all == NULL)
        return true;
    do {
        any = any || chunk->limit == NULL;
        chunk = chunk->next;
    } while (chunk != all);
    if (!any)
        return true;

    next = all->next;
    all->next = NULL; /* the ring becomes a line */
    conn->out = NULL;
    while ((chunk = next) != NULL) {
        next = chunk->next;
        if (chunk->limit != NULL) {
            append(conn, chunk);
            continue;
        }
        if (!append_copy(conn, chunk->p, fb_chunk_length(chunk)))
            conn->failed = FB_NO_MEMORY;
        fb_chunk_free(conn->net, chunk);
    }
    return conn->failed == 0;
}

bool fb_conn_flush(struct fb_conn *conn)
{
    struct fb_event *writing = &conn->source.events[FB_WRITE];

    while (conn->out != NULL && writing->ready) {
        size_t offered;
        struct fb_io_result result = send_once(conn, &offered);

        switch (result.status) {
        case FB_IO_DONE:
            take_sent(conn, result.n);
            if (result.n < offered)
                writing->ready = false;
            break;
        case FB_IO_AGAIN_READ:
        case FB_IO_AGAIN_WRITE:
            writing->ready = false;
            break;
        default:
            fb_conn_log(conn, FB_INFO, result.error, "send() failed");
            conn->failed = fb_conn_reason(result.error);
            return false;
        }
    }
    return own_views(conn);
}
