/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of Linux's sockets: the bytes of files and pipes do not come through this
 * process. */
#include "event/io_socket.h"
#include "event/source.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

void io_socket_spare_port(int fd)
{
    static const int on = 1;

    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)); /* IPv6 sockets too */
}

int io_socket_set_transparent(int fd, sa_family_t family)
{
    static const int on = 1;
    int result;

    if (family == AF_INET6)
        result = setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &on, sizeof(on));
    else
        result = setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on));
    return result == 0 ? 0 : errno;
}

size_t io_socket_queued(const struct source *source)
{
    int n;

    if (ioctl(source->fd, SIOCOUTQ, &n) == -1 || n < 0)
        return 0;
    return (size_t)n;
}

/* A disconnect is a reset, for which workers need no SO_LINGER: by that another process could have
 * them wait. The family is the whole address, but older Landlock wants more. */
void io_socket_reset(int fd)
{
    static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

    if (connect(fd, &nowhere, sizeof(nowhere.sa_family)) == -1 && errno == EINVAL)
        connect(fd, &nowhere, sizeof(nowhere));
}

static struct io_result moved(ssize_t n, enum io_status again)
{
    if (n == -1)
        return io_socket_failed(again);
    if (n == 0)
        return (struct io_result) { .status = IO_EOF };
    return (struct io_result) { .status = IO_DONE, .n = (size_t)n };
}

struct io_result io_socket_sendfile(struct source *source, int fd, off_t *offset, size_t n)
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

struct io_result io_socket_splice_in(struct source *source, int pipe, size_t n)
{
    return moved(splice_once(source->fd, pipe, n), IO_AGAIN_READ);
}

struct io_result io_socket_splice_out(struct source *source, int pipe, size_t n)
{
    return moved(splice_once(pipe, source->fd, n), IO_AGAIN_WRITE);
}

const struct io_ops io_socket = { IO_SOCKET_COMMON, IO_SOCKET_ASKING, IO_SOCKET_SYSTEM };
