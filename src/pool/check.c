/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of the whole pool, which the master runs after each wake-up. Only the master's own memory is
 * looked at: nothing here depends on what a worker has written or said. */
#include "pool/pool.h"

#include <assert.h>

/* A pid, a channel and a deadline are there exactly while there is a process. */
static void check_worker(const struct pool_worker *worker, const struct generation *generation)
{
    const struct pool *pool = generation->pool;
    const struct pool_worker *other = pool_next_worker(pool, worker);

    assert(worker->generation == generation);
    assert(worker->index == (unsigned)(worker - generation->workers));
    assert(worker->deadline.expired != NULL && worker->respawn.expired != NULL);
    if (worker->phase == POOL_WORKER_EMPTY) {
        assert(worker->pid == 0);
        assert(worker->channel == -1 && worker->inbox == -1);
        assert(!timer_is_set(&worker->deadline));
        assert(!worker->watch.stuck);
    } else {
        assert(worker->pid > 1);
        assert(worker->channel > 2);
        assert(worker->inbox != worker->channel);
        assert(worker->fills > 0);
        assert(other == NULL || other->pid != worker->pid);
        assert(other == NULL || other->channel != worker->channel);
        assert(!timer_is_set(&worker->respawn));
    }
    if (timer_is_set(&worker->respawn))
        assert(!pool_generation_is_ending(generation) && !pool->ending);
    if (generation->phase == GENERATION_CLOSING && worker->pid > 0)
        assert(timer_is_set(&worker->deadline) || worker->deadline_passed);
}

static void check_generation(const struct generation *generation, const struct pool *pool)
{
    const struct pool_worker *worker;
    unsigned n = 0;

    assert(generation->pool == pool);
    assert(generation->cycle != NULL);
    assert(generation->number >= 1 && generation->number <= pool->generation_n);
    assert(generation->worker_n >= 1);
    assert(generation->worker_n == (unsigned)generation->cycle->core.worker_processes);
    GENERATION_FOREACH_WORKER (worker, generation) {
        check_worker(worker, generation);
        n += worker->phase != POOL_WORKER_EMPTY;
    }
    assert(generation->process_n == n);
    switch (generation->phase) {
    case GENERATION_STARTING:
    case GENERATION_COMMITTED:
        assert(generation == pool->starting);
        break;
    case GENERATION_SERVING:
        assert(generation == pool->serving);
        break;
    case GENERATION_REPLACED:
        assert(generation == pool->serving);
        assert(pool->starting != NULL && pool->starting->phase == GENERATION_COMMITTED);
        break;
    case GENERATION_DRAINING:
    case GENERATION_CLOSING:
        assert(generation != pool->starting);
        assert(n > 0 || generation == pool->serving); /* an empty one is swept */
        break;
    }
}

void pool_check(const struct pool *pool)
{
    const struct generation *generation;
    unsigned before = 0;
    bool starting = false, serving = false;

    assert(pool->ops != NULL && pool->log != NULL);
    assert(STAILQ_EMPTY(&pool->requests));
    assert(pool->serving == NULL || pool->serving != pool->starting);
    assert(!pool->ending || pool->starting == NULL);
    TAILQ_FOREACH (generation, &pool->generations, link) {
        assert(generation->number > before);
        before = generation->number;
        starting = starting || generation == pool->starting;
        serving = serving || generation == pool->serving;
        check_generation(generation, pool);
    }
    assert(starting == (pool->starting != NULL)); /* found in the list */
    assert(serving == (pool->serving != NULL));
}
