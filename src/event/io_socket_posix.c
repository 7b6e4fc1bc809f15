/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of sockets where the system has no more than POSIX: the bytes of a file are
 * copied through this process, and those of piped connections too, so that there is no splice. */
#include "base/descriptor.h"
#include "event/io_socket.h"
#include "event/source.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define COPIED_MOST 32768

static struct io_result socket_accept(
    struct source *listener, int *fd, struct sockaddr *address, socklen_t *length)
{
    *fd = descriptor_accept(listener->fd, address, length, O_NONBLOCK);
    if (*fd == -1)
        return io_socket_failed(IO_AGAIN_READ);
    return (struct io_result) { .status = IO_DONE };
}

/* Bytes that the socket does not take are read again the next time. */
static struct io_result socket_sendfile(struct source *source, int fd, off_t *offset, size_t n)
{
    char bytes[COPIED_MOST];
    struct iovec piece = { .iov_base = bytes };
    struct io_result result;
    ssize_t part;

    do
        part = pread(fd, bytes, n < sizeof(bytes) ? n : sizeof(bytes), *offset);
    while (part == -1 && errno == EINTR);
    if (part == -1)
        return (struct io_result) { .status = IO_FAILED, .error = errno };
    if (part == 0)
        return (struct io_result) { .status = IO_EOF };
    piece.iov_len = (size_t)part;
    result = io_socket_send(source, &piece, 1);
    if (result.status == IO_DONE)
        *offset += (off_t)result.n;
    return result;
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
    .shutdown = io_socket_shutdown,
    .close = io_socket_close,
};
