/* SPDX-License-Identifier: BSD-2-Clause */
/* The serving generation while all of its workers wait to be forked again, because they crash at
 * once and again: an episode that begins with an alert and ends with a notice, however many crash
 * in it. It ends when a worker has accepted clients for a while. */
#include "pool/pool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* A worker that has run so long has not died at once. */
#define CALM_MS 1000

/* Formats what the worker that has died last has died of. */
static void describe_death(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "on signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "with code %d", WEXITSTATUS(status));
}

void pool_backoff_end(struct generation *generation)
{
    assert(generation->crashing);
    generation->crashing = false;
    timers_disarm(generation->pool->timers, &generation->calm);
    log_write(generation->pool->log, LEVEL_NOTICE, 0, "worker processes serve again");
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
            pool_backoff_end(generation);
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
    describe_death(generation->last_death, cause, sizeof(cause));
    log_write(pool->log, LEVEL_ALERT, 0,
        "no worker process serves: all %u of generation %u crash as they start, the last one "
        "exited %s, the next one starts in %" PRIu64 " ms",
        generation->serve_n, generation->number, cause,
        next > pool->clock->mono_ms ? next - pool->clock->mono_ms : 0);
}
