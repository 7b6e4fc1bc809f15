/* SPDX-License-Identifier: BSD-2-Clause */
/* Generations change by a transaction. Prepare (start.c): sockets are bound but do not listen,
 * workers set themselves up but accept nothing; all of it can be taken back without a trace.
 * Commit: the sockets listen, and the new workers are told to accept. Serve: all of them do, and
 * the old generation drains. Probation: for a second the generation before is kept, in case the
 * new workers crash. At most one generation starts, at most one is kept, and one that serves keeps
 * listeners. */
#include "pool/transaction.h"

#include "base/compiler.h"
#include "configuration/listeners.h"
#include "pool/generation.h"
#include "pool/listeners.h"
#include "pool/worker.h"
#include "process/role.h"
#include "systemd/fdstore.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

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
        generation_destroy(before);
    if (passed)
        pool->ops->proved(pool->host);
}

static void probation_expired(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, probation.due);

    (void)loop;
    if (pool->starting == NULL)
        pool_probation_end(pool);
}

bool pool_probation_awaits_start(const struct pool *pool)
{
    return pool->probation.goes_back && pool->starting == NULL;
}

bool pool_probation_must_bind(const struct pool *pool)
{
    return listeners_must_bind(pool->probation.before->cycle, pool->serving->cycle, pool->adopted);
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

/* Back-off: all workers of the serving generation wait for their next fork after repeated
 * crashes. An alert begins the episode, and a notice ends it once a worker has accepted clients
 * for a while. */

/* A worker that has run so long has not died at once. */
#define CALM_MS 1000

static void end_backoff(struct generation *generation)
{
    assert(generation->crashing);
    generation->crashing = false;
    timers_disarm(generation->pool->timers, &generation->calm);
    log_event(generation->pool->log, "workers_serve_again", LEVEL_NOTICE, 0,
        "worker processes serve again");
}

/* Ends the episode when a worker has come to serve; else waits for the next that may. */
static void calm_expired(struct loop *loop, struct timer *timer)
{
    struct generation *generation = container_of(timer, struct generation, calm);
    uint64_t now = generation->pool->clock->mono_ms;
    const struct pool_worker *worker;

    (void)loop;
    GENERATION_FOREACH_SERVING (worker, generation)
        if (worker->phase == POOL_WORKER_ACCEPTING && now - worker->started_ms >= CALM_MS) {
            end_backoff(generation);
            return;
        }
    if (generation->process_n > 0)
        timers_arm(generation->pool->timers, &generation->calm, CALM_MS);
}

void pool_backoff_watch(struct generation *generation)
{
    assert(generation->crashing);
    generation->calm.expired = calm_expired;
    if (!timer_is_set(&generation->calm))
        timers_arm(generation->pool->timers, &generation->calm, CALM_MS);
}

void pool_backoff_note(struct generation *generation)
{
    struct pool *pool = generation->pool;
    uint64_t next = UINT64_MAX;
    const struct pool_worker *worker;
    int status = generation->last_death;
    bool again = false;
    char cause[96];

    if (generation->crashing || generation != pool->serving || pool->probation.before != NULL)
        return;
    GENERATION_FOREACH_SERVING (worker, generation) {
        if (worker->phase != POOL_WORKER_EMPTY || worker->failures == 0)
            return;
        again = again || worker->failures > 1; /* a first crash delays little */
        if (worker->respawn.deadline < next)
            next = worker->respawn.deadline;
    }
    if (!again)
        return;
    generation->crashing = true;
    if (WIFSIGNALED(status))
        snprintf(cause, sizeof(cause), "on signal %d (%s)", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    else
        snprintf(cause, sizeof(cause), "with code %d", WEXITSTATUS(status));
    log_event(pool->log, "workers_crash", LEVEL_ALERT, 0,
        "no worker process serves: all %u of generation %u crash as they start, the last process "
        "exited %s, the next starts in %" PRIu64 " ms",
        generation->serve_n, generation->number, cause,
        next > pool->clock->mono_ms ? next - pool->clock->mono_ms : 0);
}

/* Gives up the starting generation: the workers have accepted nothing. */
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
        generation_destroy(generation);
}

/* Logs the reason of a failed start, and the configuration in force. */
static void log_start_failure(const struct pool *pool, const char *why)
{
    log_write(pool->log, LEVEL_EMERG, 0, "%s, %s", why,
        pool->serving == NULL       ? "nothing is served"
        : pool->probation.goes_back ? "the previous configuration is not in force"
                                    : "the previous configuration stays in force");
}

void transaction_withdraw(struct generation *generation, const char *why)
{
    log_start_failure(generation->pool, why);
    take_start_back(generation);
}

void transaction_drain_replaced(struct pool *pool)
{
    struct generation *generation;

    if (pool->starting != NULL || pool->probation.goes_back)
        return;
    TAILQ_FOREACH (generation, &pool->generations, link)
        if (generation->phase == GENERATION_REPLACED && generation_accepts(pool->serving))
            generation_drain(generation);
}

void transaction_failed(struct pool *pool)
{
    if (pool->serving != NULL) {
        generation_bound(pool);
        transaction_drain_replaced(pool);
    }
    pool->ops->failed(pool->host);
}

void transaction_abort(struct generation *generation, const char *why)
{
    struct pool *pool = generation->pool;

    transaction_withdraw(generation, why);
    transaction_failed(pool);
}

/* Takes a commit back: a listener has failed after earlier listeners began to listen, and a new
 * reuseport socket may have clients already. The new workers accept the clients, and end. */
static void take_commit_back(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct pool_worker *worker;

    log_start_failure(pool, "a listener could not be opened");
    pool->starting = NULL;
    pool_probation_end(pool);
    listeners_restore(generation->cycle, pool->serving->cycle, pool->adopted, pool->log);
    /* MESSAGE_ACCEPTING is answered by the order to drain (messages.c) */
    generation_set_phase(generation, GENERATION_DRAINING);
    timers_arm(pool->timers, &generation->release, GENERATION_RELEASE_MS);
    GENERATION_FOREACH_WORKER (worker, generation)
        pool_worker_accept(worker);
    transaction_failed(pool);
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
            transaction_abort(generation, "a listener could not be opened");
        log_note_temporary(pool->log); /* earlier lines may be temporary failures */
        return;
    }
    generation_set_phase(generation, GENERATION_COMMITTED);
    pool->ops->committed(pool->host);
    if (old != NULL) {
        listeners_retire(in_force, generation->cycle,
            &(struct listeners_sharing) { pool->ops->is_shared, pool->host }, pool->log);
        if (old->phase == GENERATION_SERVING) {
            generation_set_phase(old, GENERATION_REPLACED);
            GENERATION_FOREACH_WORKER (worker, old)
                timers_disarm(pool->timers, &worker->respawn);
            if (!pool->probation.goes_back) { /* a generation that drained before stays so */
                pool->probation.before = old;
                pool->probation.due.expired = probation_expired;
                timers_arm(pool->timers, &pool->probation.due, POOL_PROBATION_MS);
            }
        }
    }
    GENERATION_FOREACH_WORKER (worker, generation)
        pool_worker_accept(worker);
}

