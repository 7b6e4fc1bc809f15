/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a pipe that go straight from one socket to the other.
 *
 * Responsible for the usual case alone: what was received is sent in the same step, without being
 * kept as output meanwhile. Never ends a connection. Invariant: bytes are sent here only where none
 * of the connection's own wait. */
#include "net/conn_pipe.h"

/* Whether output of an open connection leaves at once: none waits, nor room for it. */
static inline bool takes_at_once(const struct fb_conn *to)
{
    const struct event *writing = &to->source.events[EVENT_WRITE];

    return to->phase == CONN_OPEN && to->write == CONN_WRITE_ON && to->out == NULL &&
           writing->ready && !writing->armed;
}

size_t conn_pipe_pass(struct fb_conn *conn, struct io_span in)
{
    const struct conn_direction *direction = conn_direction_from(conn);
    struct fb_conn *to = conn_pipe_other(conn);
    struct net *net = conn->net;
    struct io_result result;

    assert(in.n > 0 && net->borrower == NULL);
    if (unlikely(to == NULL || conn->received >= direction->look_at || direction->buffered > 0) ||
        unlikely(!takes_at_once(to)))
        return 0;
    conn_note_moved(conn);
    net->pieces[0] = (struct iovec) { in.p, in.n };
    result = to->source.io->send(&to->source, net->pieces, 1);
    if (unlikely(result.status != IO_DONE)) {
        conn_note_sent(to, result, in.n);
        return 0;
    }
    conn_trace(to, "sent %zu of %zu bytes", result.n, in.n);
    to->sent += result.n;
    conn_note_moved(to);
    if (unlikely(result.n < in.n))
        to->source.events[EVENT_WRITE].ready = false;
    return result.n;
}
