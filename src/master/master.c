/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's loop: sleeps (process/signals.h); a wake-up reads signals and messages, carries
 * commands out in a fixed order, and sets SIGALRM for the earliest timer. A flag is cleared before
 * its work. At the end of each wake-up the parts' invariants hold, checked in a debug build. */
#include "master/master.h"

#include "configuration/configuration.h"
#include "configuration/logs.h"
#include "master/hosts.h"
#include "master/quit.h"
#include "os/process.h"
#include "pool/exit.h"
#include "pool/generation.h"
#include "pool/messages.h"
#include "pool/start.h"
#include "pool/transaction.h"
#include "process/environment.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* SIGTERM means what `sigterm_shutdown` says; a second SIGTERM, or a SIGTERM before the daemon
 * serves, ends the daemon at once. */
static void handle_term(struct master *master)
{
    const struct generation *serving = master->pool.serving;
    bool gracefully = !master->termed && master->phase != MASTER_TERMINATES && serving != NULL &&
                      serving->cycle->core.sigterm_graceful;

    log_event(&master->log, "command", LEVEL_NOTICE, 0, "signal %d (SIGTERM) received from %d, %s",
        SIGTERM, (int)master->commands.sender,
        signals_find(ROLE_MASTER, gracefully ? COMMAND_QUIT : COMMAND_TERMINATE)->doing);
    master->termed = true;
    if (gracefully ? master->phase != MASTER_QUITS : master->phase != MASTER_TERMINATES)
        quit_begin(master, gracefully);
}

#define ENDS                                                                                       \
    (1u << COMMAND_TERM | 1u << COMMAND_TERMINATE | 1u << COMMAND_QUIT | 1u << COMMAND_LEAVE)

static void carry_out_ends(struct master *master)
{
    struct commands *commands = &master->commands;

    if (signals_take(COMMAND_TERM, &commands->sender))
        handle_term(master);
    if (commands_take(commands, COMMAND_TERMINATE) && master->phase != MASTER_TERMINATES)
        quit_begin(master, false);
    if (commands_take(commands, COMMAND_QUIT) && master->phase != MASTER_QUITS) {
        if (master->phase == MASTER_TERMINATES)
            quit_refuse_waiting(master);
        else
            quit_begin(master, true);
        if (!quit_is_by_manager(master))
            service_manager_drop_stored(&master->manager);
    }
    if (commands_take(commands, COMMAND_LEAVE) && master->phase != MASTER_TERMINATES) {
        master->leaves = !master->is_left;
        quit_begin(master, true);
    }
}

/* A reload or an upgrade is begun once nothing is in its way, and waits until then. */
static void carry_out_changes(struct master *master)
{
    struct commands *commands = &master->commands;
    struct pool *pool = &master->pool;

    if (commands_take(commands, COMMAND_REOPEN))
        hosts_reopen_logs(master);
    if (commands_take(commands, COMMAND_DRAIN))
        pool_drain(pool);
    if (commands_given(commands, COMMAND_RELOAD)) {
        /* the next reload ends a probation without crashes */
        if (master->reload.phase == RELOAD_PROVING && pool_probation_is_calm(pool))
            pool_probation_end(pool);
        if (master->reload.phase == RELOAD_IDLE && pool->serving != NULL &&
            master->upgrade.phase < UPGRADE_STARTING && pool_may_start(pool) &&
            commands_take(commands, COMMAND_RELOAD))
            reload_begin(master);
    }
    if (master->reload.phase == RELOAD_IDLE && pool->starting == NULL && pool->serving != NULL &&
        commands_take(commands, COMMAND_UPGRADE))
        hosts_begin_upgrade(master);
    if (master->phase == MASTER_RUNS)
        commands_tell(master);
}

/* Tries the commands if any was given, by the bits of signals_await(), or waits. */
static void carry_out_commands(struct master *master, unsigned given)
{
    const struct commands *commands = &master->commands;
    bool any =
        commands->requested != 0 || commands->why[0][0] != '\0' || commands->why[1][0] != '\0' ||
        (given & ~(1u << COMMAND_REAP | 1u << COMMAND_CHANNEL | 1u << COMMAND_DEADLINE)) != 0;

    if (((commands->requested | signals_state->given) & ENDS) != 0)
        carry_out_ends(master);
    if (master->phase == MASTER_QUITS)
        quit_advance(master);
    if (any)
        carry_out_changes(master);
}

static void check_parts(const struct master *master)
{
    CHECK_KIND(master, MASTER_KIND);
    pool_check(&master->pool);
    reload_check(&master->reload, &master->pool);
    control_check(&master->control);
    upgrade_check(&master->upgrade);
    endpoints_check(&master->endpoints);
    timers_check(&master->timers);
    assert(master->pool.ending ==
           (master->phase == MASTER_QUITS || master->phase == MASTER_TERMINATES));
    assert(!master->failed || master->pool.serving == NULL || master->phase != MASTER_RUNS);
    assert(!master->pool.ending || master->reload.phase == RELOAD_IDLE);
    assert(master->phase != MASTER_RESUMES || master->reload.phase != RELOAD_IDLE);
    assert(master->background == -1 || master->reload.phase == RELOAD_IDLE);
}

