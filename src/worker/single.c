/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports to the service manager that a worker without a master serves, lives, drains or ends.
 * Does nothing to the worker but set its timer `alive`. */
#include "worker/single.h"

#include "systemd/notify.h"
#include "worker/worker.h"

#include <assert.h>

static void alive_expired(struct loop *loop, struct timer *timer)
{
    notify_alive(&worker_of_loop(loop)->log);
    timer_set(loop, timer, notify_interval() / 2);
}

void single_serving(struct worker *worker)
{
    assert(worker->role == ROLE_SINGLE && worker->phase == WORKER_SERVING);
    notify_attend(&worker->stream.net.loop.timers, &worker->log);
    notify_status(&worker->log, "Serving: a single process");
    notify_ready(&worker->log);
    worker->alive.expired = alive_expired;
    if (notify_interval() > 0)
        timer_set(&worker->stream.net.loop, &worker->alive, notify_interval() / 2);
}

void single_ended(struct worker *worker)
{
    assert(worker->role == ROLE_SINGLE && worker->phase >= WORKER_SERVING);
    notify_attend(NULL, NULL);
}

void single_ending(struct worker *worker)
{
    assert(worker->role == ROLE_SINGLE && worker->phase >= WORKER_DRAINING);
    notify_stopping(&worker->log);
    notify_status(&worker->log, worker->phase == WORKER_ENDING
                                    ? "Stopping"
                                    : "Draining: the sessions may end by themselves");
}
