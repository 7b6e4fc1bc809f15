/* SPDX-License-Identifier: BSD-2-Clause */
/* The log files and sockets of all generations. The master opens and repairs them, on behalf of
 * workers too, which open nothing by its name. No line is ever waited for: what cannot be written
 * is lost and counted. */
#include "pool/pool.h"

#include "base/log_file.h"
#include "process/logs.h"
#include "process/role.h"

#include <assert.h>
#include <unistd.h>

/* Passes a file to a worker, with flags of its own if it can have them: see logs_separate(). */
static void pass_file(struct pool_worker *worker, unsigned log, int fd)
{
    int own = worker->channel == -1 ? -1 : log_file_open_again(fd);

    pool_worker_send(worker, MESSAGE_LOG_FILE, log, own != -1 ? own : fd);
    if (own != -1)
        close(own);
}

static void pass_files(struct generation *generation)
{
    const struct core_settings *core = &generation->cycle->core;
    struct pool_worker *worker;

    GENERATION_FOREACH_WORKER (worker, generation)
        for (unsigned log = 0; log < core->log_n; log++)
            if (core->logs[log].path != NULL)
                pass_file(worker, log, core->logs[log].fd);
}

void pool_reopen_logs(struct pool *pool)
{
    struct generation *generation;

    assert(role_is(ROLE_MASTER));
    TAILQ_FOREACH (generation, &pool->generations, link) {
        logs_reopen(&generation->cycle->core, pool->log);
        pass_files(generation);
    }
}

void pool_note_broken_log(struct generation *generation, unsigned log)
{
    if (log >= generation->cycle->core.log_n)
        return;
    generation->cycle->core.logs[log].broken = true;
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
