/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of pool/, control/ and upgrade/, for the master as host. Each event is acted on
 * where it arrives; nothing is looked for afterwards. reload.c has the outcome of a reload. */
#include "master/hosts.h"

#include "configuration/configuration.h"
#include "configuration/logs.h"
#include "master/master.h"
#include "master/quit.h"
#include "pool/log_level.h"
#include "pool/outbox.h"
#include "pool/report.h"
#include "pool/worker.h"
#include "process/environment.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "systemd/fdstore.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

/* Returns the host of a part's operations. */
static struct master *master_of(const void *host)
{
    struct master *master = (struct master *)host;

    CHECK_KIND(master, MASTER_KIND);
    return master;
}

/* pool/ */

static void note_committed(void *host)
{
    struct master *master = master_of(host);
    struct listeners *listeners = &master->pool.starting->cycle->stream.listeners;

    if (master->upgrade.main && master->manager.any)
        fdstore_add(listeners, &master->log);
    if (master->upgrade.phase != UPGRADE_NONE && master->pool.serving != NULL)
        upgrade_tell_listeners(&master->upgrade, listeners);
    assert(role_is(ROLE_MASTER));
    configuration_change_hooks(&master->accepted, master->pool.starting->cycle, &master->log);
    /* a start has no reload, and a way back has committed before */
    if (master->reload.phase == RELOAD_PREPARING)
        reload_set_phase(&master->reload, RELOAD_COMMITTED);
}

/* The daemon has begun to serve: the starting process goes on. */
static void finish_start(struct master *master)
{
    const struct core_settings *core = &master->pool.serving->cycle->core;

    service_manager_ready(&master->manager);
    process_background_done(master->background, logs_standard(core));
    master->background = -1;
    master->log.also = NULL;
    master->log.failures = NULL;
    log_update(&master->log);
}

static void note_serving(void *host, bool first)
{
    struct master *master = master_of(host);
    const struct core_settings *core = &master->pool.serving->cycle->core;

    assert(role_is(ROLE_MASTER));
    assert(first == (master->reload.phase == RELOAD_IDLE));
    /* the first pid file says to the outside that every listener is ready */
    if (!first) {
        endpoints_publish_again(&master->endpoints, core, master->upgrade.controls);
    } else if (endpoints_publish(&master->endpoints, core, master->upgrade.controls) == -1) {
        master->failed = true; /* without endpoints no client would find us */
        if (master->phase == MASTER_RUNS)
            quit_begin(master, false);
        return;
    }
    worker_list_move(&master->list, master->endpoints.pidfile.path, &master->log);
    if (master->reload.phase == RELOAD_GOING_BACK) {
        log_write(&master->log, LEVEL_ERROR, 0,
            "reload failed: the previous configuration is in force again, correct the new "
            "configuration and try again");
        reload_end(master, false);
    } else if (master->pool.probation.before != NULL) {
        reload_set_phase(&master->reload, RELOAD_PROVING);
    } else if (!first) { /* the generation before had begun to drain, and cannot come back */
        reload_end(master, true);
    }
    if (master->upgrade.phase != UPGRADE_NONE)
        upgrade_announce(&master->upgrade);
    if (first)
        finish_start(master);
}

static void note_proved(void *host)
{
    struct master *master = master_of(host);

    reload_end(master, true);
}

static void note_way_back(void *host)
{
    struct master *master = master_of(host);

    reload_set_phase(&master->reload, RELOAD_GOING_BACK);
    endpoints_undo(&master->endpoints); /* prepared by a generation that never served */
    /* the generation has given listeners up, even without having served */
    if (master->upgrade.phase != UPGRADE_NONE)
        upgrade_announce(&master->upgrade);
}

static void note_start_failed(void *host)
{
    struct master *master = master_of(host);

    if (master->reload.phase == RELOAD_GOING_BACK && master->phase == MASTER_RUNS) {
        log_write(&master->log, LEVEL_ERROR, 0,
            "reload failed, and the previous configuration could not be started again: the new "
            "configuration stays in force");
        /* a generation that never served has published nothing */
        endpoints_publish_again(
            &master->endpoints, &master->pool.serving->cycle->core, master->upgrade.controls);
        worker_list_move(&master->list, master->endpoints.pidfile.path, &master->log);
    }
    if (master->reload.phase != RELOAD_IDLE)
        reload_end(master, false);
    else
        master->failed = true;
}

static void rescan_other(void *host)
{
    struct master *master = master_of(host);

    if (master->upgrade.phase != UPGRADE_NONE)
        upgrade_send_rescan(&master->upgrade);
}

static bool is_listener_shared(void *host, const struct listener *listener)
{
    return listener->fd_n > 0 &&
           upgrade_sockets_have(&master_of(host)->upgrade.sockets, listener->fds[0]);
}

