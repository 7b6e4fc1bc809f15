/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool as a whole: what its owner asks about it and has it do. Each generation's own steps
 * are in generation.c. A generation that ends is destroyed when its last worker has exited,
 * never before. */
#include "pool/pool.h"

#include "process/listeners.h"
#include "process/role.h"

#include <assert.h>

/* How long the next start waits for workers that are to release their listeners. */
#define RELEASE_MS 2000

/* Wakes the master, which looks for what is due after each wake-up. */
static void wake_up(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
}

static void mend_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    pool_mend_listeners(container_of(timer, struct pool, mend));
}

void pool_init(struct pool *pool, const struct pool_options *options)
{
    assert(options->ops != NULL && options->log != NULL);
    assert(options->clock != NULL && options->timers != NULL && options->shared != NULL);
    *pool = (struct pool) {
        .ops = options->ops,
        .host = options->host,
        .log = options->log,
        .clock = options->clock,
        .timers = options->timers,
        .shared = options->shared,
        .list = options->list,
        .adopted = options->adopted,
        .adopted_zones = options->adopted_zones,
        .log_due = { .expired = wake_up },
        .log_repair = { .expired = wake_up },
        .probation = { .due = { .expired = pool_probation_expired } },
        .mend = { .expired = mend_expired },
        .untouched = { .restores = true },
        .restore = { .expired = pool_restore_expired },
    };
    TAILQ_INIT(&pool->generations);
}

void pool_done(struct pool *pool)
{
    struct generation *generation;

    assert(!pool_has_workers(pool));
    pool->serving = pool->starting = pool->probation.before = NULL;
    while ((generation = TAILQ_FIRST(&pool->generations)) != NULL)
        pool_destroy_generation(generation);
    timers_disarm(pool->timers, &pool->log_due);
    timers_disarm(pool->timers, &pool->log_repair);
    timers_disarm(pool->timers, &pool->orphans);
    timers_disarm(pool->timers, &pool->mend);
    timers_disarm(pool->timers, &pool->restore);
    timers_disarm(pool->timers, &pool->rescan.due);
    timers_disarm(pool->timers, &pool->probation.due);
}

bool pool_has_workers(const struct pool *pool)
{
    const struct generation *generation;

    TAILQ_FOREACH (generation, &pool->generations, link)
        if (generation->process_n > 0)
            return true;
    return false;
}

unsigned pool_count_workers(const struct pool *pool, bool draining)
{
    const struct generation *generation;
    unsigned n = 0;

    TAILQ_FOREACH (generation, &pool->generations, link)
        if (generation != pool->starting && (generation->phase >= GENERATION_REPLACED) == draining)
            n += generation->process_n;
    return n;
}

bool pool_may_start(const struct pool *pool)
{
    int64_t most = pool->serving == NULL ? 0 : pool->serving->cycle->core.max_generations, n = 0;
    const struct generation *generation;

    TAILQ_FOREACH (generation, &pool->generations, link)
        n++;
    return pool->starting == NULL && !pool->ending && pool_find_holder(pool) == NULL &&
           (most == 0 || n <= most);
}

void pool_drain(struct pool *pool)
{
    struct generation *serving = pool->serving;

    assert(role_is(ROLE_MASTER));
    if (serving != NULL && serving->phase != GENERATION_CLOSING)
        generation_drain(serving);
}

void pool_end(struct pool *pool, bool gracefully)
{
    struct generation *generation;
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    assert(pool->starting == NULL);
    pool->ending = true;
    TAILQ_FOREACH (generation, &pool->generations, link) {
        if (generation == pool->serving || timer_is_set(&generation->release))
            timers_arm(pool->timers, &generation->release, RELEASE_MS);
        if (!gracefully) {
            generation_close(generation);
            continue;
        }
        GENERATION_FOREACH_WORKER (worker, generation) {
            timers_disarm(pool->timers, &worker->respawn);
            if (worker->pid > 0)
                pool_worker_order(worker, POOL_ORDER_DRAIN);
        }
    }
}

void pool_set_ending(struct pool *pool, bool ending)
{
    assert(pool->starting == NULL && pool->serving != NULL);
    pool->ending = ending;
    if (!ending && pool->serving->phase == GENERATION_SERVING) /* workers drain, all of them */
        pool_set_generation_phase(pool->serving, GENERATION_DRAINING);
}

void pool_close_listeners(struct pool *pool)
{
    if (pool->serving != NULL)
        listeners_close(pool->serving->cycle,
            &(struct listeners_sharing) { pool->ops->is_shared, pool->host }, pool->log);
}
