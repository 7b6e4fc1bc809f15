/* SPDX-License-Identifier: BSD-2-Clause */
/* Destroys generations that end and have no process left, with their configurations. The serving
 * one is never destroyed: its listeners are in use although all its workers may have gone. */
#include "pool/pool.h"

#include "os/memory.h"
#include "process/configuration.h"

#include <assert.h>
#include <stdlib.h>

void pool_destroy_generation(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct generation *other;
    struct pool_worker *worker;

    assert(generation->process_n == 0);
    assert(generation != pool->serving && generation != pool->starting);
    assert(generation != pool->probation.before);
    GENERATION_FOREACH_WORKER (worker, generation) {
        timers_disarm(pool->timers, &worker->respawn);
        log_quota_done(&worker->lines);
    }
    timers_disarm(pool->timers, &generation->release);
    timers_disarm(pool->timers, &generation->watch);
    timers_disarm(pool->timers, &generation->calm);
    TAILQ_REMOVE(&pool->generations, generation, link);
    configuration_discard(&generation->cycle, pool->log);
    /* at once: what is opened next may have the number of what a library has just closed */
    TAILQ_FOREACH (other, &pool->generations, link)
        descriptors_drop_closed(&other->opened);
    descriptors_done(&generation->opened);
    bells_close(&generation->bells);
    free(generation);
    /* freed pieces lie between others, and years of reloads are to leave no trace */
    os_memory_trim();
}