static bool is_listener_handed_over(void *host, const struct listener *listener)
{
    const struct master *master = master_of(host);

    if (listener == NULL)
        return master->upgrade.phase == UPGRADE_HANDED_OVER && master->upgrade.sockets.n > 0;
    return master->upgrade.phase == UPGRADE_HANDED_OVER && is_listener_shared(host, listener);
}

static int ask_inbox(void *host, uint32_t incarnation, uint32_t asker)
{
    return upgrade_ask_inboxes(&master_of(host)->upgrade, incarnation, asker);
}

static void worker_gone(void *host, uint32_t incarnation)
{
    upgrade_tell_gone(&master_of(host)->upgrade, incarnation);
}

static void give_report(void *host, const char *text, size_t n)
{
    control_report(&master_of(host)->control, text, n);
}

static void in_child(void *host, const struct cycle *cycle)
{
    if (master_of(host)->background != -1) /* a process waits for us, or reads our standard error */
        process_detach(logs_standard(&cycle->core));
}

static void child_exited(void *host, pid_t other)
{
    struct master *master = master_of(host);
    int status;

    control_accept(&master->control);
    if (other == 0 || process_ops->reap(other, &status, true) != other)
        return;
    if (master->reload.check.pid == other)
        reload_checked(master, status);
    else if (master->upgrade.phase != UPGRADE_NONE)
        upgrade_reaped(&master->upgrade, other, status);
}

static const struct pool_ops pool_ops = {
    .committed = note_committed,
    .serves = note_serving,
    .proved = note_proved,
    .goes_back = note_way_back,
    .failed = note_start_failed,
    .rescan = rescan_other,
    .is_shared = is_listener_shared,
    .is_handed_over = is_listener_handed_over,
    .ask_inbox = ask_inbox,
    .worker_gone = worker_gone,
    .reported = give_report,
    .in_child = in_child,
    .exited = child_exited,
};

/* control/ */

static const char *describe_state(const struct master *master)
{
    switch (master->phase) {
    case MASTER_QUITS:
    case MASTER_RESUMES: /* until it serves */
        return "quitting";
    case MASTER_TERMINATES:
        return "stopping";
    default:
        if (master->upgrade.phase >= UPGRADE_STARTING)
            return "upgrading";
        if (master->reload.phase != RELOAD_IDLE)
            return "reloading";
        if (master->pool.serving->crashing)
            return "crashing";
        return master->pool.serving->phase == GENERATION_DRAINING ? "not accepting" : "running";
    }
}

static bool write_status_head(void *host, struct json *json)
{
    const struct master *master = master_of(host);
    const struct reload_status *result = &master->reload.result;
    const struct upgrade *upgrade = &master->upgrade;
    const char *other = upgrade->controls[CONTROL_COMMANDS];

    assert(role_is(ROLE_MASTER));
    json_string(json, "state", describe_state(master));
    control_status_time(json, "started", master->started.wall_ms);
    json_number(json, "uptime_ms", (int64_t)(master->clock.mono_ms - master->started.mono_ms));
    json_string(json, "configuration", master->options->conf);
    if (result->any) {
        json_object(json, "reload");
        json_bool(json, "ok", result->ok);
        control_status_time(json, "at", result->at_ms);
        json_string(json, "error", result->ok ? NULL : result->why);
        json_close(json);
    } else {
        json_null(json, "reload");
    }
    json_number(json, "reloads", master->reload.tried);
    json_number(json, "reloads_failed", master->reload.failed);
    if (upgrade->phase != UPGRADE_NONE) {
        json_object(json, "upgrade");
        json_string(json, "role", upgrade_is_new(upgrade) ? "new" : "old");
        json_number(json, "other", upgrade->other);
        if (other != NULL &&
            control_socket_is_at(&master->endpoints.controls[CONTROL_COMMANDS], other))
            other = NULL; /* moves to the second name soon */
        json_string(json, "control", other);
        json_bool(json, "serves",
            upgrade->phase == UPGRADE_HANDED_OVER || upgrade->phase == UPGRADE_BESIDE);
        json_bool(json, "main", upgrade->main);
        json_close(json);
    } else {
        json_null(json, "upgrade");
    }
    return master->phase != MASTER_RUNS;
}

static void add_problems(void *host, struct problems *problems)
{
    const struct reload_status *result = &master_of(host)->reload.result;

    if (result->any && !result->ok)
        problem_add(problems, PROBLEM_WARNING,
            "the configuration before serves; mend the new one, try it with -t, and reload",
            "the last reload has failed: %s", result->why);
}

static void write_status_tail(void *host, struct json *json)
{
    const struct master *master = master_of(host);

    left_behind_write(&master->left, json);
    json_array(json, "pending");
    if (master->phase == MASTER_RUNS)
        commands_write(&master->commands, json);
    json_close(json);
}

