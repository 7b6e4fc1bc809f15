/* SPDX-License-Identifier: BSD-2-Clause */
/* The log files and sockets of all generations. The master opens and repairs them, on behalf of
 * workers too, which open nothing by its name. No line is ever waited for: what cannot be written
 * is lost and counted. */
#include "pool/outbox.h"

#include "os/log_file.h"
#include "process/logs.h"
#include "process/role.h"

#include <assert.h>

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

void pool_note_broken_log(struct generation *generation, unsigned log)
{
    assert(log < core_target_n(&generation->cycle->core));
    core_target(&generation->cycle->core, log)->broken = true;
    generation->pool->log->broken = true;
}

/* Connects broken logs again; once in LOGS_REPAIR_MS, however often a worker says that one is. */
static void repair_logs(struct pool *pool)
{
    struct generation *generation;

    if (timer_is_set(&pool->log_repair))
        return;
    pool->log->broken = false;
    TAILQ_FOREACH (generation, &pool->generations, link)
        logs_repair(&generation->cycle->core, pool->log);
    timers_arm(pool->timers, &pool->log_repair, LOGS_REPAIR_MS);
}

void pool_tend_logs(struct pool *pool)
{
    if (pool->log_limit.report_ms != 0)
        log_report_suppressed(pool->log, false);
    if (pool->log->broken)
        repair_logs(pool);
    if (pool->log_limit.report_ms == 0)
        timers_disarm(pool->timers, &pool->log_due);
    else
        timers_arm_at(pool->timers, &pool->log_due, pool->log_limit.report_ms);
}
