/* SPDX-License-Identifier: BSD-2-Clause */
/* Generations change by a transaction. Prepare: sockets are bound but do not listen, workers are
 * forked and set themselves up but accept nothing; all of it can be taken back without a trace.
 * Commit: the sockets listen and the new workers are told to accept. Serve: all of them do, and
 * the old generation drains. At every moment at most one generation starts, and one that serves
 * keeps its listeners. */
#include "pool/pool.h"

#include "process/listeners.h"
#include "process/logs.h"
#include "systemd/fdstore.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* How long the next reload waits for draining workers to release their listeners. */
#define RELEASE_MS 5000

/* Gives up the starting generation: its workers, who have accepted nothing, are ended. */
static void take_start_back(struct generation *generation)
{
    struct pool *pool = generation->pool;

    assert(generation == pool->starting && generation->phase == GENERATION_STARTING);
    pool->starting = NULL;
    pool_probation_end(pool);
    listeners_abandon(
        generation->cycle, pool->serving != NULL ? pool->serving->cycle : NULL, pool->adopted);
    generation_close(generation);
    if (generation->process_n == 0)
        pool_destroy_generation(generation);
}

/* Says why a start fails, and which configuration is in force. */
static void log_failure(const struct pool *pool, const char *why)
{
    log_write(pool->log, LEVEL_EMERG, 0, "%s, %s", why,
        pool->serving == NULL       ? "nothing is served"
        : pool->probation.goes_back ? "the previous configuration is not in force"
                                    : "the previous configuration stays in force");
}

void generation_withdraw(struct generation *generation, const char *why)
{
    const struct pool *pool = generation->pool;

    log_failure(pool, why);
    take_start_back(generation);
}

void generation_drain(struct generation *generation)
{
    struct timers *timers = generation->pool->timers;
    struct pool_worker *worker;

    if (generation->phase != GENERATION_DRAINING)
        pool_set_generation_phase(generation, GENERATION_DRAINING);
    timers_arm(timers, &generation->release, RELEASE_MS);
    GENERATION_FOREACH_WORKER (worker, generation) {
        timers_disarm(timers, &worker->respawn);
        if (worker->pid > 0)
            pool_worker_order(worker, POOL_ORDER_DRAIN);
    }
}

void generation_close(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct pool_worker *worker;

    if (generation->phase != GENERATION_CLOSING)
        pool_set_generation_phase(generation, GENERATION_CLOSING);
    GENERATION_FOREACH_WORKER (worker, generation) {
        timers_disarm(pool->timers, &worker->respawn);
        if (worker->pid > 0)
            pool_worker_order(worker, POOL_ORDER_CLOSE);
    }
}

/* Adds up what its workers have counted, no more than each can have. */
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

/* Closes a generation, and says so: to who has asked for the reload too, where that ends
 * sessions. */
static void close_generation(struct generation *generation, const char *why)
{
    uint64_t n = count_sessions(generation);

    log_write(generation->pool->log, n > 0 ? LEVEL_ALERT : LEVEL_NOTICE, 0,
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

/* Closes the oldest generations whose slots the next reload may need, but for the one that was
 * replaced last: its workers may have ended by then. */
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
        close_generation(generation, "the next reload has no room for its worker processes");
    }
}

static int64_t count_serving(const struct generation *generation)
{
    const struct pool_worker *worker;
    int64_t n = 0;

    GENERATION_FOREACH_SERVING (worker, generation)
        n += worker->phase != POOL_WORKER_EMPTY;
    return n;
}

