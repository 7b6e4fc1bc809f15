/* SPDX-License-Identifier: BSD-2-Clause */
/* The probation of a generation that has taken the place of another: for a second after the commit
 * the generation before is kept with its configuration, though its workers end. What follows when
 * the new workers crash meanwhile is fall_back.c's affair. At most one generation is kept. */
#include "pool/pool.h"

#include "process/role.h"

#include <assert.h>

void pool_probation_expired(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, probation.due);

    (void)loop;
    if (pool->starting == NULL)
        pool_probation_end(pool);
}

void pool_probation_end(struct pool *pool)
{
    struct generation *before = pool->probation.before;
    bool passed = before != NULL && !pool->probation.goes_back;

    assert(role_is(ROLE_MASTER));
    if (before == NULL)
        return;
    timers_disarm(pool->timers, &pool->probation.due);
    pool->probation.before = NULL;
    pool->probation.goes_back = false;
    if (before->process_n == 0 && before != pool->serving)
        pool_destroy_generation(before);
    if (passed)
        pool->ops->proved(pool->host);
}

bool pool_probation_awaits_start(const struct pool *pool)
{
    return pool->probation.goes_back && pool->starting == NULL;
}

bool pool_probation_is_calm(const struct pool *pool)
{
    const struct generation *serving = pool->serving;
    const struct pool_worker *worker;

    assert(serving != NULL);
    GENERATION_FOREACH_WORKER (worker, serving)
        if (worker->crashed)
            return false;
    return true;
}
