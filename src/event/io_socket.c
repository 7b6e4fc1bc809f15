/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of the kernel's sockets: a system call each (os/sockets.h has the system's
 * own), again after EINTR; "would block" becomes "again" with a direction. */
#include "event/source.h"
#include "os/descriptor.h"
#include "os/kernel_tls.h"
#include "os/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

/* Makes a result of errno, where "would block" means to try `again`. */
static struct io_result io_socket_failed(enum io_status again)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return (struct io_result) { .status = again };
    return (struct io_result) { .status = IO_FAILED, .error = errno };
}

static COLD struct io_result not_received(struct source *source, struct io_span *span, ssize_t n)
{
    if (n == 0)
        return (struct io_result) { .status = IO_EOF };
    return errno == EINTR ? io_socket_recv(source, span) : io_socket_failed(IO_AGAIN_READ);
}

struct io_result io_socket_recv(struct source *source, struct io_span *span)
{
    ssize_t n = recv(source->fd, span->p, span->n, 0);

    if (unlikely(n <= 0))
        return not_received(source, span, n);
    span->n = (size_t)n;
    return (struct io_result) { .status = IO_DONE, .n = (size_t)n };
}

/* A separate function: a single piece, the usual case, does without the message. */
static NOINLINE struct io_result send_several(
    struct source *source, const struct iovec *pieces, int count, int flags)
{
    struct msghdr message = { .msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count };
    ssize_t n;

    do
        n = sendmsg(source->fd, &message, flags);
    while (n == -1 && errno == EINTR);
    if (n == -1)
        return io_socket_failed(IO_AGAIN_WRITE);
    return (struct io_result) { .status = IO_DONE, .n = (size_t)n };
}

static COLD struct io_result not_sent(struct source *source, const struct iovec *pieces)
{
    return errno == EINTR ? io_socket_send(source, pieces, 1) : io_socket_failed(IO_AGAIN_WRITE);
}

struct io_result io_socket_send(struct source *source, const struct iovec *pieces, int count)
{
    ssize_t n;

    if (count != 1)
        return send_several(source, pieces, count, MSG_NOSIGNAL);
    n = send(source->fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL);
    if (unlikely(n == -1))
        return not_sent(source, pieces);
    return (struct io_result) { .status = IO_DONE, .n = (size_t)n };
}

struct io_result io_socket_send_more(struct source *source, const struct iovec *pieces, int count)
{
    return send_several(source, pieces, count, MSG_NOSIGNAL | os_send_more);
}

struct io_result io_socket_accept(
    struct source *listener, int *fd, struct sockaddr *address, socklen_t *length)
{
    *fd = descriptor_accept(listener->fd, address, length, O_NONBLOCK);
    if (*fd == -1)
        return io_socket_failed(IO_AGAIN_READ);
    return (struct io_result) { .status = IO_DONE };
}

bool io_socket_waits(const struct source *listener)
{
    struct pollfd one = { .fd = listener->fd, .events = POLLIN };

    return poll(&one, 1, 0) != 0;
}

/* Returns 0, or an errno. */
static COLD int prepare_socket(int fd, const struct sockaddr *address, struct io_connect *options)
{
    int bytes = options->receive_buffer;
    static const int on = 1;

    if (bytes > 0) /* a system limit may reduce the value */
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    if (options->keepalive)
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    options->failed = IO_TRANSPARENT;
    if (options->transparent && options->local != NULL &&
        os_socket_set_transparent(fd, options->local->sa_family) == -1)
        return errno;
    options->failed = IO_BIND;
    if (options->local != NULL) {
        if (options->local->sa_family != address->sa_family || address->sa_family == AF_UNIX)
            return EAFNOSUPPORT;
        /* without a port, unless asked for, connect() takes any that is free for this peer */
        os_socket_spare_port(fd);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* for a port asked for */
        if (bind(fd, options->local, options->local_length) == -1)
            return errno;
    }
    options->failed = IO_CONNECT;
    return 0;
}

static COLD struct io_result connect_datagrams(
    struct source *source, const struct sockaddr *address, socklen_t length)
{
    source->fd = descriptor_socket(address->sa_family, SOCK_DGRAM, O_NONBLOCK);
    if (source->fd == -1 || connect(source->fd, address, length) == -1)
        return (struct io_result) { .status = IO_FAILED, .error = errno };
    return (struct io_result) { .status = IO_DONE };
}

