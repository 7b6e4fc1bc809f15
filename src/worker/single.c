/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the service manager, for a worker without a master, that it serves, lives, drains or ends.
 * Does nothing to the worker but set its timer `alive`. */
#include "worker/single.h"

#include "systemd/notify.h"
#include "worker/worker.h"

#include <assert.h>

static void alive_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    fb_notify_alive(&fb_loop_worker(loop)->log);
    fb_timer_set(loop, timer, fb_notify_interval() / 2);
}

void fb_single_serves(struct fb_worker *worker)
{
    assert(worker->role == FB_ROLE_SINGLE && worker->phase == WORKER_SERVING);
    fb_notify_status(&worker->log, "Serving: a single process");
    fb_notify_ready(&worker->log);
    worker->alive.expired = alive_expired;
    if (fb_notify_interval() > 0)
        fb_timer_set(&worker->stream.net.loop, &worker->alive, fb_notify_interval() / 2);
}

void fb_single_ends(struct fb_worker *worker)
{
    assert(worker->role == FB_ROLE_SINGLE && worker->phase >= WORKER_DRAINING);
    fb_notify_stopping(&worker->log);
    fb_notify_status(&worker->log, worker->phase == WORKER_ENDING
                                       ? "Stopping"
                                       : "Draining: the sessions may end by themselves");
}
