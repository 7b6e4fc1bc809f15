/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of sources on a ring: input has been received, and is lent where it lies;
 * output is taken, and sent with the turn's one system call. Keeps the order of bytes of the ring
 * and of system calls. Never submits. Invariant: a socket is closed, and its half ended, behind its
 * output, unless given up. */
#include "event/mechanisms/ring_ops.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct io_result done_with(size_t n)
{
    return (struct io_result) { .status = IO_DONE, .n = n };
}

static struct io_result failed_with(int error)
{
    return (struct io_result) { .status = IO_FAILED, .error = error };
}

static struct io_result again(enum io_status direction)
{
    return (struct io_result) { .status = direction };
}

/* Looks at a watch without input for an end; true: *result is an error or the end. */
static bool end_of_input(const struct ring_watch *watch, struct io_result *result)
{
    if (watch->in.error != 0)
        *result = failed_with(watch->in.error);
    else if (watch->in.eof)
        *result = again(IO_EOF);
    else
        return false;
    return true;
}

static void note_taken(struct ring *ring, struct ring_watch *watch)
{
    ring_update_unread(ring, watch);
    ring_note_change(ring, watch);
}

static struct io_result recv_taken(struct source *source, struct io_span *span)
{
    struct ring *ring = ring_of(source);
    struct ring_watch *watch = ring_watch_of(ring, source);
    struct io_result result;

    if (unlikely(watch == NULL))
        return io_socket.recv(source, span);
    if (likely(watch->in.p != NULL)) {
        result = done_with(ring_input_take(ring, watch, span));
        if (watch->in.p == NULL)
            note_taken(ring, watch);
        return result;
    }
    if (end_of_input(watch, &result))
        return result;
    if (watch->splices) {
        watch->splices = false;
        ring_note_change(ring, watch);
    }
    /* the ring receives within the wait alone, and its input was looked at: no byte is overtaken */
    return watch->wanted[EVENT_READ] ? again(IO_AGAIN_READ) : io_socket.recv(source, span);
}

static size_t pending_input(const struct source *source)
{
    const struct ring_watch *watch = ring_watch_of(ring_of(source), source);

    return watch == NULL || watch->in.p == NULL ? 0 : watch->in.end - watch->in.at;
}

static struct io_result send_later(struct source *source, const struct iovec *pieces, int n)
{
    struct ring *ring = ring_of(source);
    struct ring_watch *watch = ring_watch_get(ring, source);
    size_t taken;

    if (unlikely(watch == NULL))
        return failed_with(errno);
    if (unlikely(watch->out.error != 0))
        return failed_with(watch->out.error);
    if (watch->busy[RING_SEND] || watch->out.at > 0)
        return again(IO_AGAIN_WRITE);
    taken = ring_output_add(ring, watch, pieces, n);
    if (unlikely(taken == 0))
        return errno == 0 ? again(IO_AGAIN_WRITE) : failed_with(errno);
    ring_note_change(ring, watch);
    return done_with(taken);
}

/* Sends output not begun by the kernel at once: what follows must not wait. */
static struct io_result flush_output(struct source *source, bool ends)
{
    struct ring *ring = ring_of(source);
    struct ring_watch *watch = ring_watch_of(ring, source);

    (void)ends;
    if (watch == NULL || (watch->out.p == NULL && watch->out.error == 0))
        return done_with(0);
    while (watch->out.p != NULL && !watch->busy[RING_SEND] && watch->out.error == 0) {
        struct ring_output *out = &watch->out;
        const struct iovec piece = { out->p + out->at, out->end - out->at };
        struct io_result result = io_socket.send(source, &piece, 1);

        if (result.status == IO_FAILED)
            out->error = result.error;
        if (result.status != IO_DONE)
            break;
        out->at += (uint32_t)result.n;
        if (out->at == out->end)
            ring_output_drop(ring, watch);
    }
    if (watch->out.error != 0)
        return failed_with(watch->out.error);
    return watch->out.p != NULL ? again(IO_AGAIN_WRITE) : done_with(0);
}

