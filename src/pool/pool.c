/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool as a whole: questions and orders of its owner, the log files and sockets of all
 * generations, and checks of the structure, by the master's own memory alone. The master opens and
 * repairs logs on behalf of workers too; no line is ever waited for. */
#include "pool/pool.h"

#include "configuration/listeners.h"
#include "os/descriptor.h"
#include "os/log_file.h"
#include "pool/generation.h"
#include "pool/listeners.h"
#include "pool/log_level.h"
#include "pool/outbox.h"
#include "pool/start.h"
#include "pool/transaction.h"
#include "pool/worker.h"
#include "process/role.h"

#include <assert.h>

/* How long the next start waits for the release of listeners. */
#define RELEASE_MS 2000

void pool_init(struct pool *pool, const struct pool *from)
{
    assert(from->ops != NULL && from->log != NULL);
    assert(from->clock != NULL && from->timers != NULL && from->shared != NULL);
    *pool = *from;
    pool->log_due.expired = pool->log_repair.expired = pool->log_flush.expired = pool_wake_up;
    pool_log_level_init(pool);
    pool->untouched.restores = true;
    TAILQ_INIT(&pool->generations);
}

void pool_done(struct pool *pool)
{
    struct generation *generation;

    assert(!pool_has_workers(pool));
    pool->serving = pool->starting = pool->probation.before = NULL;
    while ((generation = TAILQ_FIRST(&pool->generations)) != NULL)
        generation_destroy(generation);
    descriptor_close(pool->tickets);
    pool->tickets = -1;
    timers_disarm(pool->timers, &pool->log_due);
    timers_disarm(pool->timers, &pool->log_repair);
    timers_disarm(pool->timers, &pool->log_flush);
    pool_log_level_done(pool);
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
            for (unsigned i = 0; i < generation->serve_n; i++)
                n += generation->workers[i].phase != POOL_WORKER_EMPTY;
    return n;
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
                pool_worker_end(worker, true);
        }
    }
}

void pool_set_ending(struct pool *pool, bool ending)
{
    assert(pool->starting == NULL && pool->serving != NULL);
    pool->ending = ending;
    if (!ending && pool->serving->phase == GENERATION_SERVING) /* workers drain, all of them */
        generation_set_phase(pool->serving, GENERATION_DRAINING);
}

void pool_close_listeners(struct pool *pool)
{
    if (pool->serving != NULL)
        listeners_close(pool->serving->cycle,
            &(struct listeners_sharing) { pool->ops->is_shared, pool->host }, pool->log);
}

void pool_reopen_logs(struct pool *pool)
{
    struct generation *generation;
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    TAILQ_FOREACH (generation, &pool->generations, link) {
        logs_reopen(&generation->cycle->core, pool->log);
        GENERATION_FOREACH_WORKER (worker, generation)
            if (worker->pid > 0)
                pool_outbox_logs(worker);
    }
}

/* Connects broken logs again, once in LOGS_REPAIR_MS for any number of reports. */
static void repair_broken_logs(struct pool *pool)
{
    struct generation *generation;

    if (timer_is_set(&pool->log_repair))
        return;
    pool->log->broken = false;
    TAILQ_FOREACH (generation, &pool->generations, link)
        logs_repair(&generation->cycle->core, pool->log);
    timers_arm(pool->timers, &pool->log_repair, LOGS_REPAIR_MS);
}

/* Sends lines that wait for connections, and is called again while some wait. */
static void send_waiting_lines(struct pool *pool)
{
    struct generation *generation;
    bool waiting = false;

    if (timer_is_set(&pool->log_flush))
        return;
    TAILQ_FOREACH (generation, &pool->generations, link) {
        logs_flush(&generation->cycle->core, pool->log);
        waiting = waiting || pool->log->waiting;
    }
    pool->log->waiting = waiting;
    if (waiting)
        timers_arm(pool->timers, &pool->log_flush, LOGS_FLUSH_MS);
}

void pool_advance(struct pool *pool)
{
    if (pool->probation.goes_back)
        pool_fall_back_advance(pool);
    if (pool->log->waiting)
        send_waiting_lines(pool);
    if (!pool->log->broken && pool->log_limit.report_ms == 0)
        return;
    if (pool->log_limit.report_ms != 0)
        log_report_suppressed(pool->log, false);
    if (pool->log->broken)
        repair_broken_logs(pool);
    if (pool->log_limit.report_ms == 0)
        timers_disarm(pool->timers, &pool->log_due);
    else
        timers_arm_at(pool->timers, &pool->log_due, pool->log_limit.report_ms);
}

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
        assert(worker->outbox.link == -1 && worker->link_n == 0);
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
        assert(worker->task == TASK_KEEP || !worker->outbox.file_wanted);
        assert(worker->task != TASK_ASK || worker->link_n == 0);
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

/* Asserts that a generation is kept on probation only. */
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
    assert(pool->log->override == pool->log_level.override);
    assert(timer_is_set(&pool->log_level.end) == (pool->log_level.until_ms != 0));
    assert(pool->others_met || (pool->others_n == 0 && pool->asks_n == 0));
    TAILQ_FOREACH (generation, &pool->generations, link) {
        bool starts = generation == pool->starting, serves = generation == pool->serving;
        unsigned n = 0;

        assert(generation->pool == pool);
        assert(generation->number > before && generation->number <= pool->generation_n);
        before = generation->number;
        assert(generation->cycle != NULL && generation->worker_n >= 1);
        assert(generation->serve_n == (unsigned)generation->cycle->core.worker_processes);
        assert(generation->keeper_n == 0 || generation->keeper_n == generation->serve_n);
        assert(generation->worker_n - generation->serve_n - generation->keeper_n <= 1);
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
