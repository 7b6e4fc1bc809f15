/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of sockets where the system has no more than POSIX: the bytes of a file are
 * copied through this process, and those of piped connections too, so that there is no splice. */
#include "event/io_socket.h"
#include "event/source.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define COPIED_MOST 32768

void io_socket_spare_port(int fd)
{
    (void)fd;
}

int io_socket_set_transparent(int fd, sa_family_t family)
{
    (void)fd;
    (void)family;
    return ENOPROTOOPT;
}

size_t io_socket_queued(const struct source *source)
{
    (void)source;
    return 0; /* POSIX has no call for the length of a send queue */
}

void io_socket_reset(int fd)
{
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* Bytes that the socket does not take are read again the next time. */
struct io_result io_socket_sendfile(struct source *source, int fd, off_t *offset, size_t n)
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

const struct io_ops io_socket = { IO_SOCKET_COMMON, IO_SOCKET_ASKING, IO_SOCKET_SYSTEM };
