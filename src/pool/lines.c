/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines about workers. A worker's record has a token bucket, which outlives its processes: what a
 * worker makes the master log is bounded, whatever the level, and the flood limit of the log set
 * aside. Lines that were held back are counted, and the count is written a little later. */
#include "pool/pool.h"

#include "base/compiler.h"

#include <assert.h>
#include <inttypes.h>

#define REPORT_MS 10000

/* A crash has three lines. */
static const struct token_rate rate = { .burst = 100, .per_second = 2 };

void pool_lines_report(struct generation *generation)
{
    struct pool_worker *worker;

    GENERATION_FOREACH_WORKER (worker, generation) {
        if (worker->lines.held == 0)
            continue;
        log_write(generation->pool->log, LEVEL_ALERT, 0,
            "%" PRIu32 " line%s about worker %u of generation %u %s not written",
            worker->lines.held, worker->lines.held == 1 ? "" : "s", worker->index,
            generation->number, worker->lines.held == 1 ? "was" : "were");
        worker->lines.held = 0;
    }
}

static void report_all(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, lines_due);
    struct generation *generation;

    assert(loop == NULL);
    TAILQ_FOREACH (generation, &pool->generations, link)
        pool_lines_report(generation);
}

void pool_worker_log(
    struct pool_worker *worker, enum log_level level, int error, const char *format, ...)
{
    struct log_line line = { .level = level, .error = error };
    struct pool *pool = worker->generation->pool;
    va_list args;

    if (level > pool->log->level)
        return;
    if (!token_bucket_take(&worker->lines.bucket, &rate, pool->clock->mono_ms)) {
        worker->lines.held += worker->lines.held < UINT32_MAX;
        pool->lines_due.expired = report_all;
        if (!timer_is_set(&pool->lines_due))
            timers_arm(pool->timers, &pool->lines_due, REPORT_MS);
        return;
    }
    va_start(args, format);
    log_vput(pool->log, &line, format, args);
    va_end(args);
}
