/* SPDX-License-Identifier: BSD-2-Clause */
/* Kills a worker that stays in one callback for longer than worker_watchdog; it is replaced like
 * one that has crashed. Each worker's heartbeat is read twice in that time, and must have been
 * found unchanged three times in a row: a machine that was suspended, or busy with others, lets
 * some time pass without any reading. The heartbeat is the worker's word: it can at worst have
 * that worker killed or spared. */
#include "pool/pool.h"

#include "base/compiler.h"
#include "process/process_ops.h"
#include "process/signals.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define REPEATS 2 /* after the first reading */

static void kill_stuck(struct pool_worker *worker)
{
    struct pool *pool = worker->generation->pool;
    uint64_t ms = pool->clock->mono_ms - worker->watch.since_ms;
    struct death_words words = { .now = worker->watch.heartbeat };
    char where[DEATH_PLACE_MAX];

    assert(worker->pid > 0 && worker->killed == POOL_KILL_NONE);
    death_place(worker->generation->cycle, &words, where);
    log_quota_write(&worker->lines, LEVEL_ALERT, 0,
        "%s %d was stuck %s for %" PRIu64 " %s (worker_watchdog), it is killed",
        pool_worker_title(worker), (int)worker->pid, where, ms < 1000 ? ms : ms / 1000,
        ms < 1000 ? "ms" : "s");
    worker->killed = POOL_KILL_STUCK;
    pool_deadline_set(worker, POOL_KILL_STUCK);
    signals_send_held(worker->pid, worker->handle, SIGABRT,
        worker->generation->pool->log); /* the core dump shows where it hangs */
}

/* Before a worker accepts it has worker_start_timeout, and one that is to end at once has less time
 * than the watchdog; one that drains may have any. */
static bool is_watched(const struct pool_worker *worker)
{
    return worker->phase >= POOL_WORKER_ACCEPTING && worker->killed == POOL_KILL_NONE &&
           (worker->due == POOL_KILL_NONE || worker->due == POOL_KILL_DRAIN_LATE);
}

static void check_heartbeat(struct pool_worker *worker)
{
    struct pool *pool = worker->generation->pool;
    struct pool_watch *watch = &worker->watch;
    uint64_t now;

    if (!is_watched(worker))
        return;
    now = heartbeat_now(&shared_slot(pool->shared, worker->slot)->heartbeat);
    /* somebody takes care of one that a signal or a debugger has stopped */
    if (watch->since_ms == 0 || now != watch->heartbeat ||
        heartbeat_callback(now) == CALLBACK_WAIT || process_ops->proc_is_stopped(worker->pid))
        *watch = (struct pool_watch) { .heartbeat = now, .since_ms = pool->clock->mono_ms };
    else if (++watch->repeats >= REPEATS)
        kill_stuck(worker);
}

void pool_watchdog_expired(struct loop *loop, struct timer *timer)
{
    struct generation *generation = container_of(timer, struct generation, watch);
    uint64_t limit = (uint64_t)generation->cycle->core.worker_watchdog;
    struct pool_worker *worker;

    assert(loop == NULL && limit > 0);
    GENERATION_FOREACH_WORKER (worker, generation)
        check_heartbeat(worker);
    timers_arm(generation->pool->timers, timer, (limit + 1) / 2);
}
