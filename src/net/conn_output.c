/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of connections: gathered while a callback runs, sent once after it by the flush.
 *
 * Responsible for the owners' calls that send, and for flushing, after each callback, whatever it
 * has marked dirty. Output that lies in the input lent to the callback is sent from there, and
 * little else from the worker's own few bytes; at most one connection borrows either, which needs
 * no mark, and the borrowed bytes are always the last of its output. Invariant: after the flush no
 * connection borrows. */
#include "net/conn_pipe.h"

#include <string.h>

/* Rounds of a flush: in each, memory is released whose owners may write more. */
#define FLUSHES_A_TURN 8

static bool is_lent(const struct net *net, const uint8_t *p, size_t n)
{
    size_t at = (uintptr_t)p - (uintptr_t)net->lent.p;

    return at < net->lent.n && n <= net->lent.n - at;
}

/* Makes n bytes, which stay where they are until the flush, the last of the connection's output.
 * The flush looks at whoever borrows, dirty or not. */
static inline void borrow(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    assert(!conn->net->flushing);
    conn->net->borrower = conn;
    conn->net->borrowed = (fb_bytes) { p, n };
    conn->unsent += n;
}

/* Adds to what the connection has borrowed already what lies behind it, or fits there; false: it is
 * to be copied. */
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
    if (unlikely(conn->unsent > CONN_HIGH_WATER) && !conn_check_room(conn))
        return;
    if (lent && net->borrower == NULL) {
        borrow(conn, p, n);
    } else if (!conn_append_copy(conn, p, n)) {
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
    if (conn_own_output(conn) && (conn->unsent <= CONN_HIGH_WATER || conn_check_room(conn)))
        chunk =
            chunk_create_foreign(&conn->net->chunks, kind, p, kind == CHUNK_FILE ? 0 : (size_t)n);
    if (chunk == NULL)
        return NULL;
    conn_append_chunk(conn, chunk);
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

/* Sends what a connection has borrowed, if that is all its output and nothing waits for it; else,
 * and where not all of it leaves, conn_flush() is to do whatever there is to do. Where room was
 * waited for, it is armed, and there may be more to do than to send: see send_output(). */
static inline void send_borrowed(struct net *net)
{
    struct fb_conn *conn = net->borrower;
    const struct event *writing = &conn->source.events[EVENT_WRITE];
    struct io_result result;

    if (unlikely(!conn_can_send(conn) || conn->write != CONN_WRITE_ON || conn->out != NULL ||
                 !writing->ready || writing->armed ||
                 (conn->pipe != NULL && !conn_pipe_flows(conn)))) {
        conn_mark_dirty(conn);
        return;
    }
    assert(net->borrowed.n == conn->unsent);
    net->pieces[0] = (struct iovec) { (uint8_t *)net->borrowed.p, net->borrowed.n };
    result = conn->source.io->send(&conn->source, net->pieces, 1);
    if (unlikely(result.status != IO_DONE || result.n != net->borrowed.n)) {
        conn_note_sent(conn, result, net->borrowed.n);
        conn_mark_dirty(conn);
        return;
    }
    conn_trace(conn, "sent %zu of %zu bytes", result.n, result.n);
    net->borrower = NULL;
    conn->unsent = 0;
    conn->sent += result.n;
    conn_note_moved(conn);
}

/* Leaves to the next turn what callbacks of the flush mark dirty again and again. */
static COLD void postpone_dirty(struct net *net)
{
    struct event *event;

    while ((event = TAILQ_FIRST(&net->loop.queues[QUEUE_FLUSH])) != NULL) {
        struct fb_conn *conn = container_of(event, struct fb_conn, source.events[EVENT_WRITE]);

        conn_own_output(conn);
        if (conn->out != NULL && conn->source.fd != -1 && /* -1: connect() is to be tried again */
            source_arm(&net->loop, &conn->source, EVENT_WRITE) == -1)
            conn_fail(conn, FB_NO_MEMORY);
        conn_count(conn);
        conn_postpone_flush(conn);
    }
}

/* Flushes the dirty connections. Input is lent to the callback that has returned, and no more to
 * those that run now, of which none borrows. */
static NOINLINE void flush_dirty(struct net *net)
{
    struct loop *loop = &net->loop;
    size_t lent = net->lent.n;
    struct event *event;
    int rounds = 0;

    assert(!net->flushing);
    net->flushing = true;
    net->lent.n = 0;
    for (;;) {
        while ((event = TAILQ_FIRST(&loop->queues[QUEUE_FLUSH])) != NULL) {
            assert(event->direction == EVENT_WRITE && event->queue == QUEUE_FLUSH);
            loop_unpost(loop, event);
            conn_flush(container_of(event, struct fb_conn, source.events[EVENT_WRITE]));
        }
        if (likely(net->chunks.released == NULL))
            break;
        chunk_pool_run_releases(&net->chunks, net->heartbeat);
        if (++rounds == FLUSHES_A_TURN) {
            postpone_dirty(net);
            break;
        }
    }
    net->lent.n = lent; /* the checks know by it that a connection's input is with its owner */
    net->flushing = false;
}

void net_flush(struct net *net)
{
    if (unlikely(net->flushing)) /* a callback of the flush has called; the outer call goes on */
        return;
    if (likely(net->borrower != NULL))
        send_borrowed(net);
    if (unlikely(net_is_dirty(net)))
        flush_dirty(net);
    if (DEBUG_BUILD)
        net_check(net);
}
