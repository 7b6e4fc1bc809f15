/* SPDX-License-Identifier: BSD-2-Clause */
/* io_uring_enter(2) as liburing has it, with the answers of a test; else the kernel's. */
#include "contract/answers.h"

#include <errno.h>
#include <liburing.h>
#include <sys/syscall.h>
#include <unistd.h>

int io_uring_enter2(
    unsigned fd, unsigned submit, unsigned least, unsigned flags, sigset_t *argument, size_t size)
{
    int result;

    if (!take_answer(&result))
        result = (int)syscall(SYS_io_uring_enter, fd, submit, least, flags, argument, size);
    return result == -1 ? -errno : result;
}
