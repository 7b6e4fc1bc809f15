/* SPDX-License-Identifier: BSD-2-Clause */
/* The turn of the loop: the order of its steps, and nothing else. Under the simulated kernel, and
 * in a debug build, each turn ends with a check of the whole worker. */
#include "worker/worker.h"

#include <assert.h>

/* Events that wait already, as those of a rescan, are not kept waiting. */
static bool is_posted(const struct fb_loop *loop)
{
    return !TAILQ_EMPTY(&loop->queues[FB_QUEUE_ACCEPT]) ||
           !TAILQ_EMPTY(&loop->queues[FB_QUEUE_NORMAL]);
}

void fb_worker_turn(struct fb_worker *worker)
{
    struct fb_loop *loop = &worker->stream.net.loop;
    struct fb_heartbeat *heartbeat = worker->stream.net.heartbeat;
    /* with timer_resolution its ticks end the wait */
    int timeout = loop->ticker != NULL ? -1 : fb_timers_distance(loop);

    assert(worker->phase >= WORKER_READY && worker->phase <= WORKER_DRAINING);
    fb_accept_before(worker, &timeout);
    fb_loop_promote(loop);
    if (is_posted(loop))
        timeout = 0;
    fb_heartbeat_begin(heartbeat, FB_CALLBACK_WAIT, FB_NO_PROTOCOL);
    fb_loop_wait(loop, timeout);
    fb_heartbeat_end(heartbeat);

    /* under the mutex connections are only accepted: their sessions begin in the normal queue */
    fb_loop_run(loop, FB_QUEUE_ACCEPT);
    fb_accept_after(worker);
    fb_timers_expire(loop);
    fb_loop_run(loop, FB_QUEUE_NORMAL);
    if (loop_is_checked(loop))
        worker_check(worker);
}
