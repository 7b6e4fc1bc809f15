/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `io_socket`, for the tables of mechanisms. */
#pragma once

#include "event/io.h"

struct io_result io_socket_recv(struct source *source, struct io_span *span);
struct io_result io_socket_send(struct source *source, const struct iovec *pieces, int count);
struct io_result io_socket_accept(
    struct source *listener, int *fd, struct sockaddr *address, socklen_t *length);
bool io_socket_waits(const struct source *listener);
struct io_result io_socket_connect(struct source *source, const struct sockaddr *address,
    socklen_t length, struct io_connect *options);
struct io_result io_socket_connected(struct source *source);
struct io_result io_socket_ended(const struct source *source);
int io_socket_name(const struct source *source, struct sockaddr *address, socklen_t *length);
struct io_result io_socket_shutdown(struct source *source);
void io_socket_close(struct source *source, bool reset);
size_t io_socket_queued(const struct source *source);
struct io_result io_socket_sendfile(struct source *source, int fd, off_t *offset, size_t n);
/* For systems that have splice(). */
struct io_result io_socket_splice_in(struct source *source, int pipe, size_t n);
struct io_result io_socket_splice_out(struct source *source, int pipe, size_t n);

/* The operations of every table. */
#define IO_SOCKET_COMMON                                                                           \
    .send = io_socket_send, .waits = io_socket_waits, .connect = io_socket_connect,                \
    .ended = io_socket_ended, .name = io_socket_name, .shutdown = io_socket_shutdown,              \
    .close = io_socket_close
/* The operations with results perhaps known to a mechanism. */
#define IO_SOCKET_ASKING                                                                           \
    .recv = io_socket_recv, .accept = io_socket_accept, .connected = io_socket_connected
/* The operations that not every system has. */
#if LINUX_SYSTEM
#define IO_SOCKET_SYSTEM                                                                           \
    .queued = io_socket_queued, .sendfile = io_socket_sendfile, .splice_in = io_socket_splice_in,  \
    .splice_out = io_socket_splice_out
#else
#define IO_SOCKET_SYSTEM .queued = io_socket_queued, .sendfile = io_socket_sendfile
#endif
