/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on watched descriptors. None of them runs a callback. */
#include "process/role.h"
#include "worker/watches.h"
#include "worker/worker.h"

#include <assert.h>

fb_watch *fb_watch_fd(fb_worker *worker, int fd, unsigned events,
    void (*ready)(fb_worker *worker, fb_watch *watch, unsigned events, void *arg), void *arg)
{
    assert(role_is(ROLE_WORKER));
    return watches_add(worker, fd, events, ready, arg);
}

int fb_watch_set(fb_watch *watch, unsigned events)
{
    return watches_set(watch, events);
}

void fb_unwatch(fb_watch *watch)
{
    watches_remove(watch);
}
