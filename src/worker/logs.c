/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits a worker's log and has it repaired. Opens nothing: a log that has lost its receiver is
 * connected again by the master, or by a single process as its own master. */
#include "worker/logs.h"

#include "process/logs.h"
#include "worker/commands.h"
#include "worker/worker.h"

#include <assert.h>

static void log_due(struct loop *loop, struct timer *timer)
{
    (void)timer;
    log_report_suppressed(&worker_of_loop(loop)->log, false);
}

void worker_limit_log(struct fb_worker *worker)
{
    const struct core_settings *core = &worker->cycle->core;

    assert(worker->log.limit == NULL && core->log_burst >= 0);
    worker->log_due.expired = log_due;
    if (core->log_burst == 0)
        return;
    log_limit_init(&worker->log_limit, (uint32_t)core->log_burst, (uint64_t)core->log_interval);
    worker->log.limit = &worker->log_limit;
}

/* Reports each broken log; *next becomes the time to report again, unless none is to be. */
static void report_broken(struct fb_worker *worker, uint64_t now, uint64_t *next)
{
    struct core_settings *core = &worker->cycle->core;

    if (worker->role == ROLE_SINGLE) {
        logs_repair(core, &worker->log, now, next);
        return;
    }
    for (unsigned i = 0; i < core->log_n; i++)
        if (logs_may_repair(&core->logs[i], now, next))
            worker_send_with(worker, MESSAGE_LOG_BROKEN, i, -1);
}

void worker_tend_log(struct fb_worker *worker)
{
    struct loop *loop = &worker->stream.net.loop;
    uint64_t now = loop->clock.mono_ms, due = worker->log_limit.report_ms, again = 0;

    while (
        unlikely(worker->log.broken)) { /* a line about one log may show that another is broken */
        worker->log.broken = false;
        again = 0;
        report_broken(worker, now, &again);
    }
    worker->log.broken = again != 0;
    if (again != 0 && (due == 0 || again < due))
        due = again;
    if (unlikely(due != 0) && (!timer_is_set(&worker->log_due) || again != 0))
        timer_set(loop, &worker->log_due, due > now ? due - now : 1);
}

void worker_log_reopened(struct fb_worker *worker, struct channel_message *message)
{
    struct core_settings *core = &worker->cycle->core;
    int fd = message->fd;

    if (message->argument >= core->log_n || fd == -1)
        return;
    assert(worker->role == ROLE_WORKER);
    message->fd = core->logs[message->argument].fd;
    core->logs[message->argument].fd = fd;
    log_target_find_way(&core->logs[message->argument]);
}
