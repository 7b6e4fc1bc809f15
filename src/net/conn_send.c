/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a connection that waits: a ring of chunks, behind which borrowed bytes may come,
 * and the system calls that hand both to the kernel.
 *
 * Responsible for conn->out and net->borrowed. Never ends the connection and never watches for
 * room; the flush does. Invariant: conn->unsent is the sum of the chunks and of what the connection
 * has borrowed. */
#include "net/conn_private.h"

#include <errno.h>
#include <string.h>

/* System calls after which a connection whose peer takes everything gives the others their turn. */
#define SENDS_A_TURN 16
/* The same in bytes. */
#define SENT_A_TURN (1024 * 1024)
/* Bytes of a file that one system call takes. */
#define FILE_PIECE (1024 * 1024)

void conn_append_chunk(struct fb_conn *conn, struct chunk *chunk)
{
    assert(conn->net->borrower != conn);
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

bool conn_append_copy(struct fb_conn *conn, const uint8_t *p, size_t n)
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
    conn_append_chunk(conn, chunk);
    return true;
}

size_t conn_output_limit(const struct fb_conn *conn)
{
    return conn->ops->output_limit != NULL ? conn->ops->output_limit(conn) : SIZE_MAX;
}

bool conn_memory_is_unsent(const struct fb_conn *conn, size_t n)
{
    const struct chunk *chunk = conn->out;
    size_t files = 0;

    if (conn->unsent < n || chunk == NULL)
        return conn->unsent >= n;
    do {
        chunk = chunk->next;
        files += chunk->kind == CHUNK_FILE ? chunk->file.left : 0;
    } while (chunk != conn->out);
    return conn->unsent - files >= n;
}

bool conn_check_room(struct fb_conn *conn)
{
    size_t limit = conn_output_limit(conn);

    if (limit > SIZE_MAX / 2 || !conn_memory_is_unsent(conn, 2 * limit))
        return true;
    conn_log(conn, LEVEL_INFO, 0,
        "%zu bytes of output are unsent, and the protocol goes on to write", conn->unsent);
    conn_fail(conn, FB_OUTPUT_LIMIT);
    return false;
}

bool conn_own_output(struct fb_conn *conn)
{
    struct net *net = conn->net;

    if (net->borrower != conn)
        return true;
    net->borrower = NULL;
    if (conn->unsent - net->borrowed.n > CONN_HIGH_WATER && !conn_check_room(conn))
        return false;
    if (conn_append_copy(conn, net->borrowed.p, net->borrowed.n))
        return true;
    conn_fail(conn, FB_NO_MEMORY);
    return false;
}

