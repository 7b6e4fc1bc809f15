/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes one descriptor with some bytes over a unix domain socket (SCM_RIGHTS). Every descriptor
 * that one process gives another goes through these two calls. They never block on their own
 * account: the socket's flags decide. */
#pragma once

#include <sys/types.h>

/* Sends like send() without SIGPIPE; `passed` goes along unless it is -1, and stays the
 * caller's. -1 with errno, EPIPE if the receiver has closed. */
ssize_t fd_send(int socket, const void *bytes, size_t n, int passed);
/* Receives like recv(); *passed is a descriptor that came along, close-on-exec and the caller's,
 * or -1. */
ssize_t fd_receive(int socket, void *bytes, size_t n, int *passed);