void transaction_serve(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct generation *old = pool->serving, *other;

    assert(generation == pool->starting);
    generation_set_phase(generation, GENERATION_SERVING);
    pool->serving = generation;
    pool->starting = NULL;
    logs_put_in_force(&generation->cycle->core, pool->log, &pool->log_limit);
    if (old == NULL)
        log_event(pool->log, "generation_serves", LEVEL_NOTICE, 0,
            "generation %u serves, worker processes: %u", generation->number, generation->serve_n);
    else
        log_event(pool->log, "generation_serves", LEVEL_NOTICE, 0,
            "generation %u serves in place of generation %u, worker processes: %u",
            generation->number, old->number, generation->serve_n);
    if (old == NULL)
        pool_read_untouched(pool);
    else
        pool_restore_listeners(pool);
    if (pool->adopted != NULL && !pool->adopted->finished) {
        fdstore_drop_unclaimed(pool->adopted, &generation->cycle->stream.listeners, pool->log);
        adopted_finish(pool->adopted, &generation->cycle->stream.listeners, pool->log);
    }
    TAILQ_FOREACH (other, &pool->generations, link)
        if (other->phase == GENERATION_REPLACED ||
            (other == old && other->phase == GENERATION_DRAINING))
            generation_drain(other);
    if (old != NULL) {
        if (old->crashing)
            end_backoff(old);
        if (old->process_n == 0 && old != pool->probation.before)
            generation_destroy(old);
    }
    generation_bound(pool);
    pool->ops->serves(pool->host, old == NULL);
    if (pool->probation.goes_back || pool->probation.due.deadline == 0)
        pool_probation_end(pool);
}

void transaction_advance(struct generation *generation)
{
    enum pool_worker_phase least = POOL_WORKER_RELEASED;
    const struct pool_worker *worker;

    assert(generation == generation->pool->starting);
    GENERATION_FOREACH_WORKER (worker, generation) {
        /* a helper has to be set up, and no client waits for more of it */
        if (worker->task == TASK_SERVE || generation->phase == GENERATION_STARTING)
            least = worker->phase < least ? worker->phase : least;
    }
    if (generation->phase == GENERATION_STARTING && least >= POOL_WORKER_READY)
        commit_generation(generation);
    else if (generation->phase == GENERATION_COMMITTED && least >= POOL_WORKER_ACCEPTING)
        transaction_serve(generation);
}

void transaction_conclude(struct pool *pool)
{
    struct generation *starting = pool->starting;
    bool committed = starting != NULL && starting->phase == GENERATION_COMMITTED;
    bool fails = starting != NULL ? !committed : pool_probation_awaits_start(pool);

    if (committed)
        transaction_serve(starting);
    else if (starting != NULL)
        take_start_back(starting);
    pool_probation_end(pool);
    if (fails)
        pool->ops->failed(pool->host);
}
