/* SPDX-License-Identifier: BSD-2-Clause */
/* The way back when each worker of a generation has crashed on probation: the configuration before
 * starts again, as a generation of its own and in the same transaction as any other, because
 * workers that drain cannot serve again. What the new configuration had dropped is bound anew, once
 * the workers from before have released it, for which the start waits as any other does.
 * There is one way back only: a generation that is started again is not on probation. */
#include "pool/pool.h"

#include "process/listeners.h"
#include "process/logs.h"

#include <assert.h>

/* Whether the configuration before has addresses that the one that serves has given up. */
static bool must_bind(const struct pool *pool)
{
    return listeners_must_bind(pool->probation.before->cycle, pool->serving->cycle, pool->adopted);
}

/* Lets the configuration before start again. Nothing more is lost until it serves: a generation
 * that has not come to serve has left its predecessor accepting, which drains now only where it
 * has addresses that are to be bound again. */
static void go_back(struct generation *failed)
{
    struct pool *pool = failed->pool;
    struct pool_worker *worker;

    log_write(pool->log, LEVEL_EMERG, 0,
        "every worker process of generation %u has crashed within %d ms of its commit, the "
        "configuration of generation %u is started again",
        failed->number, POOL_PROBATION_MS, pool->probation.before->number);
    timers_disarm(pool->timers, &pool->probation.due);
    pool->probation.goes_back = true;
    if (failed == pool->starting) {
        pool_set_generation_phase(failed, GENERATION_SERVING);
        pool->serving = failed;
        pool->starting = NULL;
        /* the generation before may be gone before another one serves, with its logs */
        logs_put_in_force(&failed->cycle->core, pool->log, &pool->log_limit);
    }
    /* clients are not given to workers that crash, unless there will be no others */
    GENERATION_FOREACH_WORKER (worker, failed)
        if (worker->phase == POOL_WORKER_EMPTY)
            pool_worker_respawn_in(worker, POOL_PROBATION_MS);
    if (pool->probation.before->phase == GENERATION_REPLACED && must_bind(pool))
        generation_drain(pool->probation.before);
    pool->ops->goes_back(pool->host);
}

void pool_fall_back_advance(struct pool *pool)
{
    if (!pool_probation_awaits_start(pool) || (pool_find_holder(pool) != NULL && must_bind(pool)))
        return;
    if (pool_restart_generation(pool, pool->probation.before) == -1) {
        pool_probation_end(pool);
        generation_failed(pool);
    }
}

void pool_note_crash(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;
    const struct pool *pool = generation->pool;
    const struct pool_worker *other;

    assert(generation->phase == GENERATION_COMMITTED || generation->phase == GENERATION_SERVING);
    if (worker->task == TASK_ASK)
        return;
    worker->crashed = true;
    if (pool->probation.before == NULL)
        return;
    GENERATION_FOREACH_SERVING (other, generation)
        if (!other->crashed)
            return;
    if (!pool->probation.goes_back)
        go_back(generation);
    else if (generation == pool->starting) /* no other configuration is left */
        generation_serve(generation);
}
