/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing without waiting by pwritev2(), which takes flags of its own. Some kernels refuse them for
 * pipes, so that it is tried. */
#include "os/log_nowait.h"
#include "os/descriptor.h"

#include <unistd.h>

/* Tried on a pipe of our own. A FIFO is on a device of its own, and its kernel's answer is
 * another. */
bool log_nowait_is_known(const struct stat *pipe)
{
    struct iovec byte = { .iov_base = (char[]) { '\n' }, .iov_len = 1 };
    struct stat own;
    bool taken = false;
    int ends[2];

    if (descriptor_pipe(ends, 0) == -1)
        return false;
    if (fstat(ends[1], &own) == 0 && own.st_dev == pipe->st_dev)
        taken = pwritev2(ends[1], &byte, 1, -1, RWF_NOWAIT) == 1;
    close(ends[0]);
    close(ends[1]);
    return taken;
}

ssize_t log_nowait_write(int fd, const struct iovec *parts, int n)
{
    return pwritev2(fd, parts, n, -1, RWF_NOWAIT);
}
