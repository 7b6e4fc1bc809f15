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
/* A worker that was told to end at once, and has not ended so long afterwards, is killed. */
#define CLOSE_MS 2000
/* A process that ends closes its channel too: it is reaped within this time. */
#define CHANNEL_LOST_MS 1000
/* How long a core dump may take; then, or when the signal is ignored, SIGKILL follows. */
#define STUCK_MAX_MS 10000

void pool_deadline_set(struct pool_worker *worker, enum pool_kill why)
{
    const struct core_settings *core = &worker->generation->cycle->core;
    struct pool *pool = worker->generation->pool;
    int64_t ms = 0;

    assert(role_is(ROLE_MASTER));
    assert(worker->pid > 1 && why < POOL_KILLS);
    if (why == POOL_KILL_NONE && worker->due == POOL_KILL_START_LATE) {
        timers_disarm(pool->timers, &worker->deadline);
        worker->due = POOL_KILL_NONE;
        if (worker->drains) /* the drain was due later than the start */
            why = POOL_KILL_DRAIN_LATE;
    }
    switch ((unsigned)why) {
    case POOL_KILL_START_LATE:
        ms = core->worker_start_timeout;
        break;
    case POOL_KILL_STUCK:
        ms = core->worker_watchdog < STUCK_MAX_MS ? core->worker_watchdog : STUCK_MAX_MS;
        break;
    case POOL_KILL_DRAIN_LATE:
        worker->drains = true;
        if (core->worker_shutdown_timeout > 0 && worker->killed == POOL_KILL_NONE)
            ms = core->worker_shutdown_timeout + DRAIN_MORE_MS;
        break;
    case POOL_KILL_CLOSE_LATE:
        ms = CLOSE_MS;
        break;
    case POOL_KILL_CHANNEL_LOST:
        ms = CHANNEL_LOST_MS;
        break;
    }
    /* a deadline for the start, which a word of the worker's drops, takes the place of no other */
    if (ms == 0 || (worker->due != POOL_KILL_NONE &&
                       (why == POOL_KILL_START_LATE ||
                           worker->deadline.deadline <= pool->clock->mono_ms + (uint64_t)ms)))
        return;
    timers_arm(pool->timers, &worker->deadline, (uint64_t)ms);
    worker->due = why;
}
