/* SPDX-License-Identifier: BSD-2-Clause */
/* Generations of workers: phases and ends. A generation drains or is closed; max_generations,
 * max_draining_workers and the number of slots bound ending generations. A generation without
 * processes is destroyed with its configuration, but never the serving generation, because of the
 * listeners in use. transaction.c begins new generations. */
#include "pool/generation.h"

#include "configuration/configuration.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "pool/keepers.h"
#include "pool/worker.h"
#include "process/role.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void generation_set_phase(struct generation *generation, enum generation_phase phase)
{
    static const unsigned legal[] = {
        [GENERATION_STARTING] =
            1u << GENERATION_COMMITTED | 1u << GENERATION_DRAINING | 1u << GENERATION_CLOSING,
        [GENERATION_COMMITTED] = 1u << GENERATION_SERVING,
        [GENERATION_SERVING] =
            1u << GENERATION_REPLACED | 1u << GENERATION_DRAINING | 1u << GENERATION_CLOSING,
        [GENERATION_REPLACED] = 1u << GENERATION_DRAINING | 1u << GENERATION_CLOSING,
        [GENERATION_DRAINING] = 1u << GENERATION_CLOSING,
        [GENERATION_CLOSING] = 0,
    };

    assert(role_is(ROLE_MASTER));
    assert((legal[generation->phase] >> phase & 1) != 0);
    generation->phase = phase;
    if (phase == GENERATION_DRAINING)
        event_log_note(generation->pool->log->event_log, "generation_drains", "generation %u",
            generation->number);
}

void pool_wake_up(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
}

void generation_drain(struct generation *generation)
{
    struct timers *timers = generation->pool->timers;
    struct pool_worker *worker;

    if (generation->phase != GENERATION_DRAINING)
        generation_set_phase(generation, GENERATION_DRAINING);
    timers_arm(timers, &generation->release, GENERATION_RELEASE_MS);
    GENERATION_FOREACH_WORKER (worker, generation) {
        timers_disarm(timers, &worker->respawn);
        if (worker->pid > 0)
            pool_worker_end(worker, true);
    }
}

void generation_close(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct pool_worker *worker;

    if (generation->phase != GENERATION_CLOSING)
        generation_set_phase(generation, GENERATION_CLOSING);
    GENERATION_FOREACH_WORKER (worker, generation) {
        timers_disarm(pool->timers, &worker->respawn);
        if (worker->pid > 0)
            pool_worker_end(worker, false);
    }
}

/* Adds up the sessions of workers, bounded by worker_connections per worker. */
static uint64_t count_sessions(const struct generation *generation)
{
    uint64_t most = (uint64_t)generation->cycle->events.worker_connections, sum = 0;
    struct shared *shared = generation->pool->shared;
    const struct pool_worker *worker;

    GENERATION_FOREACH_WORKER (worker, generation) {
        uint64_t n;

        if (worker->phase == POOL_WORKER_EMPTY)
            continue;
        n = atomic_load_explicit(
            &shared_slot(shared, worker->slot)->counters.n[COUNTER_ACTIVE], memory_order_relaxed);
        sum += n < most ? n : most;
    }
    return sum;
}

/* Closes a generation, with an alert where sessions end, so that clients of the reload learn. */
static void close_generation(struct generation *generation, const char *why)
{
    uint64_t n = count_sessions(generation);

    log_event(generation->pool->log, "generation_closed", n > 0 ? LEVEL_ALERT : LEVEL_NOTICE, 0,
        "%s: generation %u is closed, %" PRIu64 " %s", why, generation->number, n,
        n == 1 ? "session ends" : "sessions end");
    generation_close(generation);
}

/* Closes the oldest generations beyond max_generations. */
static void bound_generations(struct pool *pool)
{
    int64_t most = pool->serving->cycle->core.max_generations, n = 0;
    struct generation *generation;
    char why[64];

    TAILQ_FOREACH (generation, &pool->generations, link)
        n += generation->phase != GENERATION_CLOSING;
    snprintf(why, sizeof(why), "more than %" PRId64 " generations (max_generations)", most);
    TAILQ_FOREACH (generation, &pool->generations, link) {
        if (most == 0 || n <= most)
            return;
        if (generation->phase == GENERATION_CLOSING || generation == pool->serving)
            continue;
        close_generation(generation, why);
        n--;
    }
}

