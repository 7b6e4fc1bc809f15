/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits whose signal mask the kernel changes. */
#include "event/masked_wait.h"

int masked_wait_poll(const struct loop *loop, struct pollfd *fds, nfds_t n, int timeout)
{
    struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };

    return ppoll(fds, n, timeout == -1 ? NULL : &limit, loop->wait_mask);
}

int masked_wait_select(
    const struct loop *loop, int fd_n, fd_set *readable, fd_set *writable, int timeout)
{
    struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };

    return pselect(fd_n, readable, writable, NULL, timeout == -1 ? NULL : &limit, loop->wait_mask);
}
