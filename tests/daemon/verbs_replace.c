/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows that open a daemon's logs, drain a server, change the binary, and kill processes. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"
#include "daemon/quit.h"
#include "daemon/upgrade.h"
#include "daemon/verbs_steps.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Logs and binaries */

static void reopen_act(struct scene *scene)
{
    char old[128];

    snprintf(old, sizeof(old), "%s", daemon_path(scene->daemon, "old.log"));
    ck_assert_int_eq(rename(daemon_path(scene->daemon, "error.log"), old), 0);
    daemon_owns(scene->daemon, "old.log");
    scene->daemon->log_mark = 0;
    verbs_type(scene, scene->daemon->pid);
    WAIT_FOR(daemon_has(scene->daemon, "error.log"));
}

/* The command line has given up, and has said when. */
static void check_patience(const struct scene *scene)
{
    char says[32];

    snprintf(says, sizeof(says), " within %s:", scene->verb->most);
    ck_assert_msg(strstr(scene->daemon->err, says) != NULL, "%s", scene->daemon->err);
}

static void reopen_worst(struct scene *scene)
{
    proc_freeze(scene->daemon->pid);
    verbs_run(scene, "-s reopen", 3);
    check_patience(scene);
    client_echo(scene->session, "goes on");
    daemon_signal(scene->daemon, SIGCONT);
}

const struct verbs_steps verbs_reopen = {
    .act = reopen_act, .worst = reopen_worst, .worst_conf = VERBS_ECHO
};

/* Gives a server of VERBS_BALANCES a state; returns the exit code. */
static int set_state(struct scene *scene, const char *state)
{
    char server[128];

    snprintf(server, sizeof(server), "unix:%s", daemon_path(scene->daemon, "one"));
    return daemon_run(
        scene->daemon, "upstream", "name", state, server, "-c", "forkbeard.conf", NULL);
}

/* The session is led to the draining server, or to the remaining one. */
static void drain_set_up(struct scene *scene)
{
    daemon_configure(scene->daemon, "%s", VERBS_BALANCES);
    verbs_run(scene, "-s reload", 0);
    close(scene->session);
    scene->session = verbs_open_session(scene->daemon);
}

static void drain_act(struct scene *scene)
{
    ck_assert_int_eq(set_state(scene, "drain"), 0);
}

static void drain_back(struct scene *scene)
{
    ck_assert_int_eq(set_state(scene, "auto"), 0);
}

static void drain_worst(struct scene *scene)
{
    proc_freeze(scene->daemon->pid);
    ck_assert_int_eq(set_state(scene, "drain"), 3);
    check_patience(scene);
    client_echo(scene->session, "goes on");
    daemon_signal(scene->daemon, SIGCONT);
}

const struct verbs_steps verbs_drain_server = { .set_up = drain_set_up,
    .act = drain_act,
    .back = drain_back,
    .worst = drain_worst,
    .worst_conf = VERBS_BALANCES };

static void log_level_act(struct scene *scene)
{
    verbs_run(scene, "forkbeard log info", 0);
}

static void log_level_back(struct scene *scene)
{
    verbs_run(scene, "forkbeard log default", 0);
}

static void log_level_worst(struct scene *scene)
{
    proc_freeze(scene->daemon->pid);
    verbs_run(scene, "forkbeard log info", 3);
    check_patience(scene);
    client_echo(scene->session, "goes on");
    daemon_signal(scene->daemon, SIGCONT);
}

const struct verbs_steps verbs_log_level = {
    .act = log_level_act, .back = log_level_back, .worst = log_level_worst, .worst_conf = VERBS_ECHO
};

static void upgrade_act(struct scene *scene)
{
    pid_t old = scene->daemon->pid;

    verbs_type(scene, old);
    WAIT_FOR((scene->other = daemon_pid(scene->daemon)) != old && scene->other > 0);
    daemon_wait_log(scene->daemon, "serves: the upgrade is complete when");
}

static void upgrade_back(struct scene *scene)
{
    verbs_run(scene, "forkbeard upgrade back", 0);
    ck_assert_int_eq(daemon_pid(scene->daemon), scene->daemon->pid);
}

static void failed_upgrade_worst(struct scene *scene)
{
    daemon_expects(scene->daemon, "worker_start_timeout");
    daemon_expects(scene->daemon, "exited on signal 9");
    daemon_expects(scene->daemon, "upgrade failed");
    daemon_configure(scene->daemon, "%s", VERBS_HANGS);
    daemon_write(scene->daemon, "late", "x");
    verbs_run(scene, "-s upgrade", 1);
    client_echo(scene->session, "goes on");
}

const struct verbs_steps verbs_upgrade = { .act = upgrade_act,
    .back = upgrade_back,
    .worst = failed_upgrade_worst,
    .worst_conf = VERBS_ECHO };

static void failed_upgrade_act(struct scene *scene)
{
    daemon_expects(scene->daemon, "ecko");
    daemon_expects(scene->daemon, "^~");
    daemon_expects(scene->daemon, "upgrade failed");
    daemon_configure(scene->daemon, "ecko; " VERBS_ECHO);
    verbs_run(scene, "-s upgrade", 1);
    ck_assert_int_eq(daemon_pid(scene->daemon), scene->daemon->pid);
}

const struct verbs_steps verbs_failed_upgrade = {
    .act = failed_upgrade_act, .worst = failed_upgrade_worst, .worst_conf = VERBS_ECHO
};

/* Sessions: `session` is already a session of the old process. */
static void begin_upgrade(struct scene *scene)
{
    scene->other = upgrade_start(scene->daemon);
}

