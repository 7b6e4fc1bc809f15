/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of the whole pool, which the master of a debug build runs after each wake-up. Only the
 * master's own memory is looked at: nothing here depends on what a worker has written or said. */
#include "pool/pool.h"

#include <assert.h>

/* A record has a pid and a channel exactly while it has a process, and a deadline at most then. */
static void check_worker(const struct pool_worker *worker, const struct generation *generation)
{
    const struct pool_worker *next = worker + 1;
    bool last = worker->index + 1 == generation->worker_n;

    assert(worker->generation == generation);
    assert(worker->index == (unsigned)(worker - generation->workers));
    assert(worker->deadline.expired != NULL && worker->respawn.expired != NULL);
    if (worker->phase == POOL_WORKER_EMPTY) {
        assert(worker->pid == 0);
        assert(worker->channel.fd == -1 && worker->inbox == -1 && worker->handle == -1);
        assert(worker->output.fd == -1);
        assert(worker->deadline.deadline == 0);
        assert(worker->killed == POOL_KILL_NONE);
        assert(!worker->known && !worker->accept_asked);
        assert(worker->channel.unsent == 0 && worker->channel.retry.deadline == 0);
    } else {
        assert(worker->pid > 1);
        assert(worker->channel.fd > 2);
        assert(worker->inbox != worker->channel.fd);
        assert(worker->inbox == -1 || worker->known);
        assert(worker->outbox.wanted_n <= POOL_WANTED_MAX);
        assert(worker->outbox.others_left <= generation->pool->others_n);
        assert(
            worker->asks_others || (!worker->outbox.others_wanted && !worker->outbox.others_asked));
        assert(worker->outbox.log_n <= core_target_n(&generation->cycle->core));
        assert(worker->fills > 0);
        assert(last || next->pid != worker->pid);
        assert(last || next->channel.fd != worker->channel.fd);
        assert(worker->respawn.deadline == 0);
    }
    if (worker->respawn.deadline != 0)
        assert(generation->phase < GENERATION_REPLACED && !generation->pool->ending);
    if (worker->drains && generation->cycle->core.worker_shutdown_timeout > 0)
        assert(worker->deadline.deadline != 0 || worker->killed != POOL_KILL_NONE);
    if (generation->phase == GENERATION_CLOSING && worker->pid > 0)
        assert(worker->deadline.deadline != 0 || worker->killed != POOL_KILL_NONE);
    assert((worker->deadline.deadline != 0) == (worker->due != POOL_KILL_NONE));
}

/* A generation is kept while another may have to give way to it, and no longer. */
static void check_probation(const struct pool *pool)
{
    const struct pool_probation *probation = &pool->probation;

    assert(probation->before != NULL || !probation->goes_back);
    if (probation->before == NULL || probation->goes_back)
        assert(probation->due.deadline == 0);
    if (probation->before != NULL) {
        assert(probation->before != pool->starting && pool->serving != NULL);
        /* only what holds addresses is waited for */
        assert(!pool_probation_awaits_start(pool) || pool_find_holder(pool) != NULL);
        assert(pool->starting != NULL || probation->goes_back || probation->due.deadline != 0);
    }
}

void pool_check(const struct pool *pool)
{
    const struct generation *generation;
    const struct pool_worker *worker;
    unsigned before = 0;
    bool starting = false, serving = false, kept = pool->probation.before == NULL;

    assert(pool->ops != NULL && pool->log != NULL);
    assert(!pool->ending || pool->starting == NULL);
    assert(pool->others_n <= SLOT_MAX && pool->asks_n <= POOL_ASKS_MAX);
    assert(pool->others_met || (pool->others_n == 0 && pool->asks_n == 0));
    TAILQ_FOREACH (generation, &pool->generations, link) {
        bool starts = generation == pool->starting, serves = generation == pool->serving;
        unsigned n = 0;

        assert(generation->pool == pool);
        assert(generation->number > before && generation->number <= pool->generation_n);
        before = generation->number;
        assert(generation->cycle != NULL && generation->worker_n >= 1);
        assert(generation->serve_n == (unsigned)generation->cycle->core.worker_processes);
        assert(generation->worker_n - generation->serve_n <= 1);
        GENERATION_FOREACH_WORKER (worker, generation) {
            check_worker(worker, generation);
            n += worker->phase != POOL_WORKER_EMPTY;
        }
        assert(generation->process_n == n);
        assert(starts == (generation->phase <= GENERATION_COMMITTED));
        assert(!starts || !serves);
        if (generation->phase == GENERATION_SERVING)
            assert(serves);
        if (generation->phase == GENERATION_REPLACED && !serves && pool->starting == NULL)
            assert(pool->probation.goes_back || !generation_accepts(pool->serving));
        if (generation->phase == GENERATION_REPLACED && serves) {
            assert(pool->starting != NULL);
            assert(pool->starting->phase == GENERATION_COMMITTED);
        }
        kept = kept || generation == pool->probation.before;
        /* destroyed otherwise */
        assert(n > 0 || serves || starts || generation == pool->probation.before);
        starting = starting || starts;
        serving = serving || serves;
    }
    assert(starting == (pool->starting != NULL)); /* found in the list */
    assert(serving == (pool->serving != NULL));
    check_probation(pool);
    assert(kept);
}
