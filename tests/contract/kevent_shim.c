/* SPDX-License-Identifier: BSD-2-Clause */
/* kevent(2), with the answers of a test; else the shim's. */
#include "contract/answers.h"
#include "shims/kqueue.h"

int kevent(int kq, const struct kevent *changes, int change_n, struct kevent *events, int event_n,
    const struct timespec *timeout)
{
    int result;

    if (event_n > 0 && take_answer(&result))
        return result;
    return kqueue_wait(kq, changes, change_n, events, event_n, timeout);
}
