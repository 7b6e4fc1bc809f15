/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits around which signals are let through. pselect() would take a mask, but where a descriptor
 * is ready some kernels deliver no signal in it, and a busy loop would never have one. */
#include "event/masked_wait.h"

int masked_wait_poll(const struct loop *loop, struct pollfd *fds, nfds_t n, int timeout)
{
    sigset_t blocked;
    int count;

    loop_let_signals(loop, &blocked);
    count = poll(fds, n, timeout);
    loop_hold_signals(loop, &blocked);
    return count;
}

int masked_wait_select(
    const struct loop *loop, int fd_n, fd_set *readable, fd_set *writable, int timeout)
{
    struct timeval limit = { timeout / 1000, timeout % 1000 * 1000 };
    sigset_t blocked;
    int count;

    loop_let_signals(loop, &blocked);
    count = select(fd_n, readable, writable, NULL, timeout == -1 ? NULL : &limit);
    loop_hold_signals(loop, &blocked);
    return count;
}
