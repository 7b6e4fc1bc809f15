/* SPDX-License-Identifier: BSD-2-Clause */
/* Resets, by a connection's peer and by us: the output that they take back, and the input that they
 * leave.
 *
 * Responsible for what lies in the kernel at that time: input that had come before a reset which a
 * send finds, and output that a reset of ours would take back from a slow peer. Never ends a
 * connection but by conn_fail(). Invariant: conn->sent does not count output that a reset has taken
 * back. */
#include "net/conn_pipe.h"

/* How often it is asked whether the peer's system has taken the output. */
#define LOOK_MS 20

/* Returns the bytes of the output that are in the kernel's queue. */
static size_t queued(const struct fb_conn *conn)
{
    size_t n;

    if (conn->peer.family == AF_UNIX) /* sent bytes lie with the peer */
        return 0;
    n = conn->source.io->queued(&conn->source);
    if (n > 0 && conn->write == CONN_WRITE_ENDED)
        n--; /* the end counts as a byte */
    return n < conn->sent ? n : (size_t)conn->sent;
}

void conn_reset_note(struct fb_conn *conn)
{
    assert(conn_is_owned(conn));
    if (conn->source.fd != -1)
        conn->sent -= queued(conn);
}

bool conn_reset_waits(struct fb_conn *conn)
{
    struct conn_pipe *pipe = conn_pipe_of(conn);
    uint64_t now = conn->net->loop.clock.mono_ms;

    assert(conn->phase == CONN_CLOSING && conn_pipe_other(conn) == NULL);
    if (pipe->reset == CONN_PIPE_RESETS) {
        pipe->reset = CONN_PIPE_AWAITS_QUEUE;
        pipe->reset_by = now + conn->net->lingering_timeout;
        pipe->timed = CONN_PIPE_UNTIMED;
    }
    if (now >= pipe->reset_by || queued(conn) == 0)
        return false;
    conn_deadline_set(conn, LOOK_MS);
    return true;
}

bool conn_reset_leaves_input(struct fb_conn *conn, fb_reason reason)
{
    struct conn_direction *direction;

    if (reason != FB_RESET || conn->pipe == NULL || conn_pipe_index(conn) == 0 ||
        conn->phase != CONN_OPEN || conn->read == CONN_READ_ENDED)
        return false;
    direction = conn_direction_from(conn);
    assert(!direction->broken || conn->write == CONN_WRITE_ENDED);
    direction->broken = true;
    if (conn->write != CONN_WRITE_ENDED)
        conn_set_write(conn, CONN_WRITE_ENDED);
    conn_trace(conn, "is broken, what has come before is received");
    return true;
}

bool conn_reset_found(struct fb_conn *conn)
{
    if (conn->pipe == NULL || !conn_direction_from(conn)->broken)
        return false;
    assert(conn->write == CONN_WRITE_ENDED && conn_pipe_index(conn) == 1);
    conn_fail(conn, FB_RESET);
    return true;
}
