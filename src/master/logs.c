/* SPDX-License-Identifier: BSD-2-Clause */
/* The logs of the master and of its generations. */
#include "process/logs.h"

#include "master/master.h"

void fb_master_take_log(struct fb_master *master, struct fb_generation *generation)
{
    const struct fb_core_settings *core = &generation->cycle->core;
    struct fb_log before;

    fb_log_tend(&master->log, true);
    before = master->log;
    fb_log_init(&master->log, core->logs, core->log_n);
    master->log.also = before.also; /* until we have said that we serve */
    master->log.diag = before.diag;
    master->log.diag_session = before.diag_session;
    if (core->log_burst > 0) {
        fb_log_limit_init(
            &master->log_limit, (uint32_t)core->log_burst, (uint64_t)core->log_interval);
        master->log.limit = &master->log_limit;
    }
    fb_log_update(&master->log);
}

static void hand_out(struct fb_master *master, struct fb_generation *generation)
{
    const struct fb_core_settings *core = &generation->cycle->core;

    for (unsigned i = 0; i < generation->seat_n; i++)
        for (unsigned log = 0; log < core->log_n; log++) {
            struct fb_message message = {
                .kind = FB_MESSAGE_REOPEN,
                .argument = log,
                .fd = core->logs[log].fd,
            };

            if (core->logs[log].path != NULL)
                fb_seat_send(master, &generation->seats[i], &message);
        }
}

void fb_master_reopen_logs(struct fb_master *master)
{
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link) {
        fb_logs_reopen(&generation->cycle->core, &master->log);
        hand_out(master, generation);
    }
}

void fb_master_note_broken(struct fb_master *master, struct fb_generation *generation, unsigned log)
{
    if (log >= generation->cycle->core.log_n)
        return;
    generation->cycle->core.logs[log].broken = true;
    master->log.broken = true;
}

/* A line about one may show that another is broken: each is tried once. */
static void repair(struct fb_master *master, uint64_t *next)
{
    struct fb_generation *generation;
    uint64_t again = 0;

    while (master->log.broken) {
        master->log.broken = false;
        again = 0;
        TAILQ_FOREACH (generation, &master->generations, link)
            fb_logs_repair(&generation->cycle->core, &master->log, master->clock.mono_ms, &again);
    }
    master->log.broken = again != 0;
    if (again != 0 && (*next == 0 || again < *next))
        *next = again;
}

void fb_master_tend_logs(struct fb_master *master, uint64_t *next)
{
    uint64_t due;

    if (master->log_limit.due_ms != 0)
        fb_log_tend(&master->log, false);
    repair(master, next);
    due = master->log_limit.due_ms;
    if (due != 0 && (*next == 0 || due < *next))
        *next = due;
}
