/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a connection: gathered while a callback runs, and sent by the flush.
 *
 * Responsible for conn->out, a ring of chunks, and for handing it to the kernel. Output within the
 * lent input is sent from there, and little else from the worker's few bytes (net->borrowed): at
 * most one connection borrows either, and borrowed bytes are the last of its output. Never ends the
 * connection, and never watches for room. Invariant: conn->unsent is the sum of the chunks and the
 * borrowed bytes. */
#include "net/conn_output.h"

#include "net/conn_direction.h"
#include "net/conn_log.h"

#include <errno.h>
#include <string.h>

/* System calls a turn, where a peer takes everything. */
#define SENDS_A_TURN 16
/* The same in bytes. */
#define SENT_A_TURN (1024 * 1024)
/* Bytes of a file in a system call. */
#define FILE_PIECE (1024 * 1024)

/* ---- The ring of chunks ---- */

static void append_chunk_to_ring(struct fb_conn *conn, struct chunk *chunk)
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

static void remove_first_chunk(struct fb_conn *conn)
{
    struct chunk *first = conn->out->next;

    if (first == conn->out)
        conn->out = NULL;
    else
        conn->out->next = first->next;
    chunk_free(&conn->net->chunks, first);
}

/* Adds a copy to the ring; false without memory. */
static bool append_copy_to_ring(struct fb_conn *conn, const uint8_t *p, size_t n)
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
    append_chunk_to_ring(conn, chunk);
    return true;
}

bool conn_output_is_at(const struct fb_conn *conn, unsigned times)
{
    size_t limit = conn->ops->output_limit != NULL ? conn->ops->output_limit(conn) : SIZE_MAX;
    const struct chunk *chunk = conn->out;
    size_t files = 0;

    if (limit > SIZE_MAX / 2 || conn->unsent < times * limit)
        return false;
    if (chunk != NULL)
        do {
            chunk = chunk->next;
            files += chunk->kind == CHUNK_FILE ? chunk->file.left : 0;
        } while (chunk != conn->out);
    return conn->unsent - files >= times * limit;
}

/* Whether there is room for output; false: twice the limit is unsent, and the connection failed. */
static NOINLINE bool has_output_room(struct fb_conn *conn)
{
    if (!conn_output_is_at(conn, 2))
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
    if (conn->unsent - net->borrowed.n > CONN_HIGH_WATER && !has_output_room(conn))
        return false;
    if (append_copy_to_ring(conn, net->borrowed.p, net->borrowed.n))
        return true;
    conn_fail(conn, FB_NO_MEMORY);
    return false;
}

void conn_drop_output(struct fb_conn *conn)
{
    if (conn->net->borrower == conn)
        conn->net->borrower = NULL;
    while (conn->out != NULL)
        remove_first_chunk(conn);
    conn->unsent = 0;
}

/* ---- Sending ---- */

COLD bool conn_send_failed(struct fb_conn *conn, int error)
{
    if (conn_reason_of(error) != FB_RESET || conn->pipe == NULL || conn_pipe_index(conn) == 0 ||
        conn->phase != CONN_OPEN || conn->read == CONN_READ_ENDED) {
        conn_fail_by(conn, error);
        return true;
    }
    /* the second end of a pipe delivers the bytes before the reset */
    assert(!conn->pipe->from.broken || conn->write == CONN_WRITE_ENDED);
    conn->pipe->from.broken = true;
    if (conn->write != CONN_WRITE_ENDED)
        conn_set_write(conn, CONN_WRITE_ENDED);
    conn_trace(conn, "is broken, earlier bytes are received");
    conn_tell_failed(conn, error);
    conn_drop_output(conn);
    return false;
}

static void drop_sent(struct fb_conn *conn, size_t n)
{
    struct net *net = conn->net;

    assert(n <= conn->unsent);
    conn->unsent -= n;
    conn_count_sent(conn, n);
    while (n > 0 && conn->out != NULL) {
        struct chunk *first = conn->out->next;
        size_t length = chunk_length(first);

        assert(first->kind != CHUNK_FILE);
        if (n < length) {
            first->p += n;
            return;
        }
        n -= length;
        remove_first_chunk(conn);
    }
    if (n == 0)
        return;
    assert(n <= net->borrowed.n);
    net->borrowed.p += n;
    net->borrowed.n -= n;
    if (net->borrowed.n == 0)
        net->borrower = NULL;
}

