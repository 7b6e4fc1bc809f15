/* SPDX-License-Identifier: BSD-2-Clause */
/* kevent(2) by name; a test with its own kevent() calls kqueue_wait() itself. */
#include "shims/kqueue.h"

int kevent(int kq, const struct kevent *changes, int change_n, struct kevent *events, int event_n,
    const struct timespec *timeout)
{
    return kqueue_wait(kq, changes, change_n, events, event_n, timeout);
}
