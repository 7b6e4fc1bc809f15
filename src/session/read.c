/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of ended reads, run by a source without a descriptor. A read of a connection with too
 * much unsent output waits outside of the queue. */
#include "session/read.h"

#include "session/timeouts.h"

/* Limit of reads whose `done` runs before further events: a `done` may send much of a file. */
#define READS_A_TURN 4

static void post_read(struct stream *stream, struct session_read *read)
{
    assert(read->has_ended && !read->is_posted && stream->reads_next != NULL);
    read->is_posted = true;
    TAILQ_INSERT_TAIL(&stream->reads, read, posted);
    stream->reads_n++;
    loop_post_soon(&stream->net.loop, &stream->reads_next->events[EVENT_READ]);
}

static void unpost_read(struct stream *stream, struct session_read *read)
{
    assert(read->is_posted && stream->reads_n > 0);
    read->is_posted = false;
    TAILQ_REMOVE(&stream->reads, read, posted);
    stream->reads_n--;
}

static void forget_read(struct session_read *read)
{
    CHECK_KIND(read, SESSION_READ_KIND);
    TAILQ_REMOVE(&read->use->reads, read, link);
    read->use = NULL;
    atomic_store_explicit(&read->is_forgotten, true, memory_order_relaxed);
}

static void free_read(struct net *net, struct session_read *read)
{
    CHECK_KIND(read, SESSION_READ_KIND);
    assert(read->use == NULL && !read->is_posted);
    read->kind = 0;
    memory_release(net->memory, read);
}

/* Runs `done`, with the bytes lent as input is. */
static void call_done(struct fb_conn *conn, struct session_read *read)
{
    struct net *net = conn->net;

    assert(net->lent.n == 0 && !net->flushing);
    forget_read(read);
    net->lent = read->outcome.bytes;
    session_callback_begin(conn, CALLBACK_DONE);
    read->done(conn, conn->state, &read->outcome);
    session_callback_end(conn);
    net_flush(net);
    net->lent.n = 0;
    free_read(net, read);
}

/* Runs a part of the reads, at most as many as queued at the start. */
static void run_reads(struct loop *loop, struct source *source)
{
    struct stream *stream = container_of(net_of_loop(loop), struct stream, net);
    struct session_read *read;

    assert(source == stream->reads_next);
    for (unsigned n = stream->reads_n < READS_A_TURN ? stream->reads_n : READS_A_TURN; n > 0; n--) {
        struct fb_conn *conn;

        read = TAILQ_FIRST(&stream->reads);
        if (read == NULL)
            break;
        conn = read->use->session->conn;
        unpost_read(stream, read);
        if (conn_is_active(conn) && conn->pipe == NULL && !conn->paused)
            call_done(conn, read);
    }
    if (!TAILQ_EMPTY(&stream->reads))
        loop_post_soon(loop, &source->events[EVENT_READ]);
}

/* Returns the source of the queue, made with the first read; NULL without a slot. */
static struct source *make_source(struct stream *stream)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = run_reads } };

    if (stream->reads_next == NULL)
        stream->reads_next = source_get(&stream->net.loop.sources);
    if (stream->reads_next != NULL) {
        stream->reads_next->ops = &ops;
        stream->reads_next->io = &io_socket;
    }
    return stream->reads_next;
}

int session_read_begin(struct fb_conn *conn, struct session_read *read, session_read_done *done)
{
    struct session_use *use;

    assert(conn_is_owned(conn) && done != NULL);
    if (!conn_is_active(conn) || conn->pipe != NULL || make_source(stream_of(conn)) == NULL)
        return -1;
    use = session_use_create(conn);
    if (use == NULL)
        return -1;
    read->kind = SESSION_READ_KIND;
    read->use = use;
    read->done = done;
    TAILQ_INSERT_TAIL(&use->reads, read, link);
    session_await_no_more(conn);
    return 0;
}

void session_read_cancel(struct session_read *read)
{
    struct net *net = read->use->session->conn->net;

    assert(!read->has_ended);
    forget_read(read);
    free_read(net, read);
}

void session_read_end(struct stream *stream, struct session_read *read, const fb_file_read *outcome)
{
    CHECK_KIND(read, SESSION_READ_KIND);
    assert(!read->has_ended && (outcome->error == 0 || outcome->bytes.n == 0));
    read->has_ended = true;
    read->outcome = *outcome;
    if (read->use == NULL)
        free_read(&stream->net, read);
    else
        post_read(stream, read);
}

void session_reads_clear(struct session_use *use)
{
    struct stream *stream = stream_of(use->session->conn);
    struct session_read *read;

    while ((read = TAILQ_FIRST(&use->reads)) != NULL) {
        if (read->is_posted)
            unpost_read(stream, read);
        forget_read(read);
        if (read->has_ended)
            free_read(&stream->net, read);
    }
}

void session_reads_release(struct session_use *use)
{
    struct session_read *read;

    TAILQ_FOREACH (read, &use->reads, link)
        if (read->has_ended && !read->is_posted)
            post_read(stream_of(use->session->conn), read);
}
