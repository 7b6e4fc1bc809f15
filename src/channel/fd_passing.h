/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes one descriptor with some bytes over a unix domain socket (SCM_RIGHTS), for all processes
 * of the daemon. Blocks only where the socket's flags say so, and closes an unwanted descriptor
 * without waiting for bytes that the sender has left in it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Sends like send() without SIGPIPE, with the caller's descriptor `passed` or -1; EPIPE: closed. */
ssize_t fd_send(int socket, const void *bytes, size_t n, int passed);
/* Receives like recv(); *passed is the first descriptor passed, close-on-exec and the caller's, or
 * -1. The rest is discarded. *more, unless NULL: descriptors or a time came beside the bytes. */
ssize_t fd_receive(int socket, void *bytes, size_t n, int *passed, bool *more);
/* Widens the send buffer, as far as the system allows. */
void fd_widen(int socket, int bytes);
/* Lets sending wait for room, at most so long. */
void fd_send_slowly(int socket, int seconds);
/* Discards unreceived descriptors, for which the kernel, too, would wait, and closes. */
void fd_close_socket(int socket);
