/* SPDX-License-Identifier: BSD-2-Clause */
/* The invariants of a connection, asserted between callbacks by tests and debug builds.
 *
 * Responsible for looking only: changes nothing, and expects that the flush behind the last
 * callback has ended. */
#include "net/conn_pipe.h"

static size_t sum_output(const struct fb_conn *conn)
{
    const struct chunk *chunk = conn->out;
    size_t n = conn->net->borrower == conn ? conn->net->borrowed.n : 0;

    if (chunk == NULL)
        return n;
    do {
        chunk_check(chunk);
        n += chunk_length(chunk);
        chunk = chunk->next;
    } while (chunk != conn->out);
    return n;
}

static void check_buffers(const struct fb_conn *conn)
{
    assert(conn->unsent == sum_output(conn));
    if (conn->in != NULL) {
        chunk_check(conn->in);
        assert(conn->in->kind == CHUNK_OWN && chunk_length(conn->in) > 0);
    }
    assert(!conn->paused || (conn->unsent >= CONN_LOW_WATER && conn->pipe == NULL));
    assert(!conn->unwritable || conn->paused);
    if (conn->write == CONN_WRITE_ENDED)
        assert(conn->out == NULL);
    if (conn->outgoing)
        assert(conn->counted == CONN_WAITING);
    else if (conn->net->lent.n == 0 && !conn->net->flushing)
        assert(conn->counted == conn_activity(conn));
}

static void check_pipe(const struct fb_conn *conn)
{
    const struct conn_pipe *pipe = conn_pipe_of(conn);
    const struct conn_direction *direction;

    CHECK_KIND(pipe, CONN_PIPE_KIND);
    assert(conn->by_pipe == (conn_direction_from(conn)->splices || pipe->limits != NULL));
    assert(!conn_throttle_waits(conn) || conn->read != CONN_READ_ON || !conn_is_active(conn));
    direction = conn_direction_to(conn);
    assert((direction->buffered > 0) <= (direction->kernel.read != -1));
    assert(conn->pipe == &pipe->ends[conn_pipe_index(conn)]);
    assert(conn_pipe_other(conn) == NULL || conn_pipe_of(conn_pipe_other(conn)) == pipe);
    assert(pipe->timeout > 0 || pipe->timed == CONN_PIPE_UNTIMED);
    assert(pipe->timed != conn_pipe_index(conn) || conn->limited || conn_has_failed(conn));
}

/* Checks a connection whose `closed` has run. */
static void check_unowned(const struct fb_conn *conn)
{
    assert(!conn->owner_knows && conn->in == NULL && conn->out == NULL && conn->pipe == NULL);
    assert(conn->write == CONN_WRITE_ENDED);
    assert(conn->phase == CONN_LINGERED || conn->limited);
    assert((conn->phase == CONN_LINGERED) == (conn->reason != 0));
}

static void check_open(const struct fb_conn *conn)
{
    const struct event *events = conn->source.events;

    assert(conn->owner_knows);
    if (conn->net->flushing || conn->net->lent.n > 0)
        return;
    assert(events[EVENT_READ].armed == conn_may_read(conn));
    assert(conn->out == NULL || events[EVENT_WRITE].armed);
}

void conn_check(const struct fb_conn *conn)
{
    assert(conn->source.in_use && conn->phase != CONN_FREE && conn->phase < CONN_PHASES);
    assert(conn->net != NULL && conn->ops != NULL);
    assert((conn->reason != 0) == conn_has_failed(conn) || conn->phase == CONN_ENDING);
    assert(conn->outgoing || !conn_is_connecting(conn));
    check_buffers(conn);
    if (conn->pipe != NULL)
        check_pipe(conn);
    else
        assert(!conn->by_pipe);
    if (!conn_is_owned(conn))
        check_unowned(conn);
    if (conn->phase == CONN_OPEN)
        check_open(conn);
    if (conn->phase == CONN_KEEPING)
        assert(conn->outgoing && conn->pipe == NULL);
    if (conn_is_connecting(conn))
        assert(conn->received == 0 && conn->sent == 0);
}
