/* SPDX-License-Identifier: BSD-2-Clause */
/* How the bytes of a pipe's direction move: from one socket straight to the other, within the
 * kernel, or at a rate.
 *
 * Never calls an owner, and never reads on after a rate: the pipe does. Invariants: a direction has
 * a kernel's pipe exactly while bytes are in it; a direction has received at most its rate times
 * the begun seconds of the pipe, but for earlier input, and may receive a byte while it is read. */
#include "net/conn_direction.h"

#include "net/conn_log.h"
#include "net/conn_output.h"
#include "os/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

/* Whether output of an open connection leaves at once: none waits, nor room for it, nor a layer. */
static inline bool takes_at_once(const struct fb_conn *to)
{
    const struct event *writing = &to->source.events[EVENT_WRITE];

    return to->phase == CONN_OPEN && to->write == CONN_WRITE_ON && to->out == NULL &&
           writing->ready && !writing->armed && !to->source.layered;
}

/* Tells an owner without a callback of the first byte; false: there is more to do than to copy. */
static NOINLINE bool note_first(struct fb_conn *conn)
{
    struct conn_pipe *pipe = conn_pipe_of(conn);

    if (conn_pipe_index(conn) != 1 || !pipe->awaits_first || pipe->first_byte != NULL)
        return false;
    pipe->awaits_first = false;
    conn->pipe->from.look_at = CONN_PIPE_COPIED_MOST;
    conn->pipe->ops->first_byte(conn, NULL);
    return conn->received < CONN_PIPE_COPIED_MOST;
}

size_t conn_direction_pass(struct fb_conn *conn, struct io_span in)
{
    const struct conn_direction *direction = &conn->pipe->from;
    struct fb_conn *to = conn_pipe_other(conn);
    struct net *net = conn->net;
    struct io_result result;

    assert(in.n > 0 && net->borrower == NULL);
    if (unlikely(to == NULL || direction->buffered > 0 ||
                 (conn->received >= direction->look_at && !note_first(conn))) ||
        unlikely(!takes_at_once(to)) || unlikely(conn->source.held)) /* output to be flushed */
        return 0;
    conn_note_moved(conn);
    net->pieces[0] = (struct iovec) { in.p, in.n };
    result = to->source.io->send(&to->source, net->pieces, 1);
    if (unlikely(result.status != IO_DONE)) {
        conn_note_sent(to, result, in.n);
        return 0;
    }
    conn_trace(to, "sent %zu of %zu bytes", result.n, in.n);
    conn_count_sent(to, result.n);
    conn_note_moved(to);
    if (unlikely(result.n < in.n))
        to->source.events[EVENT_WRITE].ready = false;
    return result.n;
}

/* Returns the bytes received in the pipe. */
static uint64_t moved_by(const struct fb_conn *conn, const struct conn_throttle *throttle)
{
    assert(conn->received >= throttle->before);
    return conn->received - throttle->before;
}

/* Returns how many bytes the rate allows now. */
static uint64_t allowed(const struct fb_conn *conn, const struct conn_throttle *throttle)
{
    uint64_t passed = conn->net->loop.clock.mono_ms - conn_pipe_of(conn)->limits->began_ms, most;
    uint64_t moved = moved_by(conn, throttle);

    if (__builtin_mul_overflow(throttle->rate, passed / 1000 + 1, &most))
        return UINT64_MAX;
    return most > moved ? most - moved : 0;
}

size_t conn_direction_room(const struct fb_conn *conn, size_t most)
{
    const struct conn_throttle *throttle = conn_throttle_of(conn);
    uint64_t n;

    if (throttle == NULL || throttle->rate == 0)
        return most;
    n = allowed(conn, throttle);
    assert(n > 0 && !timer_is_set(&throttle->timer));
    return n < most ? (size_t)n : most;
}

void conn_direction_note(struct fb_conn *conn, size_t n)
{
    struct conn_throttle *throttle = conn_throttle_of(conn);
    uint64_t now = conn->net->loop.clock.mono_ms, wait, at;

    if (throttle == NULL || throttle->rate == 0 || !conn_is_active(conn))
        return;
    wait = (uint64_t)n * 1000 / throttle->rate; /* until the rate allows for n, and for more */
    if (allowed(conn, throttle) == 0) {
        at =
            conn_pipe_of(conn)->limits->began_ms + moved_by(conn, throttle) / throttle->rate * 1000;
        assert(at > now);
        wait = at - now > wait ? at - now : wait;
    }
    if (wait == 0)
        return;
    conn_trace(conn, "is not read for %" PRIu64 " ms, for its rate", wait);
    conn_stop(conn);
    timer_set(&conn->net->loop, &throttle->timer, wait);
}

bool conn_direction_fail_broken(struct fb_conn *conn)
{
    if (conn->pipe == NULL || !conn->pipe->from.broken)
        return false;
    assert(conn->write == CONN_WRITE_ENDED && conn_pipe_index(conn) == 1);
    conn_fail(conn, FB_RESET);
    return true;
}

/* Bytes at a time that are few, and how often in a row. */
#define LITTLE 4096
#define LITTLE_TIMES 8
#define KERNEL_PIPE_SIZE (256 * 1024)
#define SPLICE_MOST ((size_t)1024 * 1024)