static const char *accept_command(void *host, enum command command)
{
    struct master *master = master_of(host);
    bool begins = command == COMMAND_RELOAD || command == COMMAND_UPGRADE;

    assert(command > COMMAND_NONE && command < COMMAND_N);
    if (begins && master->phase != MASTER_RUNS)
        return "the daemon is ending";
    if (command == COMMAND_RESUME && master->phase != MASTER_QUITS)
        return master->phase == MASTER_TERMINATES ? "the daemon is stopping: too late"
                                                  : "the daemon is not shutting down";
    if (command == COMMAND_LEAVE && master->upgrade.phase != UPGRADE_NONE)
        return "another master process runs, and the upgrade is not complete";
    if (command == COMMAND_LEAVE && master->phase == MASTER_TERMINATES)
        return "the daemon is ending";
    master->commands.requested |= 1u << command;
    process_ops->raise(SIGIO); /* the wake-up may have looked for commands already */
    return NULL;
}

static const char *ask_certificates(void *host)
{
    return pool_report_ask(&master_of(host)->pool);
}

static void set_log_level(void *host, uint32_t override, int64_t ms, const char *text)
{
    pool_log_level_set(&master_of(host)->pool, override, ms, text);
}

static bool list_sessions(void *host, pid_t pid, int pipe)
{
    struct pool_worker *worker = pool_find_worker(&master_of(host)->pool, pid);

    assert(pid > 0 && pipe != -1);
    return worker != NULL && pool_outbox_sessions(worker, pipe);
}

static bool is_master(void *host, pid_t pid)
{
    const struct master *master = master_of(host);

    /* workers left to us are not our children */
    if (master->is_left && pid > 0 && pool_find_worker(&master->pool, pid) != NULL)
        return true;
    return pid == process_ops->self() || (pid > 0 && pid == master->upgrade.other);
}

static const struct control_ops control_ops = {
    .write_head = write_status_head,
    .add_problems = add_problems,
    .write_tail = write_status_tail,
    .command = accept_command,
    .ask_certificates = ask_certificates,
    .set_log_level = set_log_level,
    .list_sessions = list_sessions,
    .is_master = is_master,
};

void hosts_reopen_logs(struct master *master)
{
    struct log *log = &master->log;
    struct diag *diag = diag_create(), *before = log->diag;
    uint32_t session = log->diag_session;
    char why[DIAG_REASON_MAX] = "";
    struct control_outcome outcome = { .error = why, .diag = diag };

    log_collect(log, diag);
    pool_reopen_logs(&master->pool);
    outcome.ok = !diag_reason(diag, LEVEL_ALERT, why, sizeof(why));
    log->diag = before;
    log->diag_session = session;
    log_update(log);
    control_reply(&master->control, CONTROL_WAIT_REOPEN, &outcome);
    diag_destroy(&diag);
}

/* upgrade/ */

static bool is_serving(void *host)
{
    const struct master *master = master_of(host);

    return master->phase == MASTER_RUNS && master->pool.serving != NULL;
}

static void give_way_as_main(void *host, pid_t to, bool stored)
{
    struct master *master = master_of(host);

    if (stored)
        service_manager_drop_stored(&master->manager);
    notify_mainpid(&master->log, to);
}

static void become_main(void *host)
{
    struct master *master = master_of(host);

    /* no news for an ended process */
    notify_queue_cancel(&notify_state->queue, NOTIFY_MAIN_PID);
    if (master->pool.serving != NULL) /* without a generation told once one serves */
        service_manager_ready(&master->manager);
}

static const struct upgrade_ops upgrade_ops = {
    .serves = is_serving,
    .leave_main = give_way_as_main,
    .become_main = become_main,
};

void hosts_begin_upgrade(struct master *master)
{
    assert(master->reload.phase == RELOAD_IDLE);
    assert(master->pool.starting == NULL && master->pool.serving != NULL);
    upgrade_begin(&master->upgrade, master->phase != MASTER_RUNS ? "the daemon is ending" : NULL,
        master->pool.serving->cycle->core.worker_start_timeout);
    if (master->upgrade.phase == UPGRADE_STARTING)
        commands_note_upgrade(&master->commands, &master->timers);
}

void hosts_init(struct master *master, struct start *start)
{
    assert(role_is(ROLE_MASTER));
    pool_init(&master->pool, &(struct pool) {
                                 .ops = &pool_ops,
                                 .host = master,
                                 .log = &master->log,
                                 .clock = &master->clock,
                                 .timers = &master->timers,
                                 .shared = master->shared,
                                 .list = &master->list,
                                 .adopted = start->inheritance.sockets,
                                 .tickets = start->inheritance.tickets,
                                 .adopted_zones = &start->inheritance.zones,
                             });
    start->inheritance.tickets = -1;
    control_init(&master->control, &control_ops, master, &master->pool, master->endpoints.controls);
    upgrade_init(&master->upgrade,
        &(struct upgrade) {
            .ops = &upgrade_ops,
            .host = master,
            .binary = start->binary,
            .pool = &master->pool,
            .endpoints = &master->endpoints,
            .clients = &master->control,
        },
        &start->inheritance);
}
