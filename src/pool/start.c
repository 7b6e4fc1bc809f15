/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a generation: listeners, zones, record, workers; and the expiry of workers'
 * deadlines: before the commit a late worker ends the start, afterwards it is killed. A former
 * configuration starts again as a new generation, in the same transaction, because draining
 * workers cannot serve again. */
#include "pool/start.h"

#include "base/compiler.h"
#include "pool/generation.h"
#include "pool/listeners.h"
#include "pool/spawn.h"
#include "pool/transaction.h"
#include "pool/worker.h"
#include "process/configuration.h"
#include "process/heritage.h"
#include "process/listeners.h"
#include "process/role.h"
#include "process/signals.h"
#include "sandbox/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Interval between attempts to fork. */
#define FORK_AGAIN_MS 1000

static void worker_deadline_expired(struct loop *loop, struct timer *timer)
{
    struct pool_worker *worker = container_of(timer, struct pool_worker, deadline);
    struct generation *generation = worker->generation;
    enum pool_kill due = worker->due;
    char late[96];

    (void)loop;
    assert(worker->pid > 1 && due != POOL_KILL_NONE);
    worker->due = POOL_KILL_NONE;
    snprintf(late, sizeof(late), "%s %d was not ready within worker_start_timeout (%" PRId64 " ms)",
        pool_worker_title(worker), (int)worker->pid, generation->cycle->core.worker_start_timeout);
    if (generation->phase == GENERATION_STARTING && due == POOL_KILL_START_LATE) {
        transaction_abort(generation, late);
        return;
    }
    if (due == POOL_KILL_START_LATE)
        log_quota_write(&worker->lines, LEVEL_ALERT, 0, "%s, it is killed", late);
    if (worker->killed == POOL_KILL_NONE)
        worker->killed = due;
    /* other signals may be ignored */
    signals_send_held(worker->pid, worker->handle, SIGKILL, worker->generation->pool->log);
}

static void respawn_expired(struct loop *loop, struct timer *timer)
{
    struct pool_worker *worker = container_of(timer, struct pool_worker, respawn);

    (void)loop;
    if (pool_spawn(worker) == -1)
        pool_worker_respawn_in(worker, FORK_AGAIN_MS);
}

/* Wakes the master; a reload may wait there. */
static void release_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
}

static struct generation *create_generation(
    struct pool *pool, struct cycle *cycle, struct descriptors *opened)
{
    unsigned serve_n = (unsigned)cycle->core.worker_processes;
    unsigned n = serve_n + (cycle->stream.addresses != NULL);
    struct generation *generation =
        calloc(1, sizeof(*generation) + n * sizeof(generation->workers[0]));

    assert(serve_n > 0);
    if (generation == NULL) {
        log_write(pool->log, LEVEL_EMERG, errno, "no memory for %u workers", n);
        return NULL;
    }
    generation->pool = pool;
    generation->phase = GENERATION_STARTING;
    generation->cycle = cycle;
    generation->opened = *opened;
    *opened = (struct descriptors) { .fds = NULL };
    if (pool->serving != NULL)
        heritage_keep_opened(&generation->opened, &pool->serving->opened, pool->serving->cycle);
    generation->number = ++pool->generation_n;
    bells_open(&generation->bells, serve_n);
    generation->since_ms = pool->clock->wall_ms;
    generation->release.expired = release_expired;
    generation->watch.expired = pool_watchdog_expired;
    generation->worker_n = n;
    generation->serve_n = serve_n;
    for (unsigned i = 0; i < n; i++) {
        generation->workers[i] = (struct pool_worker) {
            .generation = generation,
            .index = i,
            .task = i < serve_n ? TASK_SERVE : TASK_ASK,
            .handle = -1,
            .channel = { .fd = -1 },
            .output = { .fd = -1 },
            .inbox = -1,
            .broken_listener = -1,
            .respawn = { .expired = respawn_expired },
            .deadline = { .expired = worker_deadline_expired },
        };
        log_quota_init(&generation->workers[i].lines, pool->log, pool->timers,
            "worker %u of generation %u", i, generation->number);
    }
    TAILQ_INSERT_TAIL(&pool->generations, generation, link);
    return generation;
}

static void start_watchdog(struct generation *generation)
{
    int64_t watchdog = generation->cycle->core.worker_watchdog;

    if (watchdog > 0)
        timers_arm(generation->pool->timers, &generation->watch, (uint64_t)(watchdog + 1) / 2);
}