static struct io_result ring_connect(struct source *source, const struct sockaddr *address,
    socklen_t length, struct io_connect *options)
{
    struct io_result result = io_socket.connect(source, address, length, options);
    struct ring_watch *watch;

    if (result.status != IO_AGAIN_WRITE)
        return result;
    watch = ring_watch_get(ring_of(source), source);
    if (watch == NULL)
        return failed_with(errno);
    watch->connecting = true;
    return result;
}

static struct io_result end_connect(struct source *source)
{
    struct ring *ring = ring_of(source);
    struct ring_watch *watch = ring_watch_of(ring, source);
    struct io_result result;

    if (watch != NULL &&
        watch->in.error != 0) /* the descriptor was received with the bytes from the socket */
        return failed_with(watch->in.error);
    result = io_socket.connected(source);
    if (result.status == IO_DONE && watch != NULL) {
        watch->connecting = false;
        ring_note_change(ring, watch);
    }
    return result;
}

/* Whether earlier output is still to be sent, or has failed, as *result says. */
static bool sends_before(const struct source *source, struct io_result *result)
{
    const struct ring_watch *watch = ring_watch_of(ring_of(source), source);

    if (watch == NULL || (watch->out.p == NULL && watch->out.error == 0))
        return false;
    *result = watch->out.error != 0 ? failed_with(watch->out.error) : again(IO_AGAIN_WRITE);
    return true;
}

/* Returns the bytes not acknowledged yet; bytes moved by a send under way count twice. */
static size_t queued_output(const struct source *source)
{
    const struct ring_watch *watch = ring_watch_of(ring_of(source), source);
    size_t held = watch != NULL && watch->out.p != NULL ? watch->out.end - watch->out.at : 0;

    return held + io_socket_queued(source);
}

static struct io_result ring_sendfile(struct source *source, int fd, off_t *offset, size_t n)
{
    struct io_result result;

    return sends_before(source, &result) ? result : io_socket.sendfile(source, fd, offset, n);
}

/* Moves input to a pipe, received by the ring before the pipe was known. */
static struct io_result write_to_pipe(
    struct ring *ring, struct ring_watch *watch, int pipe, size_t most)
{
    const struct ring_input *in = &watch->in;
    size_t held = in->end - in->at;
    ssize_t n = write(pipe, in->p + in->at, held < most ? held : most);
    uint8_t taken[RING_BUFFER_SIZE];
    struct io_span span = { taken, (size_t)n };

    if (n == -1)
        return errno == EAGAIN || errno == EINTR ? again(IO_AGAIN_READ) : failed_with(errno);
    ring_input_take(ring, watch, &span);
    if (in->p == NULL)
        note_taken(ring, watch);
    return done_with((size_t)n);
}

static struct io_result splice_from(struct source *source, int pipe, size_t n)
{
    struct ring *ring = ring_of(source);
    struct ring_watch *watch = ring_watch_get(ring, source);
    struct io_result result;

    if (watch == NULL)
        return failed_with(errno);
    if (watch->in.p != NULL)
        return write_to_pipe(ring, watch, pipe, n);
    if (end_of_input(watch, &result))
        return result;
    if (!watch->splices) {
        watch->splices = true;
        ring_note_change(ring, watch);
    }
    return io_socket.splice_in(source, pipe, n);
}

static struct io_result splice_to(struct source *source, int pipe, size_t n)
{
    struct io_result result;

    return sends_before(source, &result) ? result : io_socket.splice_out(source, pipe, n);
}

static struct io_result end_sending(struct source *source)
{
    flush_output(source, true);
    return io_socket.shutdown(source);
}

static void close_source(struct source *source, bool reset)
{
    if (!reset)
        flush_output(source, true);
    ring_forget(ring_of(source), source);
    io_socket.close(source, reset);
}

const struct io_ops ring_io = {
    .recv = recv_taken,
    .send = send_later,
    .flush = flush_output,
    .accept = io_socket_accept,
    .waits = io_socket_waits,
    .connect = ring_connect,
    .connected = end_connect,
    .ended = io_socket_ended,
    .name = io_socket_name,
    .queued = queued_output,
    .sendfile = ring_sendfile,
    .splice_in = splice_from,
    .splice_out = splice_to,
    .shutdown = end_sending,
    .pending = pending_input,
    .close = close_source,
};
