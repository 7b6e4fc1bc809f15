/* SPDX-License-Identifier: BSD-2-Clause */
/* The turn of the loop: the order of its steps, and nothing else. Under the simulated kernel, and
 * in a debug build, each turn ends with a check of the whole worker. */
#include "worker/worker.h"

#include <assert.h>

/* Events that wait already, as those of a rescan, are not kept waiting. */
static bool is_posted(const struct loop *loop)
{
    return !TAILQ_EMPTY(&loop->queues[QUEUE_ACCEPT]) || !TAILQ_EMPTY(&loop->queues[QUEUE_NORMAL]);
}

void worker_turn(struct fb_worker *worker)
{
    struct loop *loop = &worker->stream.net.loop;
    struct heartbeat *heartbeat = worker->stream.net.heartbeat;
    /* with timer_resolution its ticks end the wait */
    int timeout = loop->ticker != NULL ? -1 : timers_distance(loop);

    assert(worker->phase >= WORKER_READY && worker->phase <= WORKER_DRAINING);
    accept_before(worker, &timeout);
    loop_promote(loop);
    if (is_posted(loop))
        timeout = 0;
    heartbeat_begin(heartbeat, CALLBACK_WAIT, HEARTBEAT_NO_PROTOCOL);
    loop_wait(loop, timeout);
    heartbeat_end(heartbeat);

    /* under the mutex connections are only accepted: their sessions begin in the normal queue */
    loop_run(loop, QUEUE_ACCEPT);
    accept_after(worker);
    timers_expire(loop);
    loop_run(loop, QUEUE_NORMAL);
    if (loop_is_checked(loop))
        worker_check(worker);
}
