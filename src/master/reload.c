/* SPDX-License-Identifier: BSD-2-Clause */
/* A reload, up to its new generation's start: a process of its own checks the configuration while we go
 * on, then we read it ourselves. Also what the outside finds us by, which a reload may move. */
#include "master/master.h"

#include "process/logs.h"

#include <stdlib.h>
#include <string.h>

void fb_reload_undo(struct fb_master *master)
{
    fb_control_undo(master);
    if (master->next_pidfile.lock_fd == -1)
        return;
    fb_pidfile_remove(&master->next_pidfile, &master->log);
    free((char *)master->next_pidfile.path);
    master->next_pidfile = (struct fb_pidfile) { .lock_fd = -1 };
}

static int lock_pid(struct fb_master *master, const char *path)
{
    char *copy;

    if (fb_pidfile_is_at(&master->pidfile, path) || fb_pidfile_is_at(&master->next_pidfile, path))
        return 0;
    copy = strdup(path);
    if (copy == NULL || fb_pidfile_lock(&master->next_pidfile, copy, &master->log) == -1) {
        free(copy);
        master->next_pidfile = (struct fb_pidfile) { .lock_fd = -1 };
        return -1;
    }
    return 0;
}

/* What the outside finds us by, where it is not there yet. It is made before anything is committed, as
 * it can fail. */
static int prepare_names(struct fb_master *master, const struct fb_core_settings *core)
{
    bool moves;

    if (fb_upgrade_has_made_way(master)) /* they are the other's, until it has gone */
        return 0;
    if (lock_pid(master, core->pid) == -1 || fb_control_prepare(master, core->control) == -1)
        return -1;
    moves = master->next_pidfile.lock_fd != -1;
    return fb_pidfile_write(moves ? &master->next_pidfile : &master->pidfile, &master->log);
}

static int publish_none(struct fb_master *master, bool first)
{
    if (first)
        return -1;
    fb_reload_undo(master);
    fb_log(&master->log, FB_ERROR, 0,
        "the pid file and the control socket stay where they are, reload to try again");
    return 0;
}

int fb_master_publish(struct fb_master *master, bool first)
{
    struct fb_pidfile *next = &master->next_pidfile;

    /* to the outside the first pid file says that every listener is ready; and a reload has prepared
     * nothing while the names were another's */
    if (prepare_names(master, &master->live->cycle->core) == -1)
        return publish_none(master, first);
    fb_control_publish(master);
    if (next->lock_fd == -1)
        return 0;
    fb_pidfile_remove(&master->pidfile, &master->log);
    free((char *)master->pidfile.path);
    master->pidfile = *next;
    *next = (struct fb_pidfile) { .lock_fd = -1 };
    return 0;
}

static int start_generation(struct fb_master *master)
{
    struct fb_cycle *cycle = fb_cycle_load(master->options, &master->log, -1);

    if (cycle == NULL)
        return -1;
    if (fb_logs_open(&cycle->core, &master->log) == -1 ||
        prepare_names(master, &cycle->core) == -1) {
        fb_master_discard(master, cycle);
        return -1;
    }
    fb_sizing_log(cycle, &master->log);
    return fb_generation_start(master, cycle);
}

static void fail(struct fb_master *master)
{
    fb_reload_undo(master);
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
           !fb_generations_step_back(master, &next) && !fb_upgrade_is_pending(master);
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