static void run(struct master *master)
{
    struct pool *pool = &master->pool;

    process_ops->raise(SIGCHLD); /* orphans of a container from before our signals */
    for (;;) {
        bool over = (master->phase != MASTER_RUNS || master->failed) &&
                    master->phase != MASTER_RESUMES && !pool_has_workers(pool) &&
                    master->upgrade.phase < UPGRADE_STARTING && master->left.killed_at == 0;
        unsigned given;

        if (over) {
            upgrade_receive(&master->upgrade); /* whether the other one is there yet */
            upgrade_ended(&master->upgrade);
            if (service_manager_may_exit(&master->manager))
                return;
        }
        given = signals_await(&master->alarm, &master->timers, &master->clock);
        if ((given >> COMMAND_REAP & 1) != 0) {
            pool_reap(pool);
            given |= signals_admit(); /* a resume may precede the last worker's end */
        }
        if ((given >> COMMAND_CHANNEL & 1) != 0) {
            pool_receive_messages(pool);
            control_serve(&master->control);
            if (master->upgrade.phase != UPGRADE_NONE)
                upgrade_receive(&master->upgrade);
        }
        timers_expire(&master->timers);
        if (master->upgrade.phase != UPGRADE_NONE)
            upgrade_tell_main(&master->upgrade);
        if (!over)
            carry_out_commands(master, given);
        else if (master->phase != MASTER_RUNS) /* the new process may be the main process already */
            quit_refuse_waiting(master);
        pool_advance(pool);
        if (master->manager.any)
            service_manager_show(&master->manager);
        control_tell_events(&master->control);
        if (DEBUG_BUILD || process_ops->checked) /* visits all workers of all generations */
            check_parts(master);
    }
}

/* Cleans up after the end of all workers. */
static void clean_up(struct master *master)
{
    static const struct control_outcome ended = { .ok = true };
    const struct generation *serving = master->pool.serving;
    const char *pid_path = master->endpoints.pidfile.path;

    if (master->accepted != NULL)
        configuration_change_hooks(&master->accepted, NULL, &master->log);
    log_event(&master->log, "master_exit", LEVEL_NOTICE, 0, "exit");
    control_tell_events(&master->control);
    log_report_suppressed(&master->log, true);
    logs_finish(&master->log);
    service_manager_done(&master->manager);
    control_reply(&master->control, CONTROL_WAIT_QUIT, &ended);
    control_end(&master->control);
    /* names of killed processes, while lists of workers prove their pids */
    worker_list_remove_stale(pid_path, pid_path);
    if (serving != NULL && serving->cycle->core.control.path != NULL)
        worker_list_remove_stale(serving->cycle->core.control.path, pid_path);
    if (serving != NULL && serving->cycle->core.control_read.path != NULL)
        worker_list_remove_stale(serving->cycle->core.control_read.path, pid_path);
    worker_list_close(&master->list);
    endpoints_remove(&master->endpoints);
    pool_done(&master->pool);
    upgrade_done(&master->upgrade, master->failed);
    diag_destroy(&master->diag);
    shared_destroy(&master->shared);
}

static void init_parts(struct master *master, struct start *start)
{
    timers_init(&master->timers, &master->clock, NULL);
    worker_list_open(&master->list, start->pidfile.path, &master->log);
    master->left.pool = &master->pool;
    master->commands.log = &master->log;
    master->log.lost = &master->lost;
    endpoints_init(&master->endpoints, &start->pidfile, &master->log);
    hosts_init(master, start);
    service_manager_init(&master->manager, &(struct service_manager) {
                                               .pool = &master->pool,
                                               .reload = &master->reload,
                                               .phase = &master->phase,
                                               .is_main = &master->upgrade.main,
                                           });
}

int master_main(struct start *start)
{
    struct master master = {
        .kind = MASTER_KIND,
        .log = start->log,
        .shared = start->shared,
        .options = start->options,
        .background = start->background,
        .diag = diag_create(), /* NULL: replies to reloads have no diagnostics */
    };
    bool is_newer = start->inheritance.link != -1;
    int code = EXIT_SUCCESS;

    assert(role_is(ROLE_MASTER));
    process_ops->read_clock(&master.clock);
    master.started = master.clock;
    master.log.event_log = event_log_create(&master.clock); /* NULL: there are no events */
    event_log_note(master.log.event_log, "master_start", "master process %d", (int)master.log.pid);
    if (os_process_adopt_orphans() == -1) /* the control socket would not know them */
        log_write(&master.log, LEVEL_ALERT, errno, "prctl(PR_SET_CHILD_SUBREAPER) failed");
    init_parts(&master, start);
    left_behind_report(&master.left);
    if (process_ops->wakeup_begin() == -1) {
        log_write(&master.log, LEVEL_EMERG, errno, "no means to wait for signals and clients");
        master.failed = true;
    } else if (pool_start_generation(&master.pool, start->cycle, &start->opened) == -1) {
        master.failed = true;
    }
    run(&master);
    clean_up(&master);
    event_log_destroy(&master.log.event_log);
    exec_state_done(&start->inheritance);
    if (master.failed) {
        code = is_newer ? EXIT_FAILURE : log_exit_code(&master.log);
        process_ready_tell(master.background, (unsigned char)code);
    }
    return code;
}
