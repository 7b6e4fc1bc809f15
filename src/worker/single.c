/* SPDX-License-Identifier: BSD-2-Clause */
/* `master_process off`: what the service manager is told by a worker that has no master. */
#include "worker/worker.h"

#include "systemd/notify.h"

static void alive_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    fb_notify_alive(&fb_loop_worker(loop)->log);
    fb_timer_set(loop, timer, fb_notify_interval() / 2);
}

void fb_single_serves(struct fb_worker *worker)
{
    fb_notify_status(&worker->log, "Serving: a single process");
    fb_notify_ready(&worker->log);
    worker->alive.expired = alive_expired;
    if (fb_notify_interval() > 0)
        fb_timer_set(&worker->stream.net.loop, &worker->alive, fb_notify_interval() / 2);
}

void fb_single_ends(struct fb_worker *worker)
{
    fb_notify_stopping(&worker->log);
    fb_notify_status(
        &worker->log, worker->ending ? "Stopping" : "Draining: the sessions may end by themselves");
}
