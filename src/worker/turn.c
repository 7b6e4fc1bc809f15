/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a worker, the order of a turn, and the end of a drain. Under the simulated kernel,
 * and in a debug build, each turn checks the worker. */
#include "base/trace.h"
#include "session/idle.h"
#include "session/log.h"
#include "worker/accept_pass.h"
#include "worker/messages.h"
#include "worker/worker.h"

#include <assert.h>

/* Limit for replies of siblings, possibly stalled, to a drained worker. */
#define OTHERS_MS 10000

/* ---- Phases ---- */

void worker_set_phase(struct worker *worker, enum worker_phase phase)
{
    assert(phase > worker->phase && phase <= WORKER_DONE);
    assert(worker->phase != WORKER_STARTING || phase == WORKER_READY || phase == WORKER_ENDING);
    assert(phase != WORKER_DONE || worker->phase == WORKER_ENDING);
    worker->phase = phase;
}

void worker_check(const struct worker *worker)
{
    const struct net *net = &worker->stream.net;

    assert(worker->phase < WORKER_DONE);
    assert(worker->role == ROLE_WORKER || worker->role == ROLE_SINGLE);
    assert(worker->role == ROLE_WORKER || worker->channel == NULL);
    assert((worker->channel == NULL) == (worker->to_master.fd == -1));
    assert(net->client_n <= net->connection_n);
    assert((worker->phase == WORKER_SERVING) ==
           (worker->accept.phase != ACCEPT_CLOSED && worker->accept.phase != ACCEPT_RELEASED));
    assert((worker->phase == WORKER_DRAINING) == (worker->accept.phase == ACCEPT_RELEASED) ||
           worker->phase == WORKER_ENDING); /* by the deadline of a drain, within a turn */
    assert(!timer_is_set(&worker->shutdown) || worker->phase == WORKER_DRAINING);
    assert(!timer_is_set(&worker->others) || worker->phase >= WORKER_DRAINING);
    assert(!acceptors_hold_mutex(&worker->accept));
    acceptors_check(&worker->accept);
    if (worker->messages != NULL)
        messages_check(worker);
    if (worker->names != NULL)
        names_check(worker->names);
    if (net->loop.mechanism->self != NULL) /* simulated: no other process can write there */
        shared_check(worker->heritage->shared);
}

/* ---- Turns ---- */

/* Logs a callback of the worker, longer than `stall_threshold`. */
static COLD void log_stall(struct worker *worker)
{
    struct heartbeat_stall stall = heartbeat_take_stall(worker->stream.net.heartbeat);

    session_log_other_stall(&worker->log, &stall, worker_protocols_name(worker, stall.protocol));
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
        log_stall(worker);
    if (likely(worker->busy_poll.ns == 0) || timeout == 0 ||
        !busy_poll(&worker->busy_poll, loop, &timeout))
        loop_wait(loop, timeout);
    heartbeat_end_wait(heartbeat);
    trace_turn_begin(loop->found.first, loop->found.next);

    /* under the mutex connections are only accepted: their sessions begin in the normal queue */
    if (accept->sharing == SHARING_MUTEX && acceptors_hold_mutex(accept)) {
        loop_run(loop, QUEUE_ACCEPT);
        if (acceptors_hold_mutex(accept)) /* unless another worker has taken it */
            accept_after(worker);
    }
    timers_run(&loop->timers);
    loop_run(loop, QUEUE_NORMAL);
    /* without the mutex clients come last, after others have left room */
    if (!loop_is_empty(loop, QUEUE_ACCEPT)) {
        loop_run(loop, QUEUE_ACCEPT);
        loop_run(loop, QUEUE_NORMAL);
    }
    trace_turn_end();
    if (loop->noticeable && loop->wait_error == 0)
        worker_check(worker);
    else if (loop->noticeable && worker->phase < WORKER_ENDING)
        worker_set_phase(worker, WORKER_ENDING);
}

static void others_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);

    assert(timer == &worker->others && worker->phase >= WORKER_DRAINING);
    worker->others_passed = true;
    if (messages_are_under_way(worker))
        log_write(&worker->log, LEVEL_WARN, 0,
            "other workers have not answered all messages within %d s, which are not waited for",
            OTHERS_MS / 1000);
}

bool worker_has_ended(struct worker *worker)
{
    if (worker->phase == WORKER_ENDING)
        return true;
    if (!session_is_drained(&worker->stream) || jobs_busy(worker) > 0 ||
        !STAILQ_EMPTY(&worker->posts.queue))
        return false;
    if (!messages_are_under_way(worker) || worker->shutdown_passed || worker->others_passed)
        return true;
    worker->others.expired = others_expired;
    if (!timer_is_set(&worker->others))
        timer_set(&worker->stream.net.loop, &worker->others, OTHERS_MS);
    return false;
}
