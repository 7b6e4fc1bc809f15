/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors are O_ASYNC and owned by this process: each change of one's state is a SIGIO, and
 * none needs to be listed. Closing a descriptor takes it out. */
#include "process/wakeup.h"

#include "process/signals.h"

#include <fcntl.h>
#include <unistd.h>

int wakeup_begin(void)
{
    return 0;
}

int wakeup_add(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags == -1 || fcntl(fd, F_SETOWN, getpid()) == -1)
        return -1;
    return fcntl(fd, F_SETFL, flags | O_ASYNC);
}

void wakeup_expect(int fd, enum wakeup_event event)
{
    (void)fd;
    (void)event;
}

void wakeup_remove(int fd)
{
    (void)fd;
}

void wakeup_sleep(void)
{
    sigsuspend(signals_wait_mask());
}
