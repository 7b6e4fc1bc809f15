/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connections piped together: what one receives is sent to the other, until both have ended.
 *
 * Bytes go through the worker's scratch buffer at first. A direction that has moved much is spliced
 * within the kernel, through a pipe that is only held while there are bytes in it; and goes back to
 * copying when it moves little at a time, because that takes fewer system calls. */
#include "net/conn_private.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Bytes after which a direction is spliced; bytes at a time that are few, and how often in a row. */
#define MUCH ((size_t)256 * 1024)
#define LITTLE 4096
#define LITTLE_TIMES 8
#define KERNEL_PIPE_SIZE (256 * 1024)
#define SPLICE_MOST ((size_t)1024 * 1024)

/* One direction, named by the end that it comes from. */
struct way {
    struct fb_pipe_ends kernel; /* -1 without bytes in it */
    size_t held;                /* bytes in it */
    size_t moved;               /* copied since it last began to copy; not beyond MUCH */
    unsigned little;            /* times in a row that little was spliced */
    bool splices;
};

struct fb_pipe {
    struct fb_net *net;
    struct fb_conn *ends[2]; /* NULL: it has ended */
    const struct fb_conn_ops *ops[2];
    struct way ways[2];
    uint64_t timeout;
    struct fb_timer timer;
};

static int index_of(const struct fb_conn *conn)
{
    return conn->pipe->ends[1] == conn;
}

static struct fb_conn *other_end(const struct fb_conn *conn)
{
    return conn->pipe->ends[!index_of(conn)];
}

/* What comes from it, and what goes to it. */
static struct way *way_from(const struct fb_conn *conn)
{
    return &conn->pipe->ways[index_of(conn)];
}

static struct way *way_to(const struct fb_conn *conn)
{
    return &conn->pipe->ways[!index_of(conn)];
}

static void restart_timeout(struct fb_pipe *pipe)
{
    if (pipe->timeout > 0)
        fb_net_restart(pipe->net, &pipe->timer, pipe->timeout);
}

static void pipe_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    struct fb_pipe *pipe = fb_container(timer, struct fb_pipe, timer);
    struct fb_net *net = pipe->net;

    (void)loop;
    for (int i = 0; i < 2; i++)
        if (pipe->ends[i] != NULL)
            fb_conn_fail(pipe->ends[i], FB_TIMED_OUT);
    fb_net_settle(net);
}

/* Kernel pipes */

static bool hold_kernel_pipe(struct fb_net *net, struct way *way)
{
    int ends[2];

    if (way->kernel.read != -1)
        return true;
    if (net->spare_pipe_n > 0) {
        way->kernel = net->spare_pipes[--net->spare_pipe_n];
        return true;
    }
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) == -1)
        return false;
    fcntl(ends[0], F_SETPIPE_SZ, KERNEL_PIPE_SIZE); /* else it stays at its usual size */
    way->kernel = (struct fb_pipe_ends) { .read = ends[0], .write = ends[1] };
    return true;
}

static void drop_kernel_pipe(struct fb_net *net, struct way *way)
{
    if (way->kernel.read == -1)
        return;
    if (way->held == 0 && net->spare_pipe_n < FB_SPARE_PIPES) {
        net->spare_pipes[net->spare_pipe_n++] = way->kernel;
    } else {
        close(way->kernel.read);
        close(way->kernel.write);
    }
    way->held = 0;
    way->kernel = (struct fb_pipe_ends) { -1, -1 };
}

void fb_pipes_trim(struct fb_net *net)
{
    while (net->spare_pipe_n > 0) {
        struct fb_pipe_ends *ends = &net->spare_pipes[--net->spare_pipe_n];

        close(ends->read);
        close(ends->write);
    }
}

/* Splicing */

static void copy_again(struct way *way)
{
    way->splices = false;
    way->moved = 0;
    way->little = 0;
}

