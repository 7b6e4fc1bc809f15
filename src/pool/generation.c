/* SPDX-License-Identifier: BSD-2-Clause */
/* Generations change by a transaction. Prepare: sockets are bound but do not listen, workers are forked
 * and set themselves up but accept nothing; all of it can be taken back without a trace. Commit: the
 * sockets listen and the new workers are told to accept. Serve: all of them do, and the old generation
 * drains. At every moment at most one generation starts, and one that serves keeps its listeners. */
#include "pool/pool.h"

#include "pool/listeners.h"
#include "process/role.h"
#include "process/sandbox.h"
#include "systemd/fdstore.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

/* Workers that have not ended so long after SIGINT are killed. */
#define KILL_MS 2000
/* How long the next reload waits for draining workers to release their listeners. */
#define RELEASE_MS 5000

void generation_set_phase(struct generation *generation, enum generation_phase phase)
{
    static const unsigned legal[] = {
        [GENERATION_STARTING] =
            1u << GENERATION_COMMITTED | 1u << GENERATION_DRAINING | 1u << GENERATION_CLOSING,
        [GENERATION_COMMITTED] = 1u << GENERATION_SERVING,
        [GENERATION_SERVING] =
            1u << GENERATION_REPLACED | 1u << GENERATION_DRAINING | 1u << GENERATION_CLOSING,
        [GENERATION_REPLACED] = 1u << GENERATION_DRAINING | 1u << GENERATION_CLOSING,
        [GENERATION_DRAINING] = 1u << GENERATION_SERVING | 1u << GENERATION_CLOSING,
        [GENERATION_CLOSING] = 0,
    };

    assert(role_is(FB_ROLE_MASTER));
    assert((legal[generation->phase] >> phase & 1) != 0);
    generation->phase = phase;
}

bool generation_is_ending(const struct generation *generation)
{
    return generation->phase >= GENERATION_REPLACED;
}

/* Wakes the master, in which a reload may wait. */
static void release_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    (void)loop;
    (void)timer;
}

static struct generation *create_generation(
    struct pool *pool, struct fb_cycle *cycle, struct descriptors *opened)
{
    unsigned n = (unsigned)cycle->core.worker_processes;
    struct generation *generation =
        calloc(1, sizeof(*generation) + n * sizeof(generation->workers[0]));

    assert(n > 0);
    if (generation == NULL) {
        fb_log(pool->log, FB_EMERG, errno, "no memory for %u workers", n);
        return NULL;
    }
    generation->pool = pool;
    generation->phase = GENERATION_STARTING;
    generation->cycle = cycle;
    generation->opened = *opened;
    *opened = (struct descriptors) { .fds = NULL };
    generation->number = ++pool->generation_n;
    generation->since_ms = pool->clock->wall_ms;
    generation->release.expired = release_expired;
    generation->worker_n = n;
    for (unsigned i = 0; i < n; i++)
        pool_worker_init(&generation->workers[i], generation, i);
    TAILQ_INSERT_TAIL(&pool->generations, generation, link);
    return generation;
}

/* Gives up the starting generation: its workers, who have accepted nothing, are ended. */
static void take_start_back(struct generation *generation)
{
    struct pool *pool = generation->pool;

    assert(generation == pool->starting && generation->phase == GENERATION_STARTING);
    pool->starting = NULL;
    listeners_abandon(pool, generation->cycle, NULL);
    generation_close(generation);
    pool_sweep(pool);
}

static void log_abort(const struct pool *pool, const char *why)
{
    fb_log(pool->log, FB_EMERG, 0, "%s, %s", why,
        pool->serving != NULL ? "the configuration before stays in force" : "nothing is served");
}

void generation_abort(struct generation *generation, const char *why)
{
    struct pool *pool = generation->pool;

    log_abort(pool, why);
    take_start_back(generation);
    pool->ops->failed(pool->host);
}

/* Undoes a start up to its listeners. */
static int give_up_start(struct pool *pool, struct fb_cycle *cycle, struct descriptors *opened)
{
    descriptors_done(opened);
    pool_discard_cycle(pool, cycle);
    return -1;
}

int generation_start(struct pool *pool, struct fb_cycle *cycle, struct descriptors *opened)
{
    const struct fb_zones *zones =
        pool->serving == NULL ? pool->adopted_zones : &pool->serving->cycle->zones;
    struct generation *generation = NULL;
    struct pool_worker *worker;

    assert(role_is(FB_ROLE_MASTER));
    assert(pool->starting == NULL && !pool->ending);
    if (fb_sandbox_prepare(cycle, pool->log) == -1 || listeners_open(pool, cycle) == -1)
        return give_up_start(pool, cycle, opened);
    if (fb_zones_open(&cycle->zones, zones, pool->log) == 0)
        generation = create_generation(pool, cycle, opened);
    fb_zones_close(pool->adopted_zones); /* the first generation has them now */
    if (generation == NULL) {
        listeners_abandon(pool, cycle, NULL);
        return give_up_start(pool, cycle, opened);
    }
    pool->starting = generation;
    GENERATION_FOREACH_WORKER (worker, generation)
        if (pool_spawn(worker) == -1) {
            log_abort(pool, "a worker process could not be forked");
            take_start_back(generation);
            return -1;
        }
    pool_watchdog_start(generation);
    return 0;
}