static bool acquire_kernel_pipe(struct net *net, struct conn_direction *direction)
{
    int ends[2];

    if (direction->kernel.read != -1)
        return true;
    assert(direction->buffered == 0);
    if (net->spare_pipe_n > 0) {
        direction->kernel = net->spare_pipes[--net->spare_pipe_n];
        return true;
    }
    if (descriptor_pipe(ends, O_NONBLOCK) == -1)
        return false;
    descriptor_widen_pipe(ends[0], KERNEL_PIPE_SIZE);
    direction->kernel = (struct pipe_ends) { .read = ends[0], .write = ends[1] };
    return true;
}

void conn_direction_give_back(struct net *net, struct conn_direction *direction)
{
    assert(direction->kernel.read != -1);
    if (direction->buffered == 0 && net->spare_pipe_n < NET_SPARE_PIPES) {
        net->spare_pipes[net->spare_pipe_n++] = direction->kernel;
    } else {
        close(direction->kernel.read);
        close(direction->kernel.write);
    }
    direction->buffered = 0;
    direction->kernel = (struct pipe_ends) { -1, -1 };
}

/* Goes back to copying the connection's input. */
static void copy_again(struct fb_conn *conn)
{
    struct conn_direction *direction = &conn->pipe->from;

    conn_pipe_set_splices(conn, false);
    direction->look_at = conn->received + CONN_PIPE_COPIED_MOST;
    direction->little = 0;
}

/* Sends the content of the kernel's pipe to the connection. */
static void push_held(struct fb_conn *to)
{
    struct conn_direction *direction = conn_direction_to(to);
    struct event *writing = &to->source.events[EVENT_WRITE];

    while (direction->buffered > 0 && writing->ready && !conn_has_failed(to)) {
        struct io_result result =
            to->source.io->splice_out(&to->source, direction->kernel.read, direction->buffered);

        switch (result.status) {
        case IO_DONE:
            conn_trace(
                to, "sent %zu of %" PRIu32 " bytes of a pipe", result.n, direction->buffered);
            assert(result.n <= direction->buffered);
            direction->buffered -= (uint32_t)result.n;
            conn_count_sent(to, result.n);
            conn_note_moved(to);
            break;
        case IO_AGAIN_READ:
        case IO_AGAIN_WRITE:
            conn_trace(to, "no room to send");
            writing->ready = false;
            break;
        default:
            conn_log_failed(to, LOG_SENDING, result.error, "splice()");
            if (!conn_send_failed(to, result.error))
                conn_direction_give_back(to->net, direction);
        }
    }
    if (direction->buffered == 0)
        conn_direction_release(to->net, direction);
}

static void take_spliced(struct fb_conn *conn, struct fb_conn *to, size_t n)
{
    struct conn_direction *direction = &conn->pipe->from;

    conn_trace(conn, "received %zu bytes into a pipe", n);
    conn_count_received(conn, n);
    direction->buffered += (uint32_t)n;
    direction->little = n < LITTLE ? (uint8_t)(direction->little + 1) : 0;
    if (direction->little == LITTLE_TIMES)
        copy_again(conn);
    conn_note_moved(conn);
    push_held(to);
    if (direction->buffered > 0) {
        conn_stop(conn);
        conn_mark_dirty(to);
    }
    conn_direction_note(conn, n);
}

bool conn_direction_splice(struct fb_conn *conn)
{
    struct conn_direction *direction = &conn->pipe->from;
    struct fb_conn *to = conn_pipe_other(conn);
    struct io_result result;

    if (!direction->splices || to == NULL || !conn_may_write(to) || to->out != NULL)
        return false;
    if (!acquire_kernel_pipe(conn->net, direction)) {
        copy_again(conn);
        return false;
    }
    result = conn->source.io->splice_in(
        &conn->source, direction->kernel.write, conn_direction_room(conn, SPLICE_MOST));
    switch (result.status) {
    case IO_DONE:
        take_spliced(conn, to, result.n);
        return true;
    case IO_AGAIN_READ:
    case IO_AGAIN_WRITE:
        conn_trace(conn, "nothing to receive");
        conn->source.events[EVENT_READ].ready = false;
        break;
    case IO_EOF:
        if (conn_direction_fail_broken(conn))
            break;
        conn_trace(conn, "received the end of the peer's half");
        conn_set_read(conn, CONN_READ_ENDED);
        conn_update_reading(conn);
        conn_mark_dirty(to);
        break;
    case IO_FAILED:
        if (conn_direction_fail_broken(conn))
            break;
        conn_log_failed(conn, LOG_RECEIVING, result.error, "splice()");
        conn_fail_by(conn, result.error);
        break;
    }
    conn_direction_release(conn->net, direction);
    return true;
}

void conn_direction_progress(struct fb_conn *to)
{
    struct fb_conn *from = conn_pipe_other(to);

    if (conn_direction_to(to)->buffered > 0 && to->out == NULL)
        push_held(to);
    if (from == NULL)
        return;
    if (to->out != NULL || conn_direction_to(to)->buffered > 0)
        conn_stop(from);
    else if (from->read == CONN_READ_ENDED && conn_pipe_of(to)->ends_together)
        conn_close(to);
    else if (from->read == CONN_READ_ENDED && conn_may_write(to))
        conn_set_write(to, CONN_WRITE_ENDING);
    else if (from->read == CONN_READ_STOPPED && !conn_throttle_waits(from))
        conn_resume(from);
}
