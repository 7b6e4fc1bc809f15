/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of the kernel's sockets. Each is one system call, tried again after EINTR;
 * "would block" becomes "again" with the direction to wait for, and any other error the result's
 * errno. */
#include "base/compiler.h"
#include "event/io.h"
#include "event/source.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <unistd.h>

static struct io_result failed(enum io_status again)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return (struct io_result) { .status = again };
    return (struct io_result) { .status = IO_FAILED, .error = errno };
}

static struct io_result socket_recv(struct source *source, struct io_span *span);
static struct io_result socket_send(struct source *source, const struct iovec *pieces, int count);

static COLD struct io_result not_received(struct source *source, struct io_span *span, ssize_t n)
{
    if (n == 0)
        return (struct io_result) { .status = IO_EOF };
    return errno == EINTR ? socket_recv(source, span) : failed(IO_AGAIN_READ);
}

static struct io_result socket_recv(struct source *source, struct io_span *span)
{
    ssize_t n = recv(source->fd, span->p, span->n, 0);

    if (unlikely(n <= 0))
        return not_received(source, span, n);
    span->n = (size_t)n;
    return (struct io_result) { .status = IO_DONE, .n = (size_t)n };
}

/* A function of its own, so that one piece, the usual case, does without the message. */
static NOINLINE struct io_result send_several(
    struct source *source, const struct iovec *pieces, int count)
{
    struct msghdr message = { .msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count };
    ssize_t n;

    do
        n = sendmsg(source->fd, &message, MSG_NOSIGNAL);
    while (n == -1 && errno == EINTR);
    if (n == -1)
        return failed(IO_AGAIN_WRITE);
    return (struct io_result) { .status = IO_DONE, .n = (size_t)n };
}

static COLD struct io_result not_sent(struct source *source, const struct iovec *pieces)
{
    return errno == EINTR ? socket_send(source, pieces, 1) : failed(IO_AGAIN_WRITE);
}

static struct io_result socket_send(struct source *source, const struct iovec *pieces, int count)
{
    ssize_t n;

    if (count != 1)
        return send_several(source, pieces, count);
    n = send(source->fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL);
    if (unlikely(n == -1))
        return not_sent(source, pieces);
    return (struct io_result) { .status = IO_DONE, .n = (size_t)n };
}

static struct io_result socket_accept(
    struct source *listener, int *fd, struct sockaddr *address, socklen_t *length)
{
    *fd = accept4(listener->fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (*fd == -1)
        return failed(IO_AGAIN_READ);
    return (struct io_result) { .status = IO_DONE };
}

static bool socket_waits(const struct source *listener)
{
    struct pollfd one = { .fd = listener->fd, .events = POLLIN };

    return poll(&one, 1, 0) != 0;
}

static struct io_result socket_connect(
    struct source *source, const struct sockaddr *address, socklen_t length)
{
    static const int on = 1;
    int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

    source->fd = socket(address->sa_family, type, 0);
    if (source->fd == -1)
        return (struct io_result) { .status = IO_FAILED, .error = errno };
    /* output is gathered before it is sent: to wait for more of it would only cost time */
    if (address->sa_family != AF_UNIX)
        setsockopt(source->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(source->fd, address, length) == 0)
        return (struct io_result) { .status = IO_DONE };
    if (errno == EINPROGRESS || errno == EINTR)
        return (struct io_result) { .status = IO_AGAIN_WRITE };
    /* EAGAIN too: of a unix socket whose backlog is full, which nothing announces the end of */
    return (struct io_result) { .status = IO_FAILED, .error = errno };
}

static struct io_result socket_connected(struct source *source)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &error, &length) == -1)
        error = errno;
    if (error != 0)
        return (struct io_result) { .status = IO_FAILED, .error = error };
    return (struct io_result) { .status = IO_DONE };
}

static int socket_name(const struct source *source, struct sockaddr *address, socklen_t *length)
{
    return getsockname(source->fd, address, length);
}

static struct io_result moved(ssize_t n, enum io_status again)
{
    if (n == -1)
        return failed(again);
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

static struct io_result socket_shutdown(struct source *source)
{
    if (shutdown(source->fd, SHUT_WR) == -1)
        return failed(IO_AGAIN_WRITE);
    return (struct io_result) { .status = IO_DONE };
}

static void socket_close(struct source *source, bool reset)
{
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    if (reset)
        setsockopt(source->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(source->fd);
    source->fd = -1;
}

const struct io_ops io_socket = {
    .recv = socket_recv,
    .send = socket_send,
    .accept = socket_accept,
    .waits = socket_waits,
    .connect = socket_connect,
    .connected = socket_connected,
    .name = socket_name,
    .sendfile = socket_sendfile,
    .splice_in = socket_splice_in,
    .splice_out = socket_splice_out,
    .shutdown = socket_shutdown,
    .close = socket_close,
};