/* Tells the oldest workers beyond max_draining_workers to end the sessions that are idle. */
static void trim_workers(struct pool *pool)
{
    int64_t most = pool->serving->cycle->sizing.draining;
    int64_t n = 0, trimmed = 0;
    struct generation *generation;
    struct pool_worker *worker;

    TAILQ_FOREACH (generation, &pool->generations, link)
        n += generation->phase == GENERATION_DRAINING ? count_serving(generation) : 0;
    if (most == 0 || n <= most)
        return;
    TAILQ_FOREACH (generation, &pool->generations, link) {
        if (generation->phase != GENERATION_DRAINING)
            continue;
        GENERATION_FOREACH_SERVING (worker, generation)
            if (worker->phase != POOL_WORKER_EMPTY && trimmed < n - most) {
                channel_end_send(&worker->channel, MESSAGE_TRIM);
                trimmed++;
            }
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

void generation_drain_replaced(struct pool *pool)
{
    struct generation *generation;

    if (pool->starting != NULL || pool->probation.goes_back || !generation_accepts(pool->serving))
        return;
    TAILQ_FOREACH (generation, &pool->generations, link)
        if (generation->phase == GENERATION_REPLACED)
            generation_drain(generation);
}

void generation_failed(struct pool *pool)
{
    if (pool->serving != NULL) {
        generation_bound(pool);
        generation_drain_replaced(pool);
    }
    pool->ops->failed(pool->host);
}

void generation_abort(struct generation *generation, const char *why)
{
    struct pool *pool = generation->pool;

    generation_withdraw(generation, why);
    generation_failed(pool);
}

/* A listener has failed after others have begun to listen, and these may have clients already: a
 * new socket of reuseport has taken them from one that is kept. So the new workers accept them,
 * and end. */
static void take_commit_back(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct pool_worker *worker;

    log_failure(pool, "a listener could not be opened");
    pool->starting = NULL;
    pool_probation_end(pool);
    listeners_restore(generation->cycle, pool->serving->cycle, pool->adopted, pool->log);
    /* a worker is told to end when it says that it accepts (messages.c) */
    pool_set_generation_phase(generation, GENERATION_DRAINING);
    timers_arm(pool->timers, &generation->release, RELEASE_MS);
    GENERATION_FOREACH_WORKER (worker, generation)
        pool_worker_order(worker, POOL_ORDER_ACCEPT);
    generation_failed(pool);
}

static void commit_generation(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct generation *old = pool->serving;
    struct cycle *in_force = old != NULL ? old->cycle : NULL;
    struct pool_worker *worker;

    assert(generation == pool->starting);
    if (listeners_commit(generation->cycle, in_force, pool->adopted, pool->log) == -1) {
        if (old != NULL)
            take_commit_back(generation);
        else
            generation_abort(generation, "a listener could not be opened");
        log_note_temporary(pool->log); /* if the lines before it are of what may pass */
        return;
    }
    pool_set_generation_phase(generation, GENERATION_COMMITTED);
    pool->ops->committed(pool->host);
    if (old != NULL) {
        listeners_retire(in_force, generation->cycle,
            &(struct listeners_sharing) { pool->ops->is_shared, pool->host }, pool->log);
        if (old->phase == GENERATION_SERVING) {
            pool_set_generation_phase(old, GENERATION_REPLACED);
            GENERATION_FOREACH_WORKER (worker, old)
                timers_disarm(pool->timers, &worker->respawn);
            if (!pool->probation.goes_back) { /* a generation that drained before stays so */
                pool->probation.before = old;
                timers_arm(pool->timers, &pool->probation.due, POOL_PROBATION_MS);
            }
        }
    }
    GENERATION_FOREACH_WORKER (worker, generation)
        pool_worker_order(worker, POOL_ORDER_ACCEPT);
}

void generation_serve(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct generation *old = pool->serving, *other;

    assert(generation == pool->starting);
    pool_set_generation_phase(generation, GENERATION_SERVING);
    pool->serving = generation;
    pool->starting = NULL;
    logs_put_in_force(&generation->cycle->core, pool->log, &pool->log_limit);
    if (old == NULL)
        log_write(pool->log, LEVEL_NOTICE, 0, "generation %u serves, worker processes: %u",
            generation->number, generation->serve_n);
    else
        log_write(pool->log, LEVEL_NOTICE, 0,
            "generation %u serves in place of generation %u, worker processes: %u",
            generation->number, old->number, generation->serve_n);
    if (old == NULL)
        pool_read_untouched(pool);
    else
        pool_restore_listeners(pool);
    fdstore_drop_unclaimed(pool->adopted, &generation->cycle->stream.listeners, pool->log);
    adopted_finish(pool->adopted, &generation->cycle->stream.listeners, pool->log);
    TAILQ_FOREACH (other, &pool->generations, link)
        if (other->phase == GENERATION_REPLACED ||
            (other == old && other->phase == GENERATION_DRAINING))
            generation_drain(other);
    if (old != NULL) {
        if (old->crashing)
            pool_backoff_end(old);
        if (old->process_n == 0 && old != pool->probation.before)
            pool_destroy_generation(old);
    }
    generation_bound(pool);
    pool->ops->serves(pool->host, old == NULL);
    if (pool->probation.goes_back || pool->probation.due.deadline == 0)
        pool_probation_end(pool);
}

void generation_advance(struct generation *generation)
{
    enum pool_worker_phase least = POOL_WORKER_RELEASED;
    const struct pool_worker *worker;

    assert(generation == generation->pool->starting);
    GENERATION_FOREACH_WORKER (worker, generation) {
        /* a helper has to be set up, and no client waits for more of it */
        if (worker->task != TASK_ASK || generation->phase == GENERATION_STARTING)
            least = worker->phase < least ? worker->phase : least;
    }
    if (generation->phase == GENERATION_STARTING && least >= POOL_WORKER_READY)
        commit_generation(generation);
    else if (generation->phase == GENERATION_COMMITTED && least >= POOL_WORKER_ACCEPTING)
        generation_serve(generation);
}

void pool_conclude_start(struct pool *pool)
{
    struct generation *starting = pool->starting;
    bool committed = starting != NULL && starting->phase == GENERATION_COMMITTED;
    bool fails = starting != NULL ? !committed : pool_probation_awaits_start(pool);

    if (committed)
        generation_serve(starting);
    else if (starting != NULL)
        take_start_back(starting);
    pool_probation_end(pool);
    if (fails)
        pool->ops->failed(pool->host);
}
