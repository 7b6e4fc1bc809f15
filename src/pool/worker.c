/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's record: the master gives the worker orders, each with a deadline, and schedules its
 * replacement. Nothing here decides for a generation. */
#include "pool/pool.h"

#include "process/signals.h"

#include <assert.h>

void pool_worker_respawn_in(struct pool_worker *worker, uint64_t ms)
{
    assert(worker->phase == POOL_WORKER_EMPTY);
    assert(worker->generation->phase < GENERATION_REPLACED);
    timers_arm(worker->generation->pool->timers, &worker->respawn, ms);
}

void pool_worker_order(struct pool_worker *worker, enum pool_order order)
{
    static const struct {
        enum pool_kill late;
        int signal; /* 0: a message */
    } orders[] = {
        [POOL_ORDER_ACCEPT] = { POOL_KILL_START_LATE, 0 },
        [POOL_ORDER_DRAIN] = { POOL_KILL_DRAIN_LATE, SIGQUIT },
        /* `sigterm_shutdown` is about SIGTERM alone */
        [POOL_ORDER_CLOSE] = { POOL_KILL_CLOSE_LATE, SIGINT },
    };

    assert(worker->phase != POOL_WORKER_EMPTY);
    assert(order != POOL_ORDER_ACCEPT || worker->phase >= POOL_WORKER_READY);
    if (order != POOL_ORDER_DRAIN) /* begins when it has started */
        pool_deadline_set(worker, POOL_KILL_NONE);
    pool_deadline_set(worker, orders[order].late);
    if (orders[order].signal != 0) {
        signals_send_held(
            worker->pid, worker->handle, orders[order].signal, worker->generation->pool->log);
        return;
    }
    if (worker->generation->without_mutex)
        channel_end_send(&worker->channel, MESSAGE_MUTEX_OFF);
    worker->accept_asked = true;
    channel_end_send(&worker->channel, MESSAGE_ACCEPT);
}

struct pool_worker *pool_worker_of_incarnation(const struct pool *pool, uint32_t incarnation)
{
    struct generation *generation;
    struct pool_worker *worker;

    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_SERVING (worker, generation)
            if (worker->pid > 0 && slot_incarnation(worker->slot) == incarnation)
                return worker;
    return NULL;
}