/* Sends what the kernel holds for it. */
static void push(struct fb_conn *to)
{
    struct way *way = way_to(to);
    struct fb_event *writing = &to->source.events[FB_WRITE];

    while (way->held > 0 && writing->ready && to->failed == 0) {
        struct fb_io_result result =
            to->source.io->splice_out(&to->source, way->kernel.read, way->held);

        switch (result.status) {
        case FB_IO_DONE:
            way->held -= result.n;
            to->sent += result.n;
            restart_timeout(to->pipe);
            break;
        case FB_IO_AGAIN_READ:
        case FB_IO_AGAIN_WRITE:
            writing->ready = false;
            break;
        default:
            fb_conn_log(to, FB_INFO, result.error, "splice() failed");
            fb_conn_fail(to, fb_conn_reason(result.error));
        }
    }
    if (way->held == 0)
        drop_kernel_pipe(to->net, way);
}

static void spliced(struct fb_conn *conn, struct fb_conn *to, size_t n)
{
    struct way *way = way_from(conn);

    conn->received += n;
    way->held += n;
    way->little = n < LITTLE ? way->little + 1 : 0;
    if (way->little == LITTLE_TIMES)
        copy_again(way);
    restart_timeout(conn->pipe);
    push(to);
    if (way->held > 0) {
        fb_conn_stop(conn);
        fb_conn_touch(to);
    }
}

bool fb_pipe_readable(struct fb_conn *conn)
{
    struct way *way = way_from(conn);
    struct fb_conn *to = other_end(conn);
    struct fb_io_result result;

    if (!way->splices || to == NULL || !fb_conn_may_write(to) || to->out != NULL)
        return false;
    if (!hold_kernel_pipe(conn->net, way)) {
        copy_again(way);
        return false;
    }
    result = conn->source.io->splice_in(&conn->source, way->kernel.write, SPLICE_MOST);
    switch (result.status) {
    case FB_IO_DONE:
        spliced(conn, to, result.n);
        return true;
    case FB_IO_AGAIN_READ:
    case FB_IO_AGAIN_WRITE:
        conn->source.events[FB_READ].ready = false;
        break;
    case FB_IO_EOF:
        conn->eof = 1;
        fb_conn_update_reading(conn);
        fb_conn_touch(to);
        break;
    case FB_IO_FAILED:
        fb_conn_log(conn, FB_INFO, result.error, "splice() failed");
        fb_conn_fail(conn, fb_conn_reason(result.error));
        break;
    }
    drop_kernel_pipe(conn->net, way);
    return true;
}

bool fb_pipe_is_empty(const struct fb_conn *conn)
{
    return conn->pipe == NULL || way_to(conn)->held == 0;
}

static bool has_ended(const struct fb_conn *conn)
{
    return conn == NULL || (conn->shut && conn->eof);
}

bool fb_pipe_is_done(const struct fb_conn *conn)
{
    return conn->pipe == NULL || (has_ended(conn) && has_ended(other_end(conn)));
}

void fb_pipe_progress(struct fb_conn *to)
{
    struct fb_conn *from = other_end(to);

    if (to->out == NULL)
        push(to);
    if (from == NULL)
        return;
    if (to->out != NULL || way_to(to)->held > 0)
        fb_conn_stop(from);
    else if (from->eof)
        fb_conn_shutdown(to);
    else if (from->stopped)
        fb_conn_resume(from);
}

/* What connections do while they are piped */

static void pipe_opened(struct fb_conn *conn)
{
    fb_timer_del(&conn->net->loop, &conn->timer); /* of the connect */
}

static size_t pipe_data(struct fb_conn *conn, fb_bytes in)
{
    struct way *way = way_from(conn);
    struct fb_conn *to = other_end(conn);

    restart_timeout(conn->pipe);
    if (to == NULL)
        return in.n; /* nobody is there to have it */
    fb_conn_write(to, in.p, in.n);
    if (to->connecting)
        fb_conn_stop(conn);
    way->moved += in.n;
    if (way->moved >= MUCH && conn->source.io->splice_in != NULL &&
        to->source.io->splice_out != NULL)
        way->splices = true;
    return in.n;
}