static void forward_act(struct scene *scene)
{
    verbs_type(scene, scene->daemon->pid);
    daemon_wait_log(scene->daemon, "gracefully shutting down");
    daemon_wait_log(scene->daemon, "gracefully shutting down");
}

static void end_old(struct scene *scene)
{
    client_echo(scene->session, "goes on");
    verbs_end_sessions(scene);
    verbs_unload(scene); /* the sessions of this process are the old one's, too */
    ck_assert_int_eq(proc_wait(scene->daemon->pid), 0);
    scene->daemon->pid = scene->other;
    verbs_run(scene, "-s upgrade", 0);
    verbs_run(scene, "forkbeard upgrade back", 0);
}

static void forward_worst(struct scene *scene)
{
    pid_t new = upgrade_start(scene->daemon), old = scene->daemon->pid;

    verbs_freeze_worker(scene);
    scene->begun_ms = now_ms();
    ck_assert_int_eq(kill(old, SIGQUIT), 0);
    ck_assert_int_eq(proc_wait(old), 0);
    client_expect_gone(scene->session);
    scene->daemon->pid = new;
}

const struct verbs_steps verbs_forward = { .set_up = begin_upgrade,
    .act = forward_act,
    .back = end_old,
    .worst = forward_worst,
    .worst_conf = VERBS_BOUNDED };

static void back_set_up(struct scene *scene)
{
    begin_upgrade(scene);
    close(scene->session);
    scene->session = quit_begin_session_of(scene->daemon, scene->other);
}

/* A command waits for the end of the new process, prevented by the session. */
static void back_act(struct scene *scene)
{
    if (verbs_types(scene, "QUIT"))
        verbs_type(scene, scene->other);
    else
        ck_assert_int_eq(daemon_run(scene->daemon, "upgrade", "back", "--timeout", "3s", "-c",
                             "forkbeard.conf", NULL),
            3);
    daemon_wait_log(scene->daemon, "gracefully shutting down");
    daemon_wait_log(scene->daemon, "gracefully shutting down");
}

static void end_new(struct scene *scene)
{
    client_echo(scene->session, "goes on");
    verbs_end_sessions(scene);
    upgrade_wait_rollback(scene->daemon);
    verbs_run(scene, "-s upgrade", 0);
    verbs_run(scene, "forkbeard upgrade back", 0);
}

static void back_worst(struct scene *scene)
{
    pid_t new = upgrade_start(scene->daemon);

    close(scene->session);
    scene->session = quit_begin_session_of(scene->daemon, new);
    daemon_expects(scene->daemon, "exited on signal 9");
    proc_freeze(proc_server_of(new, scene->session));
    scene->begun_ms = now_ms();
    verbs_run(scene, "forkbeard upgrade back", 0);
    client_expect_gone(scene->session);
}

const struct verbs_steps verbs_back = { .set_up = back_set_up,
    .act = back_act,
    .back = end_new,
    .worst = back_worst,
    .worst_conf = VERBS_BOUNDED };

/* Being killed */

/* A session of any worker but the given worker. */
static int open_elsewhere(const struct scene *scene, pid_t worker)
{
    for (int64_t until = deadline_ms();;) {
        int client = verbs_open_session(scene->daemon);

        if (proc_server_of(scene->daemon->pid, client) != worker)
            return client;
        ck_assert_int_lt(now_ms(), until);
        close(client);
    }
}

static void kill_worker_act(struct scene *scene)
{
    pid_t worker = proc_server_of(scene->daemon->pid, scene->session);
    int other = open_elsewhere(scene, worker);
    pid_t workers[2];

    daemon_expects(scene->daemon, "exited on signal 9");
    scene->begun_ms = now_ms();
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    daemon_wait_log(scene->daemon, "exited on signal 9");
    WAIT_FOR(proc_children(scene->daemon->pid, workers, 2) == 2 && !proc_has(workers, 2, worker));
    client_echo(other, "goes on");
    close(other);
}

const struct verbs_steps verbs_kill_worker = { .act = kill_worker_act };

static void kill_master_act(struct scene *scene)
{
    daemon_expects(scene->daemon, "the master process has gone");
    daemon_expects(scene->daemon, ", which was killed, still ha");
    daemon_signal(scene->daemon, SIGKILL);
    ck_assert_int_eq(daemon_wait(scene->daemon), 128 + SIGKILL);
    daemon_wait_log(scene->daemon, "the master process has gone");
    daemon_wait_log(scene->daemon, "the master process has gone");
}

/* The next start names the workers, and a stop ends all. */
static void kill_master_back(struct scene *scene)
{
    verbs_run(scene, "forkbeard", 0);
    daemon_wait_log(scene->daemon, ", which was killed, still ha");
    ck_assert_uint_gt(control_count(control_ask(scene->daemon, "status"), "left_behind"), 0);
}

static void end_left(struct scene *scene)
{
    verbs_run(scene, "-s stop", 0);
    client_expect_gone(scene->session);
    ck_assert_int_eq(daemon_wait(scene->daemon), 0);
    proc_reap_orphans();
}

static void kill_master_worst(struct scene *scene)
{
    kill_master_act(scene);
    client_expect_gone(scene->session);
    proc_reap_orphans();
    verbs_run(scene, "forkbeard", 0); /* removes what the other has left */
}

const struct verbs_steps verbs_kill_master = { .act = kill_master_act,
    .back = kill_master_back,
    .tear_down = end_left,
    .worst = kill_master_worst,
    .worst_conf = VERBS_BOUNDED };