void conn_drop_output(struct fb_conn *conn)
{
    if (conn->net->borrower == conn)
        conn->net->borrower = NULL;
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

static void drop_borrowed(struct net *net, size_t n)
{
    assert(n <= net->borrowed.n);
    net->borrowed.p += n;
    net->borrowed.n -= n;
    if (net->borrowed.n == 0)
        net->borrower = NULL;
}

static void drop_sent(struct fb_conn *conn, size_t n)
{
    assert(n <= conn->unsent);
    conn->unsent -= n;
    conn->sent += n;
    while (n > 0 && conn->out != NULL) {
        struct chunk *first = conn->out->next;
        size_t length = memory_length(first);

        if (n < length) {
            first->p += n;
            return;
        }
        n -= length;
        remove_first(conn);
    }
    if (n > 0)
        drop_borrowed(conn->net, n);
}

COLD bool conn_send_failed(struct fb_conn *conn, int error)
{
    if (!conn_reset_leaves_input(conn, conn_reason_of(error))) {
        conn_fail_by(conn, error);
        return true;
    }
    conn_tell_failed(conn, error);
    conn_drop_output(conn);
    return false;
}

bool conn_note_sent(struct fb_conn *conn, struct io_result result, size_t offered)
{
    struct event *writing = &conn->source.events[EVENT_WRITE];

    switch (result.status) {
    case IO_DONE:
        conn_trace(conn, "sent %zu of %zu bytes", result.n, offered);
        drop_sent(conn, result.n);
        conn_note_moved(conn);
        if (result.n < offered)
            writing->ready = false;
        return true;
    case IO_AGAIN_READ:
    case IO_AGAIN_WRITE:
        conn_trace(conn, "no room to send");
        writing->ready = false;
        return true;
    default:
        conn_log_failed(conn, LOG_SENDING, result.error, "send()");
        conn_send_failed(conn, result.error);
        return false;
    }
}

bool conn_push_held(struct fb_conn *conn)
{
    struct io_result result = conn->source.io->flush(&conn->source);

    if (result.status == IO_DONE)
        return true;
    conn_note_sent(conn, result, 0);
    return false;
}

/* Sends memory up to the next file. */
static bool send_pieces(struct fb_conn *conn)
{
    struct net *net = conn->net;
    const struct chunk *chunk = conn->out, *last = chunk;
    struct iovec *pieces = net->pieces;
    bool is_all = chunk == NULL;
    size_t offered = 0;
    int n = 0;

    while (!is_all && chunk->next->kind != CHUNK_FILE && n < NET_PIECES) {
        size_t length;

        chunk = chunk->next;
        length = memory_length(chunk);
        pieces[n++] = (struct iovec) { .iov_base = chunk->p, .iov_len = length };
        offered += length;
        is_all = chunk == last;
    }
    if (is_all && net->borrower == conn && n < NET_PIECES) {
        pieces[n++] = (struct iovec) { (uint8_t *)net->borrowed.p, net->borrowed.n };
        offered += net->borrowed.n;
    }
    return conn_note_sent(conn, conn->source.io->send(&conn->source, pieces, n), offered);
}

static bool send_file(struct fb_conn *conn, struct chunk *chunk)
{
    size_t most = chunk->file.left < FILE_PIECE ? chunk->file.left : FILE_PIECE;
    off_t offset = (off_t)chunk->file.offset;
    struct io_result result =
        conn->source.io->sendfile(&conn->source, chunk->file.fd, &offset, most);

    if (result.status == IO_EOF) {
        conn_log(conn, LEVEL_ERROR, ENODATA, "a file ends before what is to be sent of it");
        conn_fail_by(conn, ENODATA);
        return false;
    }
    if (result.status != IO_DONE)
        return conn_note_sent(conn, result, 0);
    conn_trace(conn, "sent %zu of %zu bytes of a file", result.n, most);
    assert(result.n <= chunk->file.left && result.n <= conn->unsent);
    conn->unsent -= result.n;
    conn->sent += result.n;
    conn_note_moved(conn);
    chunk->file.offset = (uint64_t)offset;
    chunk->file.left -= result.n;
    if (chunk->file.left == 0)
        remove_first(conn);
    return true;
}

static bool is_empty(const struct chunk *chunk)
{
    return chunk->kind == CHUNK_FILE ? chunk->file.left == 0 : chunk->p == chunk->end;
}

static bool send_once(struct fb_conn *conn)
{
    struct chunk *first = conn->out != NULL ? conn->out->next : NULL;

    if (first != NULL && is_empty(first)) { /* a reference to nothing, or none of a file */
        remove_first(conn);
        return true;
    }
    return first != NULL && first->kind == CHUNK_FILE ? send_file(conn, first) : send_pieces(conn);
}

bool conn_send(struct fb_conn *conn)
{
    const struct event *writing = &conn->source.events[EVENT_WRITE];
    uint64_t most = conn->sent + SENT_A_TURN;

    assert(conn->source.fd != -1 && conn->phase >= CONN_OPENING);
    for (int i = 0; i < SENDS_A_TURN && writing->ready && conn->sent < most; i++) {
        if (!conn_has_output(conn))
            return true;
        if (!send_once(conn))
            return false;
    }
    return true;
}
