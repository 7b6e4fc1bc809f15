/* SPDX-License-Identifier: BSD-2-Clause */
/* The turn of the loop: the order of its steps, and nothing else. What few turns need (signals, the
 * accept mutex, a log's repair) is tested for here, and called only then. Under the simulated
 * kernel, and in a debug build, each turn ends with a check of the whole worker. */
#include "worker/accept_turn.h"
#include "worker/commands.h"
#include "worker/logs.h"
#include "worker/messages.h"
#include "worker/threads.h"
#include "worker/worker.h"

#include <assert.h>

/* How long a worker that has drained waits for the others, one of which may stand still. */
#define OTHERS_MS 10000

/* Ends a worker whose loop has failed; else checks the whole worker. */
static void look_after(struct worker *worker)
{
    if (worker->stream.net.loop.wait_error == 0)
        worker_check(worker);
    else if (worker->phase < WORKER_ENDING)
        worker_set_phase(worker, WORKER_ENDING);
}

static inline void wait_for_events(struct worker *worker, int timeout)
{
    struct loop *loop = &worker->stream.net.loop;

    if (unlikely(worker->busy_poll.ns != 0) && timeout != 0 &&
        busy_poll(&worker->busy_poll, loop, &timeout))
        return;
    loop_wait(loop, timeout);
}

void worker_turn(struct worker *worker)
{
    struct loop *loop = &worker->stream.net.loop;
    struct heartbeat *heartbeat = worker->stream.net.heartbeat;
    /* with timer_resolution its ticks end the wait */
    int timeout = loop->ticker != NULL ? -1 : timers_wait(&loop->timers);
    struct acceptors *accept = &worker->accept;

    assert(worker->phase >= WORKER_READY && worker->phase <= WORKER_DRAINING);
    if (accept->sharing == SHARING_MUTEX)
        timeout = accept_before(worker, timeout);
    if (loop_promote(loop))
        timeout = 0;
    if (unlikely(heartbeat_begin_wait(heartbeat)))
        worker_log_stall(worker);
    wait_for_events(worker, timeout);
    heartbeat_end_wait(heartbeat);

    /* under the mutex connections are only accepted: their sessions begin in the normal queue */
    if (acceptors_hold_mutex(accept))
        loop_run(loop, QUEUE_ACCEPT);
    if (acceptors_hold_mutex(accept)) /* unless another worker has taken it */
        accept_after(worker);
    timers_run(&loop->timers);
    loop_run(loop, QUEUE_NORMAL);
    /* without the mutex clients come last: one that has left has made room for another by now */
    if (!loop_is_empty(loop, QUEUE_ACCEPT)) {
        loop_run(loop, QUEUE_ACCEPT);
        loop_run(loop, QUEUE_NORMAL);
    }
    if (loop->noticeable)
        look_after(worker);
}

/* Whether messages wait to be sent, or protocols for the outcome of what they have sent: they may
 * have more to send then. */
static bool has_to_send(const struct worker *worker)
{
    return messages_are_unsent(worker) || worker_protocols_wait(worker);
}

bool worker_has_ended(struct worker *worker)
{
    if (worker->phase == WORKER_ENDING)
        return true;
    if (!stream_is_drained(&worker->stream) || threads_busy(worker) > 0 || worker->posts.n > 0)
        return false;
    if (!has_to_send(worker) || worker->shutdown_passed || worker->others_passed)
        return true;
    if (!timer_is_set(&worker->others))
        timer_set(&worker->stream.net.loop, &worker->others, OTHERS_MS);
    return false;
}

void worker_others_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);

    assert(timer == &worker->others && worker->phase >= WORKER_DRAINING);
    (void)timer;
    worker->others_passed = true;
    if (has_to_send(worker))
        log_write(&worker->log, LEVEL_WARN, 0,
            "other workers have not answered all messages within %d s, which are not waited for",
            OTHERS_MS / 1000);
}

void worker_run(struct worker *worker)
{
    assert(worker->phase >= WORKER_READY && worker->phase < WORKER_DONE);
    for (;;) {
        if (unlikely(signals_pending()))
            worker_take_commands(worker);
        if (unlikely(worker->phase >= WORKER_DRAINING) && worker_has_ended(worker))
            return;
        if (unlikely(worker->log.broken || worker->log_limit.report_ms != 0))
            worker_tend_log(worker);
        worker_turn(worker);
    }
}
