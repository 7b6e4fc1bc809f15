/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits a worker's log and has it repaired. Opens nothing: a log that has lost its receiver is
 * connected again by the master, or by a single process as its own master. */
#include "worker/logs.h"

#include "features/access_log/access_log.h"
#include "process/logs.h"
#include "session/log.h"
#include "worker/worker.h"

#include <assert.h>

static void log_due(struct loop *loop, struct timer *timer)
{
    (void)timer;
    log_report_suppressed(&worker_of_loop(loop)->log, false);
}

/* Ends the turn's wait, behind which the log is tended. */
static void repair_due(struct loop *loop, struct timer *timer)
{
    (void)timer;
    assert(!timer_is_set(&worker_of_loop(loop)->log_repair));
}

void worker_limit_log(struct worker *worker)
{
    const struct core_settings *core = &worker->cycle->core;

    assert(worker->log.limit == NULL && core->log_burst >= 0);
    worker->log_due.expired = log_due;
    worker->log_repair.expired = repair_due;
    if (core->log_burst == 0)
        return;
    log_limit_init(&worker->log_limit, (uint32_t)core->log_burst, (uint64_t)core->log_interval);
    worker->log.limit = &worker->log_limit;
}

/* Connects each broken log again, or has the master do it. */
static void repair_logs(struct worker *worker)
{
    struct core_settings *core = &worker->cycle->core;

    if (worker->role == ROLE_SINGLE) {
        logs_repair(core, &worker->log);
        return;
    }
    for (unsigned i = 0; i < core_target_n(core); i++)
        if (logs_take_broken(core_target(core, i)))
            channel_end_try(
                &worker->to_master, &(struct channel_message) { MESSAGE_LOG_BROKEN, i, -1 });
}

void worker_tend_log(struct worker *worker)
{
    struct loop *loop = &worker->stream.net.loop;
    uint64_t now = loop->clock.mono_ms, due = worker->log_limit.report_ms;

    /* a line about one log may break another, which waits for the timer as a failure does */
    if (unlikely(worker->log.broken) && !timer_is_set(&worker->log_repair)) {
        worker->log.broken = false;
        repair_logs(worker);
        timer_set(loop, &worker->log_repair, LOGS_REPAIR_MS);
    }
    if (unlikely(due != 0) && !timer_is_set(&worker->log_due))
        timer_set(loop, &worker->log_due, due > now ? due - now : 1);
}

void worker_log_reopened(struct worker *worker, struct channel_message *message)
{
    struct core_settings *core = &worker->cycle->core;
    struct log_target *target;

    if (message->argument >= core_target_n(core) || message->fd == -1)
        return;
    assert(worker->role == ROLE_WORKER);
    target = core_target(core, message->argument);
    access_log_flush_to(&worker->stream, target);
    message->fd = logs_exchange(target, message->fd);
}

void worker_log_stall(struct worker *worker)
{
    struct heartbeat_stall stall = heartbeat_take_stall(worker->stream.net.heartbeat);

    session_log_other_stall(&worker->log, &stall, worker_protocols_name(worker, stall.protocol));
}
