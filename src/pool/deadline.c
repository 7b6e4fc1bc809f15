/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines of workers: for its start, its drain, its end. The master alone counts, whatever the
 * worker does: it may be stopped, be in a job, ignore signals, or have lost its descriptors.
 * Invariant: a worker has one deadline at most, the earliest, and `due` says what for; nothing that
 * the worker says leaves it without the deadline of its drain or end. */
#include "pool/pool.h"

#include "process/role.h"

#include <assert.h>

/* Time beyond worker_shutdown_timeout, at which a worker closes its sessions itself. */
#define DRAIN_MORE_MS 1000

void pool_deadline_set(struct pool_worker *worker, enum pool_kill why, uint64_t ms)
{
    struct pool *pool = worker->generation->pool;
    uint64_t at_ms = pool->clock->mono_ms + ms;

    assert(role_is(ROLE_MASTER));
    assert(worker->pid > 1 && why > POOL_KILL_NONE && why < POOL_KILLS);
    /* one for the start, which a word of the worker's drops, takes the place of no other */
    if (worker->due != POOL_KILL_NONE &&
        (why == POOL_KILL_START_LATE || worker->deadline.deadline <= at_ms))
        return;
    timers_arm_at(pool->timers, &worker->deadline, at_ms);
    worker->due = why;
}

void pool_deadline_set_drain(struct pool_worker *worker)
{
    int64_t limit = worker->generation->cycle->core.worker_shutdown_timeout;

    worker->drains = true;
    if (limit > 0 && worker->killed == POOL_KILL_NONE)
        pool_deadline_set(worker, POOL_KILL_DRAIN_LATE, (uint64_t)limit + DRAIN_MORE_MS);
}

void pool_deadline_drop_start(struct pool_worker *worker)
{
    if (worker->due != POOL_KILL_START_LATE)
        return;
    timers_disarm(worker->generation->pool->timers, &worker->deadline);
    worker->due = POOL_KILL_NONE;
    if (worker->drains) /* which was due later than the start */
        pool_deadline_set_drain(worker);
}
