/* SPDX-License-Identifier: BSD-2-Clause */
/* Wakes by SIGIO, eventfds, timerfds and signalfds. A descriptor of the set is O_ASYNC and owned by
 * this process: each change of state raises SIGIO, and close() removes the descriptor. */
#include "os/wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

int os_wakeup_begin(int *signals)
{
    *signals = -1;
    return 0;
}

int os_wakeup_add(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags == -1 || fcntl(fd, F_SETOWN, getpid()) == -1)
        return -1;
    return fcntl(fd, F_SETFL, flags | O_ASYNC);
}

void os_wakeup_expect(int fd, enum wakeup_event event)
{
    (void)fd;
    (void)event;
}

void os_wakeup_remove(int fd)
{
    (void)fd;
}

bool os_wakeup_sleep(const sigset_t *mask)
{
    sigsuspend(mask);
    return false;
}

int os_bell_open(int ends[2])
{
    return ends[0] = ends[1] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

int os_bell_ring(int end)
{
    static const uint64_t one = 1;
    ssize_t n;

    do
        n = write(end, &one, sizeof(one));
    while (n == -1 && errno == EINTR);
    return n == -1 ? -1 : 0;
}

/* Resets the count of an eventfd or a timerfd. */
void os_bell_quiet(int end)
{
    uint64_t count;

    while (read(end, &count, sizeof(count)) == -1 && errno == EINTR)
        ;
}

int os_ticks_open(uint64_t ms)
{
    struct timespec interval = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    struct itimerspec spec = { .it_interval = interval, .it_value = interval };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

    if (fd != -1 && timerfd_settime(fd, 0, &spec, NULL) == -1) {
        close(fd);
        return -1;
    }
    return fd;
}

int os_signals_open(const sigset_t *mask)
{
    sigset_t waited_for;

    sigprocmask(SIG_BLOCK, NULL, &waited_for);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(mask, number) == 1)
            sigdelset(&waited_for, number);
    return signalfd(-1, &waited_for, SFD_NONBLOCK | SFD_CLOEXEC);
}

int os_wait_poll(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask)
{
    struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };

    return ppoll(fds, n, timeout == -1 ? NULL : &limit, mask);
}

int os_wait_select(int fd_n, fd_set *readable, fd_set *writable, int timeout, const sigset_t *mask)
{
    struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };

    return pselect(fd_n, readable, writable, NULL, timeout == -1 ? NULL : &limit, mask);
}