void generation_signal(struct generation *generation, int number)
{
    struct pool_worker *worker;

    GENERATION_FOREACH_WORKER (worker, generation)
        if (worker->pid > 0 && kill(worker->pid, number) == -1 && errno != ESRCH)
            fb_log(generation->pool->log, FB_ALERT, errno, "kill(%d, %d) failed", (int)worker->pid,
                number);
}

void generation_drain(struct generation *generation)
{
    struct timers *timers = generation->pool->timers;
    struct pool_worker *worker;

    if (generation->phase != GENERATION_DRAINING)
        generation_set_phase(generation, GENERATION_DRAINING);
    timers_arm(timers, &generation->release, RELEASE_MS);
    GENERATION_FOREACH_WORKER (worker, generation)
        timers_disarm(timers, &worker->respawn);
    generation_signal(generation, SIGQUIT);
}

void generation_close(struct generation *generation)
{
    struct pool *pool = generation->pool;
    uint64_t kill_ms = pool->clock->mono_ms + KILL_MS;
    struct pool_worker *worker;

    if (generation->phase != GENERATION_CLOSING)
        generation_set_phase(generation, GENERATION_CLOSING);
    GENERATION_FOREACH_WORKER (worker, generation) {
        timers_disarm(pool->timers, &worker->respawn);
        if (worker->pid > 0 &&
            (!fb_timer_is_set(&worker->deadline) || worker->deadline.deadline > kill_ms))
            timers_arm_at(pool->timers, &worker->deadline, kill_ms);
    }
    generation_signal(generation, SIGINT); /* `sigterm_shutdown` is about SIGTERM alone */
}

/* Closes the oldest generations that drain, if more are alive than max_generations allows. */
static void bound_generations(struct pool *pool)
{
    int64_t most = pool->serving->cycle->core.max_generations, n = 0;
    struct generation *generation;

    TAILQ_FOREACH (generation, &pool->generations, link)
        n += generation->phase != GENERATION_CLOSING;
    TAILQ_FOREACH (generation, &pool->generations, link) {
        if (most == 0 || n <= most)
            return;
        if (generation->phase == GENERATION_CLOSING || generation == pool->serving)
            continue;
        fb_log(pool->log, FB_NOTICE, 0,
            "more than %" PRId64 " generations (max_generations): generation %u is closed", most,
            generation->number);
        generation_close(generation);
        n--;
    }
}

/* A listener has failed after others have begun to listen, and these may have clients already: a new
 * socket of reuseport has taken them from one that is kept. So the new workers accept them, and end. */
static void take_commit_back(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct pool_worker *worker;

    fb_log(pool->log, FB_EMERG, 0,
        "a listener could not be opened, the configuration before stays in force");
    pool->starting = NULL;
    listeners_restore(pool, generation->cycle);
    /* a worker is told to end when it says that it accepts (messages.c) */
    generation_set_phase(generation, GENERATION_DRAINING);
    timers_arm(pool->timers, &generation->release, RELEASE_MS);
    GENERATION_FOREACH_WORKER (worker, generation)
        pool_worker_arm(worker);
    pool_sweep(pool);
    pool->ops->failed(pool->host);
}

static void commit_generation(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct generation *old = pool->serving;
    struct pool_worker *worker;

    assert(generation == pool->starting);
    if (listeners_commit(pool, generation->cycle) == -1) {
        if (old != NULL)
            take_commit_back(generation);
        else
            generation_abort(generation, "a listener could not be opened");
        return;
    }
    generation_set_phase(generation, GENERATION_COMMITTED);
    pool->ops->committed(pool->host);
    if (old != NULL) {
        listeners_retire(pool, old->cycle, generation->cycle);
        if (old->phase == GENERATION_SERVING) {
            generation_set_phase(old, GENERATION_REPLACED);
            GENERATION_FOREACH_WORKER (worker, old)
                timers_disarm(pool->timers, &worker->respawn);
        }
    }
    GENERATION_FOREACH_WORKER (worker, generation)
        pool_worker_arm(worker);
}

static void serve_generation(struct generation *generation)
{
    struct pool *pool = generation->pool;
    struct generation *old = pool->serving;

    assert(generation == pool->starting);
    generation_set_phase(generation, GENERATION_SERVING);
    pool->serving = generation;
    pool->starting = NULL;
    pool_take_log(pool);
    fb_store_forget_unclaimed(pool->adopted, &generation->cycle->stream.listeners, pool->log);
    fb_inherited_settle(pool->adopted, &generation->cycle->stream.listeners, pool->log);
    if (old != NULL) {
        if (old->phase != GENERATION_CLOSING)
            generation_drain(old);
        pool_sweep(pool);
        bound_generations(pool);
    }
    pool->ops->serves(pool->host, old == NULL);
}

void generation_advance(struct generation *generation)
{
    enum pool_worker_phase least = POOL_WORKER_RELEASED;
    const struct pool_worker *worker;

    assert(generation == generation->pool->starting);
    GENERATION_FOREACH_WORKER (worker, generation)
        least = worker->phase < least ? worker->phase : least;
    if (generation->phase == GENERATION_STARTING && least >= POOL_WORKER_READY)
        commit_generation(generation);
    else if (generation->phase == GENERATION_COMMITTED && least >= POOL_WORKER_ACCEPTING)
        serve_generation(generation);
}

void pool_conclude_start(struct pool *pool)
{
    struct generation *starting = pool->starting;

    if (starting == NULL)
        return;
    if (starting->phase == GENERATION_COMMITTED) {
        serve_generation(starting);
        return;
    }
    take_start_back(starting);
    pool->ops->failed(pool->host);
}
