/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of control/: the status, commands, and the outcome of reopened logs; reload.c has
 * the outcome of a reload. */
#include "master/control_host.h"

#include "base/check.h"
#include "master/master.h"
#include "pool/worker.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>

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

static void fill_status(void *host, struct control_status *out)
{
    const struct master *master = master_of(host);
    const struct upgrade *upgrade = &master->upgrade;

    assert(role_is(ROLE_MASTER));
    *out = (struct control_status) {
        .state = describe_state(master),
        .ends = master->phase != MASTER_RUNS,
        .configuration = master->options->conf,
        .started = master->started,
        .reload = { master->result.any, master->result.ok, master->result.at_ms,
            master->result.why },
    };
    if (upgrade->phase != UPGRADE_NONE) {
        out->upgrade.role = upgrade_is_new(upgrade) ? "new" : "old";
        out->upgrade.other = upgrade->other;
        out->upgrade.serves =
            upgrade->phase == UPGRADE_HANDED_OVER || upgrade->phase == UPGRADE_BESIDE;
        out->upgrade.main = upgrade->main;
        if (upgrade->control != NULL &&
            !control_socket_is_at(&master->endpoints.control, upgrade->control))
            out->upgrade.control = upgrade->control;
    }
    if (master->phase == MASTER_RUNS)
        commands_fill_status(&master->commands, out);
    left_behind_status(&master->left, out);
}

static const char *accept_command(void *host, enum command command)
{
    struct master *master = master_of(host);
    bool begins = command == COMMAND_RELOAD || command == COMMAND_UPGRADE;

    assert(command > COMMAND_NONE && command < COMMAND_N);
    if (begins && master->phase != MASTER_RUNS)
        return "the daemon is ending";
    if (command == COMMAND_RESUME && master->phase != MASTER_QUITS)
        return master->phase == MASTER_TERMINATES ? "the daemon is stopping: it is too late"
                                                  : "the daemon is not shutting down";
    if (command == COMMAND_LEAVE && master->upgrade.phase != UPGRADE_NONE)
        return "another master process runs beside this one: the upgrade is not complete";
    if (command == COMMAND_LEAVE && master->phase == MASTER_TERMINATES)
        return "the daemon is ending";
    commands_request(&master->commands, command);
    return NULL;
}

static bool is_master(void *host, pid_t pid)
{
    const struct master *master = master_of(host);

    /* workers left to us are not our children */
    if (master->is_left && pid > 0 && pool_find_worker(&master->pool, pid) != NULL)
        return true;
    return pid == process_ops->self() || (pid > 0 && pid == master->upgrade.other);
}

static const struct control_ops ops = {
    .status = fill_status,
    .command = accept_command,
    .is_master = is_master,
};

void control_host_init(struct master *master)
{
    control_init(&master->control, &ops, master, &master->pool, &master->endpoints.control);
}

void control_host_refuse_waiting(struct master *master)
{
    struct control_outcome outcome = { .ok = false, .error = "the daemon is ending" };

    assert(master->phase != MASTER_RUNS);
    control_reply(&master->control, CONTROL_WAIT_RELOAD, &outcome);
    control_reply(&master->control, CONTROL_WAIT_UPGRADE, &outcome);
    control_reply(&master->control, CONTROL_WAIT_RESUME, &outcome);
    if (master->phase == MASTER_TERMINATES)
        control_reply(
            &master->control, CONTROL_WAIT_QUIT, &(struct control_outcome) { .ok = true });
}

void control_host_reopen_logs(struct master *master)
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
