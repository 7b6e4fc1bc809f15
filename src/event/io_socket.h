/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `io_socket`: what every system has in common (io_socket.c), for the tables of Linux
 * (io_socket_linux.c) and of other systems (io_socket_posix.c). */
#pragma once

#include "event/io.h"

/* Makes a result of errno, where "would block" means to try `again`. */
struct io_result io_socket_failed(enum io_status again);

struct io_result io_socket_recv(struct source *source, struct io_span *span);
struct io_result io_socket_send(struct source *source, const struct iovec *pieces, int count);
bool io_socket_waits(const struct source *listener);
struct io_result io_socket_connect(
    struct source *source, const struct sockaddr *address, socklen_t length);
struct io_result io_socket_connected(struct source *source);
int io_socket_name(const struct source *source, struct sockaddr *address, socklen_t *length);
struct io_result io_socket_shutdown(struct source *source);
void io_socket_close(struct source *source, bool reset);
