/* SPDX-License-Identifier: BSD-2-Clause */
/* poll(2) and select(2), with the answers of a test; else the kernel's. */
#include "contract/answers.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/select.h>

typedef int poll_function(struct pollfd *fds, nfds_t n, int timeout);
typedef int select_function(
    int n, fd_set *readers, fd_set *writers, fd_set *others, struct timeval *timeout);

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    poll_function *next = (poll_function *)dlsym(RTLD_NEXT, "poll");
    int result;

    if (take_answer(&result))
        return result;
    if (next == NULL)
        abort();
    return next(fds, n, timeout);
}

int select(int n, fd_set *readers, fd_set *writers, fd_set *others, struct timeval *timeout)
{
    select_function *next = (select_function *)dlsym(RTLD_NEXT, "select");
    int result;

    if (take_answer(&result))
        return result;
    if (next == NULL)
        abort();
    return next(n, readers, writers, others, timeout);
}
