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

/* Connects broken logs again, each once: a line about one may show that another is broken.
 * Returns when to try again; 0: all are whole. */
static uint64_t repair_logs(struct pool *pool)
{
    struct generation *generation;
    uint64_t again = 0;

    while (pool->log->broken) {
        pool->log->broken = false;
        again = 0;
        TAILQ_FOREACH (generation, &pool->generations, link)
            logs_repair(&generation->cycle->core, pool->log, pool->clock->mono_ms, &again);
    }
    pool->log->broken = again != 0;
    return again;
}

void pool_tend_logs(struct pool *pool)
{
    uint64_t again = 0, held;

    if (pool->log_limit.report_ms != 0)
        log_report_suppressed(pool->log, false);
    if (pool->log->broken)
        again = repair_logs(pool);
    held = pool->log_limit.report_ms;
    if (again == 0 || (held != 0 && held < again))
        again = held;
    if (again == 0)
        timers_disarm(pool->timers, &pool->log_due);
    else
        timers_arm_at(pool->timers, &pool->log_due, again);
}
