/* SPDX-License-Identifier: BSD-2-Clause */
/* The waits of poll and select with the loop's signal mask in force. Where the system's call takes
 * the mask (masked_wait_linux.c), it changes within it; else (masked_wait_posix.c) the signals are
 * let through around it, and the loop's pipe of signals ends it. */
#pragma once

#include "event/loop.h"

#include <poll.h>
#include <sys/select.h>

/* Waits at most `timeout` ms (-1: for ever), and returns what the call of its name does. */
int masked_wait_poll(const struct loop *loop, struct pollfd *fds, nfds_t n, int timeout);
int masked_wait_select(
    const struct loop *loop, int fd_n, fd_set *readable, fd_set *writable, int timeout);