static void pipe_eof(struct fb_conn *conn, fb_bytes rest)
{
    struct fb_conn *to = other_end(conn);

    if (to == NULL)
        return;
    fb_conn_write(to, rest.p, rest.n);
    fb_conn_touch(to);
}

static void pipe_moved(struct fb_conn *conn)
{
    restart_timeout(conn->pipe);
}

static void pipe_writable(struct fb_conn *conn)
{
    (void)conn;
}

/* What the end of one is for the other. */
static void follow(struct fb_conn *conn, fb_reason reason)
{
    switch (reason) {
    case FB_FINISHED:
    case FB_PEER_GONE:
        if (conn->shut && conn->eof)
            fb_conn_touch(conn);
        else
            fb_conn_close(conn);
        break;
    case FB_TIMED_OUT:
    case FB_DRAINED:
        fb_conn_fail(conn, reason);
        break;
    default: /* its peer is not to take what it has had for the whole */
        fb_conn_fail(conn, FB_ABORTED);
    }
}

static void pipe_closed(struct fb_conn *conn, fb_reason reason)
{
    struct fb_pipe *pipe = conn->pipe;
    struct fb_conn *other = other_end(conn);
    int i = index_of(conn);

    drop_kernel_pipe(pipe->net, way_to(conn));
    if (other == NULL) {
        drop_kernel_pipe(pipe->net, way_from(conn));
        fb_timer_del(&pipe->net->loop, &pipe->timer);
    }
    conn->ops = pipe->ops[i];
    conn->pipe = NULL;
    pipe->ends[i] = NULL;
    if (other != NULL)
        follow(other, reason);
    else
        fb_memory_release(pipe->net->memory, pipe);
    conn->ops->closed(conn, reason);
}

/* The time that its owner has given the connect. */
static void pipe_not_opened(struct fb_conn *conn)
{
    fb_conn_refused(conn, ETIMEDOUT);
}

static void pipe_describe(
    const struct fb_conn *conn, struct fb_log_line *line, char client[FB_ADDRESS_TEXT])
{
    conn->pipe->ops[index_of(conn)]->describe(conn, line, client);
}

static const struct fb_conn_ops pipe_ops = {
    .opened = pipe_opened,
    .data = pipe_data,
    .eof = pipe_eof,
    .writable = pipe_writable,
    .moved = pipe_moved,
    .expired = pipe_not_opened,
    .closed = pipe_closed,
    .describe = pipe_describe,
};

static void join(struct fb_pipe *pipe, int i, struct fb_conn *conn)
{
    pipe->ends[i] = conn;
    pipe->ops[i] = conn->ops;
    pipe->ways[i].kernel = (struct fb_pipe_ends) { -1, -1 };
    conn->pipe = pipe;
    conn->ops = &pipe_ops;
    conn->held = 0;
    if (!conn->opening)
        fb_timer_del(&pipe->net->loop, &conn->timer);
}

int fb_conn_pipe(struct fb_conn *a, struct fb_conn *b, uint64_t timeout_ms)
{
    struct fb_net *net = a->net;
    struct fb_pipe *pipe = fb_memory_alloc(net->memory, sizeof(*pipe));

    if (pipe == NULL)
        return -1;
    *pipe = (struct fb_pipe) { .net = net, .timeout = timeout_ms };
    pipe->timer.expired = pipe_expired;
    join(pipe, 0, a);
    join(pipe, 1, b);
    restart_timeout(pipe);
    for (int i = 0; i < 2; i++) {
        struct fb_conn *conn = pipe->ends[i];

        conn->stopped = 1; /* whatever it was, what was left is offered again */
        fb_conn_resume(conn);
        fb_conn_touch(conn);
    }
    return 0;
}