/* Forks the workers; -1: the generation was withdrawn. */
static int fork_workers(struct generation *generation)
{
    struct pool_worker *worker;

    generation->pool->starting = generation;
    GENERATION_FOREACH_WORKER (worker, generation)
        if (pool_spawn(worker) == -1) {
            transaction_withdraw(generation, "a worker process could not be forked");
            return -1;
        }
    start_watchdog(generation);
    return 0;
}

static void discard_start(struct pool *pool, struct cycle **cycle, struct descriptors *opened)
{
    descriptors_done(opened);
    configuration_discard(cycle, pool->log);
}

int pool_start_generation(struct pool *pool, struct cycle *cycle, struct descriptors *opened)
{
    const struct cycle *in_force = pool->serving != NULL ? pool->serving->cycle : NULL;
    const struct zones *zones = in_force != NULL ? &in_force->zones : pool->adopted_zones;
    unsigned slots = (unsigned)cycle->core.worker_processes;
    struct generation *generation = NULL;

    assert(role_is(ROLE_MASTER));
    assert(pool->starting == NULL && !pool->ending);
    pool_mend_listeners(pool); /* a broken listener could not be taken over */
    /* lost unix sockets stay without workers to drain the queues, or while another master process
     * has the paths */
    if (pool->serving != NULL)
        listeners_note_lost(pool->serving->cycle, pool->serving->phase == GENERATION_SERVING &&
                                                      !pool->ops->is_handed_over(pool->host, NULL));
    if (sandbox_prepare(cycle, pool->log) == 0 &&
        listeners_open(cycle, in_force, pool->adopted, slots, pool->log) == 0) {
        if (zones_open(&cycle->zones, zones, pool->log) == 0)
            generation = create_generation(pool, cycle, opened);
        /* held by the first generation, or given up */
        zones_close(pool->adopted_zones);
        if (generation == NULL)
            listeners_abandon(cycle, in_force, pool->adopted);
    }
    if (generation == NULL) {
        discard_start(pool, &cycle, opened);
        return -1;
    }
    return fork_workers(generation);
}

/* Makes a generation of a former configuration, with zones and descriptors, binding listeners
 * unless open; NULL after an emerg line. */
static struct generation *create_again(const struct generation *before, bool bind)
{
    struct pool *pool = before->pool;
    const struct cycle *in_force = pool->serving->cycle;
    struct cycle *cycle = cycle_share(before->cycle);
    struct descriptors opened = { .fds = NULL };
    struct generation *generation = NULL;

    descriptors_add_all(&opened, &before->opened);
    if (!bind || listeners_open(cycle, in_force, pool->adopted,
                     (unsigned)cycle->core.worker_processes, pool->log) == 0) {
        generation = create_generation(pool, cycle, &opened);
        if (generation == NULL && bind)
            listeners_abandon(cycle, in_force, pool->adopted);
    }
    if (generation == NULL)
        discard_start(pool, &cycle, &opened);
    return generation;
}

void pool_fall_back_advance(struct pool *pool)
{
    struct generation *generation;

    if (!pool_probation_awaits_start(pool) ||
        (pool_find_holder(pool) != NULL && pool_probation_must_bind(pool)))
        return;
    assert(pool->starting == NULL && !pool->ending && pool->probation.before != pool->serving);
    generation = create_again(pool->probation.before, true);
    if (generation == NULL || fork_workers(generation) == -1) {
        pool_probation_end(pool);
        transaction_failed(pool);
    }
}

void pool_revive(struct pool *pool)
{
    struct generation *before = pool->serving, *generation;
    struct pool_worker *worker;

    if (before == NULL || before->phase != GENERATION_DRAINING)
        return;
    if (pool->starting != NULL && pool->starting->phase == GENERATION_COMMITTED)
        return; /* the starting one has the listeners */
    generation = create_again(before, false);
    if (generation == NULL)
        return;
    log_write(pool->log, LEVEL_NOTICE, 0,
        "generation %u serves with the configuration of generation %u, whose workers drain",
        generation->number, before->number);
    generation_set_phase(generation, GENERATION_COMMITTED); /* the listeners are open */
    generation_set_phase(generation, GENERATION_SERVING);
    pool->serving = generation;
    GENERATION_FOREACH_WORKER (worker, generation)
        pool_worker_respawn_in(worker, 0);
    start_watchdog(generation);
    if (before->process_n == 0 && before != pool->probation.before)
        generation_destroy(before);
    generation_bound(pool);
}