/* Closes the oldest generations for slots of the next reload, except the latest replaced one,
 * whose workers may have ended by then. */
static void bound_slots(struct pool *pool)
{
    unsigned n = pool->serving->worker_n;
    struct generation *generation;

    TAILQ_FOREACH (generation, &pool->generations, link)
        if (generation->phase != GENERATION_CLOSING)
            n += generation == pool->serving ? generation->worker_n : generation->process_n;
    TAILQ_FOREACH (generation, &pool->generations, link) {
        const struct generation *next = TAILQ_NEXT(generation, link);

        if (n <= SLOT_MAX || next == NULL || next == pool->serving)
            return;
        if (generation->phase == GENERATION_CLOSING || generation == pool->serving)
            continue;
        n -= generation->process_n;
        close_generation(generation, "the next reload has no room for worker processes");
    }
}

static bool is_draining_worker(const struct pool_worker *worker)
{
    return worker->generation->phase == GENERATION_DRAINING && worker->phase != POOL_WORKER_EMPTY;
}

/* Tells the oldest workers beyond max_draining_workers to end idle sessions. */
static void trim_workers(struct pool *pool)
{
    int64_t most = pool->serving->cycle->sizing.draining, n = 0, trimmed = 0;
    struct pool_worker *worker;

    POOL_FOREACH_SERVING (worker, pool)
        n += is_draining_worker(worker);
    if (most == 0 || n <= most)
        return;
    POOL_FOREACH_SERVING (worker, pool)
        if (is_draining_worker(worker) && trimmed < n - most) {
            channel_end_send(&worker->channel, MESSAGE_TRIM);
            trimmed++;
        }
    log_write(pool->log, LEVEL_NOTICE, 0,
        "%" PRId64 " old worker processes are more than max_draining_workers (%" PRId64
        "): idle sessions of %" PRId64 " end",
        n, most, trimmed);
}

void generation_bound(struct pool *pool)
{
    assert(pool->serving != NULL);
    bound_generations(pool);
    bound_slots(pool);
    trim_workers(pool);
}

bool generation_accepts(const struct generation *generation)
{
    const struct pool_worker *worker;

    GENERATION_FOREACH_SERVING (worker, generation)
        if (worker->phase == POOL_WORKER_ACCEPTING)
            return true;
    return false;
}

void generation_destroy(struct generation *generation)
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
    pool_keepers_unwatch(generation);
    descriptor_close(generation->pairs);
    TAILQ_REMOVE(&pool->generations, generation, link);
    event_log_note(pool->log->event_log, "generation_ended", "generation %u", generation->number);
    configuration_discard(&generation->cycle, pool->log);
    /* at once: the next open may reuse a number that a library has just closed */
    TAILQ_FOREACH (other, &pool->generations, link)
        descriptors_drop_closed(&other->opened);
    descriptors_done(&generation->opened);
    bells_close(&generation->bells);
    free(generation);
    /* freed pieces lie between others, and years of reloads are to leave no trace */
    os_memory_trim();
}

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

uint64_t pool_ms_until(const struct pool *pool, uint64_t deadline)
{
    return deadline > pool->clock->mono_ms ? deadline - pool->clock->mono_ms : 0;
}

/* Returns the latest deadline of a generation's workers; 0: none. */
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
        return pool_ms_until(pool, latest_deadline(pool->starting));
    }
    if (pool->probation.before != NULL && !pool->probation.goes_back) {
        snprintf(text, size, "generation %u serves, and has to go on without crashes for a moment",
            pool->serving->number);
        return pool_ms_until(pool, pool->probation.due.deadline);
    }
    if (generation != NULL) {
        snprintf(text, size, "draining workers of generation %u still hold listening sockets",
            generation->number);
        return pool_ms_until(pool, generation->release.deadline);
    }
    TAILQ_FOREACH (generation, &pool->generations, link)
        n++;
    generation = TAILQ_FIRST(&pool->generations);
    snprintf(text, size,
        "%" PRId64 " generations run (max_generations), and the oldest, which is closed, has not "
        "ended yet",
        n);
    return generation != NULL ? pool_ms_until(pool, latest_deadline(generation)) : 0;
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
