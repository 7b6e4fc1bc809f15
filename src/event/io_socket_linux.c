/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of Linux's sockets: a client is accepted with its flags, and the bytes of
 * files and pipes do not come through this process. */
#include "event/io_socket.h"
#include "event/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>

static struct io_result socket_accept(
    struct source *listener, int *fd, struct sockaddr *address, socklen_t *length)
{
    *fd = accept4(listener->fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (*fd == -1)
        return io_socket_failed(IO_AGAIN_READ);
    return (struct io_result) { .status = IO_DONE };
}

static struct io_result moved(ssize_t n, enum io_status again)
{
    if (n == -1)
        return io_socket_failed(again);
    if (n == 0)
        return (struct io_result) { .status = IO_EOF };
    return (struct io_result) { .status = IO_DONE, .n = (size_t)n };
}

static struct io_result socket_sendfile(struct source *source, int fd, off_t *offset, size_t n)
{
    ssize_t sent;

    do
        sent = sendfile(source->fd, fd, offset, n);
    while (sent == -1 && errno == EINTR);
    return moved(sent, IO_AGAIN_WRITE);
}

static ssize_t splice_once(int from, int to, size_t n)
{
    ssize_t moved_n;

    do
        moved_n = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (moved_n == -1 && errno == EINTR);
    return moved_n;
}

static struct io_result socket_splice_in(struct source *source, int pipe, size_t n)
{
    return moved(splice_once(source->fd, pipe, n), IO_AGAIN_READ);
}

static struct io_result socket_splice_out(struct source *source, int pipe, size_t n)
{
    return moved(splice_once(pipe, source->fd, n), IO_AGAIN_WRITE);
}

const struct io_ops io_socket = {
    .recv = io_socket_recv,
    .send = io_socket_send,
    .accept = socket_accept,
    .waits = io_socket_waits,
    .connect = io_socket_connect,
    .connected = io_socket_connected,
    .name = io_socket_name,
    .sendfile = socket_sendfile,
    .splice_in = socket_splice_in,
    .splice_out = socket_splice_out,
    .shutdown = io_socket_shutdown,
    .close = io_socket_close,
};
