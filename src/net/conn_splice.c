/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of piped connections that move within the kernel.
 *
 * Responsible for the kernel's pipes: a direction has one only while there are bytes in it, and an
 * empty one is spared for the next. Never calls an owner. Invariant: a direction without a kernel's
 * pipe holds no bytes, and a direction goes back to copying when it moves little at a time, because
 * that takes fewer system calls. */
#include "net/conn_pipe.h"
#include "os/descriptor.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

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

void conn_splice_give_back(struct net *net, struct conn_direction *direction)
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

/* Goes back to copying what the connection receives. */
static void copy_again(struct fb_conn *conn)
{
    struct conn_direction *direction = conn_direction_from(conn);

    conn_pipe_set_splices(conn, false);
    direction->look_at = conn->received + CONN_PIPE_COPIED_MOST;
    direction->little = 0;
}

/* Sends what the kernel's pipe holds for the connection. */
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
            to->sent += result.n;
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
                conn_splice_give_back(to->net, direction);
        }
    }
    if (direction->buffered == 0)
        conn_splice_release(to->net, direction);
}

static void take_spliced(struct fb_conn *conn, struct fb_conn *to, size_t n)
{
    struct conn_direction *direction = conn_direction_from(conn);

    conn_trace(conn, "received %zu bytes into a pipe", n);
    conn->received += n;
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
    conn_throttle_note(conn, n);
}

bool conn_splice_input(struct fb_conn *conn)
{
    struct conn_direction *direction = conn_direction_from(conn);
    struct fb_conn *to = conn_pipe_other(conn);
    struct io_result result;

    if (!direction->splices || to == NULL || !conn_may_write(to) || to->out != NULL)
        return false;
    if (!acquire_kernel_pipe(conn->net, direction)) {
        copy_again(conn);
        return false;
    }
    result = conn->source.io->splice_in(
        &conn->source, direction->kernel.write, conn_throttle_room(conn, SPLICE_MOST));
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
        if (conn_reset_found(conn))
            break;
        conn_trace(conn, "received the end of the peer's half");
        conn_set_read(conn, CONN_READ_ENDED);
        conn_update_reading(conn);
        conn_mark_dirty(to);
        break;
    case IO_FAILED:
        if (conn_reset_found(conn))
            break;
        conn_log_failed(conn, LOG_RECEIVING, result.error, "splice()");
        conn_fail_by(conn, result.error);
        break;
    }
    conn_splice_release(conn->net, direction);
    return true;
}

size_t conn_splice_buffered(const struct fb_conn *conn)
{
    return conn_direction_to(conn)->buffered;
}

static bool has_ended(const struct fb_conn *conn)
{
    return conn == NULL || (conn->write == CONN_WRITE_ENDED && conn->read == CONN_READ_ENDED);
}

bool conn_splice_is_done(const struct fb_conn *conn)
{
    return conn->pipe == NULL || (has_ended(conn) && has_ended(conn_pipe_other(conn)));
}

/* The other peer has ended its half, and has got through all that it had to say. */
static void pass_end_on(struct fb_conn *to)
{
    if (conn_pipe_of(to)->ends_together)
        conn_close(to);
    else if (conn_may_write(to))
        conn_set_write(to, CONN_WRITE_ENDING);
}

void conn_splice_progress(struct fb_conn *to)
{
    struct fb_conn *from = conn_pipe_other(to);

    if (conn_direction_to(to)->buffered > 0 && to->out == NULL)
        push_held(to);
    if (from == NULL)
        return;
    if (to->out != NULL || conn_direction_to(to)->buffered > 0)
        conn_stop(from);
    else if (from->read == CONN_READ_ENDED)
        pass_end_on(to);
    else if (from->read == CONN_READ_STOPPED && !conn_throttle_waits(from))
        conn_resume(from);
}
