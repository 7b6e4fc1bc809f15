/* SPDX-License-Identifier: BSD-2-Clause */
/* A reload, up to its new generation's start: a process of its own checks the configuration while we go
 * on, then we read it ourselves. */
#include "master/master.h"

#include "process/logs.h"

static int start_generation(struct fb_master *master)
{
    struct fb_cycle *cycle = fb_cycle_load(master->options, &master->log, -1);

    if (cycle == NULL)
        return -1;
    if (fb_logs_open(&cycle->core, &master->log) == -1 ||
        fb_master_prepare_endpoints(master, &cycle->core) == -1) {
        fb_master_discard(master, cycle);
        return -1;
    }
    fb_sizing_log(cycle, &master->log);
    return fb_generation_start(master, cycle);
}

static void fail(struct fb_master *master)
{
    endpoints_undo(&master->endpoints, &master->log);
    fb_log(&master->log, FB_ERROR, 0,
        "reload failed: the configuration before stays in force, correct the new one and try "
        "again");
    fb_clock_read(&master->clock);
    fb_result_end(master, false);
}

/* One after the other: an order that comes meanwhile waits. */
static bool may_begin(const struct fb_master *master)
{
    uint64_t next = 0;

    return master->state == FB_MASTER_RUNS && master->live != NULL && !master->reloading &&
           master->starting == NULL && !fb_generations_are_full(master) &&
           !fb_generations_step_back(master, &next) && !upgrade_is_pending(&master->upgrade);
}

void fb_reload_begin(struct fb_master *master)
{
    if (!may_begin(master) || !fb_master_take(master, FB_ORDER_RELOAD))
        return;
    fb_result_begin(master);
    if (fb_rehearsal_begin(&master->rehearsal, master->options, &master->log, -1) == -1)
        fail(master);
}

bool fb_reload_reaped(struct fb_master *master, pid_t pid, int status)
{
    struct fb_rehearsal *rehearsal = &master->rehearsal;

    if (rehearsal->pid == 0 || rehearsal->pid != pid)
        return false;
    if (fb_rehearsal_end(rehearsal, status, master->options->conf, &master->log) == -1 ||
        start_generation(master) == -1)
        fail(master);
    return true;
}

void fb_reload_meet_deadline(struct fb_master *master, uint64_t *next)
{
    struct fb_rehearsal *rehearsal = &master->rehearsal;

    fb_generations_step_back(master, next);
    if (rehearsal->pid == 0 || rehearsal->deadline_ms == 0)
        return;
    if (rehearsal->deadline_ms <= master->clock.mono_ms)
        fb_rehearsal_kill(rehearsal);
    else if (*next == 0 || rehearsal->deadline_ms < *next)
        *next = rehearsal->deadline_ms;
}
