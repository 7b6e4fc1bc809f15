/* SPDX-License-Identifier: BSD-2-Clause */
#include "master/master.h"

#include "process/environment.h"
#include "process/logs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MANAGER_PID 1 /* the service manager's, unless it is a user's */

/* `meaning` is the order that is followed, which is the signal's own except for SIGTERM. */
static void log_order(
    struct fb_master *master, enum fb_order order, enum fb_order meaning, pid_t from)
{
    const struct fb_signal *s = fb_signal_of(FB_ROLE_MASTER, order);

    master->sender = from;
    fb_log(&master->log, FB_NOTICE, 0, "signal %d (%s) received from %d, %s", s->number, s->name,
        (int)from, fb_signal_of(FB_ROLE_MASTER, meaning)->doing);
}

bool fb_master_take(struct fb_master *master, enum fb_order order)
{
    bool requested = control_take_command(&master->control, order);
    pid_t from;

    master->sender = 0;
    if (!fb_order_take(order, &from))
        return requested;
    log_order(master, order, order, from);
    return true;
}

static void end_all(struct fb_master *master, bool gracefully)
{
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link) {
        if (gracefully)
            fb_generation_signal(master, generation, SIGQUIT);
        else
            fb_generation_close(master, generation);
    }
}

static void close_listeners(struct fb_master *master)
{
    struct fb_listener *listener;

    if (master->live == NULL)
        return;
    STAILQ_FOREACH (listener, &master->live->cycle->stream.listeners, link) {
        if (!upgrade_shares(&master->upgrade, listener))
            fb_listener_unlink(listener, &master->log);
        fb_listener_close(listener);
    }
}

static void begin_end(struct fb_master *master, bool gracefully)
{
    fb_rehearsal_drop(&master->rehearsal);
    fb_generation_conclude(master);
    upgrade_ending(
        &master->upgrade, gracefully, fb_notify_is_on() && master->sender == MANAGER_PID);
    if (master->state == FB_MASTER_RUNS) /* else a unix path may be another daemon's by now */
        close_listeners(master);
    master->state = gracefully ? FB_MASTER_QUITS : FB_MASTER_TERMINATES;
    end_all(master, gracefully);
    fb_manager_stopping(master);
    fb_result_none(master);
}

/* What `sigterm_shutdown` says; but a second one ends at once, and so does one before we serve. */
static void take_term(struct fb_master *master)
{
    bool gracefully = !master->termed && master->state != FB_MASTER_TERMINATES &&
                      master->live != NULL && master->live->cycle->core.sigterm_graceful;
    pid_t from;

    if (!fb_order_take(FB_ORDER_TERM, &from))
        return;
    log_order(master, FB_ORDER_TERM, gracefully ? FB_ORDER_QUIT : FB_ORDER_TERMINATE, from);
    master->termed = true;
    if (gracefully && master->state == FB_MASTER_RUNS)
        begin_end(master, true);
    else if (!gracefully && master->state != FB_MASTER_TERMINATES)
        begin_end(master, false);
}

static void take_orders(struct fb_master *master)
{
    if (fb_order_take(FB_ORDER_REAP, NULL))
        fb_master_reap(master);
    if (fb_order_take(FB_ORDER_CHANNEL, NULL)) {
        fb_master_listen_to_workers(master);
        control_serve(&master->control);
        upgrade_receive(&master->upgrade);
    }
    fb_order_take(FB_ORDER_DEADLINE, NULL);
    fb_master_check_start(master);

    take_term(master);
    if (fb_master_take(master, FB_ORDER_TERMINATE) && master->state != FB_MASTER_TERMINATES)
        begin_end(master, false);
    if (fb_master_take(master, FB_ORDER_QUIT) && master->state == FB_MASTER_RUNS)
        begin_end(master, true);
    if (fb_master_take(master, FB_ORDER_REOPEN))
        fb_master_reopen(master);
    if (fb_master_take(master, FB_ORDER_DRAIN) && master->live != NULL)
        fb_generation_drain(master, master->live);
}

static bool has_workers(const struct fb_master *master)
{
    const struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++)
            if (generation->seats[i].pid > 0)
                return true;
    return false;
}

/* What follows from a generation's having begun to serve, or having failed to. */
static void settle(struct fb_master *master, const struct fb_generation *before)
{
    if (master->starting == NULL && master->rehearsal.pid == 0 && master->live == before) {
        endpoints_undo(&master->endpoints, &master->log);
        fb_result_end(master, false);
    }
    if (master->live == before)
        return;
    if (fb_master_publish(master, before == NULL) == -1) { /* nobody would find us */
        master->failed = true;
        begin_end(master, false);
        return;
    }
    fb_result_end(master, true);
    upgrade_announce(&master->upgrade);
    if (before == NULL)
        fb_manager_ready(master);
    fb_process_background_done(master->background, fb_logs_use_stderr(&master->live->cycle->core));
    master->background = -1;
    master->log.also = NULL;
    fb_log_update(&master->log);
}

static void run(struct fb_master *master)
{
    fb_master_meet_deadlines(master); /* the first workers have one */
    raise(SIGCHLD); /* a container's orphans that have ended before we took signals */
    while (!(master->state != FB_MASTER_RUNS || master->failed) || has_workers(master) ||
           upgrade_is_pending(&master->upgrade)) {
        struct fb_generation *before = master->live;

        sigsuspend(fb_signals_wait_mask());
        fb_clock_read(&master->clock);
        timers_run(&master->timers);
        take_orders(master);
        settle(master, before);
        fb_reload_begin(master);
        fb_upgrade_begin(master);
        fb_master_meet_deadlines(master);
        fb_manager_show(master);
    }
}

/* Nobody works for us any more. */
static void clean_up(struct fb_master *master)
{
    fb_log(&master->log, FB_NOTICE, 0, "exit");
    fb_log_tend(&master->log, true);
    upgrade_receive(&master->upgrade); /* whether the other one is there yet */
    upgrade_ended(&master->upgrade);
    control_end(&master->control);
    endpoints_remove(&master->endpoints, &master->log);
    if (master->live != NULL) {
        master->live->draining = true;
        master->live = NULL;
    }
    fb_generations_sweep(master);
    upgrade_done(&master->upgrade, master->failed);
    fb_told_destroy(&master->told);
    fb_shared_destroy(&master->shared);
}

int fb_master_main(struct fb_start *start)
{
    struct fb_master master = {
        .log = start->log,
        .shared = start->shared,
        .inherited = start->inheritance.sockets,
        .zones = &start->inheritance.zones,
        .options = start->options,
        .background = start->background,
        .told = fb_told_create(), /* without it, who asks for a reload is told less */
    };

    TAILQ_INIT(&master.generations);
    STAILQ_INIT(&master.wants);
    timers_init(&master.timers, &master.clock, NULL);
    endpoints_init(&master.endpoints, &start->pidfile);
    control_host_init(&master);
    fb_clock_read(&master.clock);
    master.started = master.clock;
    fb_upgrade_init(&master, &start->inheritance, start->binary);
    if (fb_generation_start(&master, start->cycle) == -1)
        master.failed = true;
    run(&master);
    clean_up(&master);
    fb_inheritance_done(&start->inheritance);
    return master.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
