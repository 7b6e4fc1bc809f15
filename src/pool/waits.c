/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds what a start of the next generation waits for, and says it in words for those who have
 * asked. Whether it waits is pool_may_start()'s to decide. */
#include "pool/pool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

const struct generation *pool_find_holder(const struct pool *pool)
{
    const struct generation *generation;
    const struct pool_worker *worker;

    TAILQ_FOREACH (generation, &pool->generations, link) {
        if (generation->release.deadline == 0)
            continue;
        GENERATION_FOREACH_SERVING (worker, generation)
            if (worker->phase != POOL_WORKER_EMPTY && worker->phase != POOL_WORKER_RELEASED)
                return generation;
    }
    return NULL;
}

static uint64_t time_left(const struct pool *pool, uint64_t deadline)
{
    return deadline > pool->clock->mono_ms ? deadline - pool->clock->mono_ms : 0;
}

/* Returns the latest deadline of a generation's workers; 0: they have none. */
static uint64_t latest_deadline(const struct generation *generation)
{
    uint64_t latest = 0;

    for (unsigned i = 0; i < generation->worker_n; i++)
        if (generation->workers[i].deadline.deadline > latest)
            latest = generation->workers[i].deadline.deadline;
    return latest;
}

uint64_t pool_describe_wait(const struct pool *pool, char *text, size_t size)
{
    const struct generation *generation = pool_find_holder(pool);
    int64_t n = 0;

    assert(size > 0);
    if (pool->starting != NULL) {
        snprintf(text, size, "the workers of generation %u start", pool->starting->number);
        return time_left(pool, latest_deadline(pool->starting));
    }
    if (pool->probation.before != NULL && !pool->probation.goes_back) {
        snprintf(text, size, "generation %u serves, and has to go on without crashes for a moment",
            pool->serving->number);
        return time_left(pool, pool->probation.due.deadline);
    }
    if (generation != NULL) {
        snprintf(text, size, "draining workers of generation %u still hold listening sockets",
            generation->number);
        return time_left(pool, generation->release.deadline);
    }
    TAILQ_FOREACH (generation, &pool->generations, link)
        n++;
    generation = TAILQ_FIRST(&pool->generations);
    snprintf(text, size,
        "%" PRId64 " generations run (max_generations), and the oldest, which is closed, has not "
        "ended yet",
        n);
    return generation != NULL ? time_left(pool, latest_deadline(generation)) : 0;
}