bool conn_note_sent(struct fb_conn *conn, struct io_result result, size_t offered)
{
    struct event *writing = &conn->source.events[EVENT_WRITE];

    switch (result.status) {
    case IO_DONE:
        conn_trace(conn, "sent %zu of %zu bytes", result.n, offered);
        drop_sent(conn, result.n);
        conn_note_moved(conn);
        if (conn->source.layered ? conn->source.held : result.n < offered)
            writing->ready = false; /* a layer takes a part, and then holds what has no room */
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
        length = chunk_length(chunk);
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

static bool send_file_piece(struct fb_conn *conn, struct chunk *chunk)
{
    size_t most = chunk->file.left < FILE_PIECE ? chunk->file.left : FILE_PIECE;
    off_t offset = (off_t)chunk->file.offset;
    struct io_result result =
        conn->source.io->sendfile(&conn->source, chunk->file.fd, &offset, most);

    if (result.status == IO_EOF) {
        conn_log(conn, LEVEL_ERROR, ENODATA, "a file ends before the end of the bytes to send");
        conn_fail_by(conn, ENODATA);
        return false;
    }
    if (result.status != IO_DONE)
        return conn_note_sent(conn, result, 0);
    conn_trace(conn, "sent %zu of %zu bytes of a file", result.n, most);
    assert(result.n <= chunk->file.left && result.n <= conn->unsent);
    conn->unsent -= result.n;
    conn_count_sent(conn, result.n);
    conn_note_moved(conn);
    if (conn->source.held)
        conn->source.events[EVENT_WRITE].ready = false;
    chunk->file.offset = (uint64_t)offset;
    chunk->file.left -= result.n;
    if (chunk->file.left == 0)
        remove_first_chunk(conn);
    return true;
}

bool conn_send(struct fb_conn *conn)
{
    const struct event *writing = &conn->source.events[EVENT_WRITE];
    uint64_t most = conn->sent + SENT_A_TURN;

    assert(conn->source.fd != -1 && conn->phase >= CONN_OPENING);
    for (int i = 0; i < SENDS_A_TURN && writing->ready && conn->sent < most; i++) {
        struct chunk *first = conn->out != NULL ? conn->out->next : NULL;

        if (!conn_has_output(conn))
            return true;
        if (first != NULL &&
            chunk_length(first) == 0) /* a reference to nothing, or no file's bytes */
            remove_first_chunk(conn);
        else if (!(first != NULL && first->kind == CHUNK_FILE ? send_file_piece(conn, first)
                                                              : send_pieces(conn)))
            return false;
    }
    return true;
}

/* ---- Calls of owners ---- */

static bool is_lent(const struct net *net, const uint8_t *p, size_t n)
{
    size_t at = (uintptr_t)p - (uintptr_t)net->lent.p;

    return at < net->lent.n && n <= net->lent.n - at;
}

/* Makes n bytes, which stay until the flush, the last of the output; no dirty mark is needed. */
static inline void borrow(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    assert(!conn->net->flushing);
    conn->net->borrower = conn;
    conn->net->borrowed = (fb_bytes) { p, n };
    conn->unsent += n;
}

/* Adds bytes to the borrowed output, where they fit; false: to be copied. */
static bool borrow_more(struct fb_conn *conn, const uint8_t *p, size_t n, bool lent)
{
    struct net *net = conn->net;
    fb_bytes *borrowed = &net->borrowed;
    size_t at = (uintptr_t)borrowed->p - (uintptr_t)net->little;
    bool is_little = at < sizeof(net->little);

    if (lent ? borrowed->p + borrowed->n != p
             : !is_little || n > sizeof(net->little) - at - borrowed->n)
        return false;
    if (!lent)
        memcpy(net->little + at + borrowed->n, p, n);
    borrowed->n += n;
    conn->unsent += n;
    return true;
}

/* Adds output where conn_write() does not borrow. */
static NOINLINE void write_more(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    struct net *net = conn->net;
    bool lent = is_lent(net, p, n);

    if (!conn_may_write(conn) || n == 0 || (net->borrower == conn && borrow_more(conn, p, n, lent)))
        return;
    conn_mark_dirty(conn);
    if (!conn_own_output(conn))
        return;
    if (unlikely(conn->unsent > CONN_HIGH_WATER) && !has_output_room(conn))
        return;
    if (lent && net->borrower == NULL) {
        borrow(conn, p, n);
    } else if (!append_copy_to_ring(conn, p, n)) {
        conn_fail(conn, FB_NO_MEMORY);
    } else {
        conn->unsent += n;
    }
}

void conn_write(struct fb_conn *conn, const void *p, size_t n)
{
    struct net *net = conn->net;

    if (unlikely(conn->phase != CONN_OPEN || conn->write != CONN_WRITE_ON ||
                 net->borrower != NULL || n == 0))
        write_more(conn, p, n);
    else if (is_lent(net, p, n))
        borrow(conn, p, n);
    else if (likely(n <= sizeof(net->little) && conn->out == NULL && !net->flushing))
        borrow(conn, memcpy(net->little, p, n), n);
    else
        write_more(conn, p, n);
}

/* Adds a chunk that is no copy; NULL where nothing can be added. */
static struct chunk *add_foreign(
    struct fb_conn *conn, enum chunk_kind kind, const uint8_t *p, uint64_t n)
{
    struct chunk *chunk = NULL;

    if (!conn_may_write(conn))
        return NULL;
    conn_mark_dirty(conn);
    if (conn_own_output(conn) && (conn->unsent <= CONN_HIGH_WATER || has_output_room(conn)))
        chunk =
            chunk_create_foreign(&conn->net->chunks, kind, p, kind == CHUNK_FILE ? 0 : (size_t)n);
    if (chunk == NULL)
        return NULL;
    append_chunk_to_ring(conn, chunk);
    conn->unsent += n;
    return chunk;
}

int conn_write_ref(
    struct fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg)
{
    struct chunk *chunk = add_foreign(conn, CHUNK_REF, p, n);

    if (chunk == NULL)
        return -1;
    chunk->ref.release = release;
    chunk->ref.arg = arg;
    chunk->protocol = heartbeat_running_protocol(conn->net->heartbeat);
    return 0;
}

int conn_write_file(struct fb_conn *conn, int fd, uint64_t offset, uint64_t n)
{
    struct chunk *chunk = add_foreign(conn, CHUNK_FILE, NULL, n);

    if (chunk == NULL)
        return -1;
    chunk->file.fd = fd;
    chunk->file.offset = offset;
    chunk->file.left = n;
    return 0;
}

void conn_push(struct fb_conn *conn)
{
    if (!conn_can_send(conn))
        return;
    conn_send(conn);
    conn_mark_dirty(conn);
}
