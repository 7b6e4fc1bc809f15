/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of passing descriptors that systems do in ways of their own. Private to fd_passing.c,
 * and implemented by fd_passing_linux.c or fd_passing_posix.c. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

/* Receives as recvmsg() does; descriptors that come along are close-on-exec once fd_set_received()
 * was called for each. */
ssize_t fd_receive_message(int socket, struct msghdr *header);
void fd_set_received(int fd);
/* Whether the kernel refuses descriptors that are sent to this socket. */
bool fd_is_refused(int socket);
