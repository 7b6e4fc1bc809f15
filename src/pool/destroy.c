/* SPDX-License-Identifier: BSD-2-Clause */
/* Destroys generations that end and have no process left, with their configurations. The serving
 * one is never destroyed: its listeners are in use although all its workers may have gone. */
#include "pool/pool.h"

#include "process/logs.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>

void pool_discard_cycle(struct pool *pool, struct cycle *cycle)
{
    struct generation *generation;

    if (pool->log->targets == cycle->core.logs) { /* the first one, which could not start */
        pool->log->targets = NULL;
        pool->log->target_n = 0;
        log_update(pool->log);
    }
    logs_close(&cycle->core);
    zones_close(&cycle->zones);
    cycle_destroy(&cycle);
    /* at once: what is opened next may have the number of what a library has just closed */
    TAILQ_FOREACH (generation, &pool->generations, link)
        descriptors_drop_closed(&generation->opened);
}

void pool_destroy_generation(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct pool_worker *worker;

    assert(generation->process_n == 0);
    assert(generation != pool->serving && generation != pool->starting);
    GENERATION_FOREACH_WORKER (worker, generation)
        timers_disarm(pool->timers, &worker->respawn);
    timers_disarm(pool->timers, &generation->release);
    timers_disarm(pool->timers, &generation->watch);
    TAILQ_REMOVE(&pool->generations, generation, link);
    pool_discard_cycle(pool, generation->cycle);
    descriptors_done(&generation->opened);
    free(generation);
    /* freed pieces lie between others, and years of reloads are to leave no trace */
    malloc_trim(0);
}