struct io_result io_socket_connect(struct source *source, const struct sockaddr *address,
    socklen_t length, struct io_connect *options)
{
    static const int on = 1;

    if (unlikely(options != NULL && options->datagrams))
        return connect_datagrams(source, address, length);
    source->fd = descriptor_socket(address->sa_family, SOCK_STREAM, O_NONBLOCK);
    if (source->fd == -1)
        return (struct io_result) { .status = IO_FAILED, .error = errno };
    if (unlikely(options != NULL)) {
        int error = prepare_socket(source->fd, address, options);

        if (error != 0)
            return (struct io_result) { .status = IO_FAILED, .error = error };
    }
    /* output is gathered before the send: waiting for more would only cost time */
    if (address->sa_family != AF_UNIX)
        setsockopt(source->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(source->fd, address, length) == 0)
        return (struct io_result) { .status = IO_DONE };
    if (errno == EINPROGRESS || errno == EINTR)
        return (struct io_result) { .status = IO_AGAIN_WRITE };
    /* EAGAIN too: of a unix socket with a full backlog; no event announces room */
    return (struct io_result) { .status = IO_FAILED, .error = errno };
}

struct io_result io_socket_connected(struct source *source)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &error, &length) == -1)
        error = errno;
    if (error != 0)
        return (struct io_result) { .status = IO_FAILED, .error = error };
    return (struct io_result) { .status = IO_DONE };
}

struct io_result io_socket_ended(const struct source *source)
{
    char byte;
    ssize_t n = recv(source->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n == -1)
        return io_socket_failed(IO_AGAIN_READ);
    return (struct io_result) { .status = n == 0 ? IO_EOF : IO_AGAIN_READ };
}

int io_socket_name(const struct source *source, struct sockaddr *address, socklen_t *length)
{
    return getsockname(source->fd, address, length);
}

struct io_result io_socket_shutdown(struct source *source)
{
    if (shutdown(source->fd, SHUT_WR) == -1)
        return io_socket_failed(IO_AGAIN_WRITE);
    return (struct io_result) { .status = IO_DONE };
}

void io_socket_close(struct source *source, bool reset)
{
    if (reset)
        os_socket_reset(source->fd);
    close(source->fd);
    source->fd = -1;
}

size_t io_socket_queued(const struct source *source)
{
    return os_socket_queued(source->fd);
}

static struct io_result moved_bytes(ssize_t n, enum io_status again)
{
    if (n == -1)
        return io_socket_failed(again);
    return (struct io_result) { .status = n == 0 ? IO_EOF : IO_DONE, .n = (size_t)n };
}

struct io_result io_socket_sendfile(struct source *source, int fd, off_t *offset, size_t n)
{
    return moved_bytes(os_socket_sendfile(source->fd, fd, offset, n), IO_AGAIN_WRITE);
}

struct io_result io_socket_splice_in(struct source *source, int pipe, size_t n)
{
    return moved_bytes(os_socket_splice(source->fd, pipe, n), IO_AGAIN_READ);
}

struct io_result io_socket_splice_out(struct source *source, int pipe, size_t n)
{
    return moved_bytes(os_socket_splice(pipe, source->fd, n), IO_AGAIN_WRITE);
}

int io_socket_seal(
    struct source *source, const struct os_tls_keys *keys, struct io_sealing *sealing)
{
    uint64_t begin;

    if (os_tls_taken(source->fd, &begin) == -1 || os_tls_seal(source->fd, keys) == -1)
        return -1;
    sealing->begin = begin;
    return 0;
}

struct io_result io_socket_send_record(
    struct source *source, uint8_t type, const uint8_t *p, size_t n)
{
    return moved_bytes(os_tls_send(source->fd, type, p, n), IO_AGAIN_WRITE);
}

enum io_sealed io_socket_sealed(const struct source *source, struct io_sealing *sealing)
{
    struct pollfd one = { .fd = source->fd, .events = POLLOUT };
    uint64_t sequence, taken, given;

    if (os_tls_progress(source->fd, (enum os_tls_cipher)sealing->cipher, &sequence, &taken) == -1)
        return errno == EAGAIN ? IO_SEALED_SOON : IO_SEALED_LEFT;
    sealing->most = sequence;
    given = sealing->begin + sealing->plain + (sequence - sealing->sequence) * sealing->overhead;
    if (taken >= given)
        return IO_SEALED_LEFT;
    /* without room, the look makes the kernel tell of room */
    return poll(&one, 1, 0) == 1 ? IO_SEALED_SOON : IO_SEALED_LATER;
}

const struct io_ops io_socket = { IO_SOCKET_COMMON, IO_SOCKET_ASKING, IO_SOCKET_SYSTEM };
