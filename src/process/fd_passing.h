/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes one descriptor with some bytes over a unix domain socket (SCM_RIGHTS). Every descriptor
 * that one process gives another goes through these calls. They never block on their own account:
 * the socket's flags decide, and a descriptor that nobody wants is closed without waiting for what
 * its sender has left in it. */
#pragma once

#include <sys/types.h>

/* Sends like send() without SIGPIPE; `passed` goes along unless it is -1, and stays the
 * caller's. -1 with errno, EPIPE if the receiver has closed. */
ssize_t fd_send(int socket, const void *bytes, size_t n, int passed);
/* Receives like recv(); *passed is the first descriptor that came along, close-on-exec and the
 * caller's, or -1. All others are discarded. */
ssize_t fd_receive(int socket, void *bytes, size_t n, int *passed);
/* Gives what waits for a socket's receiver room for so many bytes, as far as the system lets it. */
void fd_widen(int socket, int bytes);
/* From now on sending waits for room, for so many seconds at most. */
void fd_send_slowly(int socket, int seconds);
/* Closes a socket of packets, first discarding the descriptors that it was passed and has not
 * received: the kernel, too, would wait for them. */
void fd_close_socket(int socket);
