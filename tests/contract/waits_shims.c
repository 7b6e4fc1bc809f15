/* SPDX-License-Identifier: BSD-2-Clause */
/* The waiting calls of /dev/poll and event ports, with the answers of a test; else the shims'. */
#include "contract/answers.h"

#include <errno.h>
#include <port.h>
#include <sys/devpoll.h>

int devpoll_ioctl(int fd, unsigned long request, void *arg)
{
    int result;

    return request == DP_POLL && take_answer(&result) ? result
                                                      : devpoll_ioctl_shim(fd, request, arg);
}

/* Answers a count of events in *nget; none is the end of the time. An error leaves *nget as it was,
 * which kernels do. */
int port_getn(int fd, port_event_t list[], uint_t max, uint_t *nget, const timespec_t *timeout)
{
    int result;

    if (!take_answer(&result))
        return port_getn_shim(fd, list, max, nget, timeout);
    if (result == 0)
        errno = ETIME;
    if (result <= 0)
        return -1;
    *nget = (uint_t)result;
    return 0;
}
