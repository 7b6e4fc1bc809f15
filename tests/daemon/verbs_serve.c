/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts, reloads, ends and drains a daemon, and has it serve again. */
#include "daemon/client.h"
#include "daemon/proc.h"
#include "daemon/quit.h"
#include "daemon/verbs_steps.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRIES 10

/* Starting */

static void start_act(struct scene *scene)
{
    ck_assert_int_eq(client_error(scene->daemon->ports[0]), ECONNREFUSED);
    verbs_run(scene, "forkbeard", 0);
    verbs_load(scene);
}

static void quit_back(struct scene *scene)
{
    verbs_run(scene, "-s quit", 0);
    WAIT_FOR(client_error(scene->daemon->ports[0]) == ECONNREFUSED);
    verbs_run(scene, "-s stop", 0);
    if (proc_state(scene->daemon->pid) != 0)
        ck_assert_int_eq(daemon_wait(scene->daemon), 0);
    scene->daemon->pid = 0;
}

static void start_worst(struct scene *scene)
{
    daemon_expects(scene->daemon, "worker_start_timeout");
    daemon_expects(scene->daemon, "exited on signal 9");
    daemon_write(scene->daemon, "late", "x");
    verbs_run(scene, "forkbeard", 1);
    proc_reap_orphans();
}

const struct verbs_steps verbs_start = { .act = start_act,
    .back = quit_back,
    .worst = start_worst,
    .worst_conf = VERBS_HANGS,
    .stopped = true };

/* Reloading */

static void reload_act(struct scene *scene)
{
    verbs_type(scene, scene->daemon->pid);
    daemon_wait_log(scene->daemon, "generation 2 serves in place of generation 1");
}

static void reload_back(struct scene *scene)
{
    verbs_run(scene, "-s reload", 0);
}

static void hang_worst(struct scene *scene)
{
    daemon_expects(scene->daemon, "worker_start_timeout");
    daemon_expects(scene->daemon, "exited on signal 9");
    daemon_configure(scene->daemon, "%s", VERBS_HANGS);
    daemon_write(scene->daemon, "late", "x");
    verbs_run(scene, strchr(scene->verb->name, '-') == NULL ? "-s reload" : scene->typed, 1);
    client_echo(scene->session, "goes on");
}

const struct verbs_steps verbs_reload = {
    .act = reload_act, .back = reload_back, .worst = hang_worst, .worst_conf = VERBS_ECHO
};

static void failed_reload_act(struct scene *scene)
{
    daemon_expects(scene->daemon, "unknown directive");
    daemon_configure(scene->daemon, "ecko; " VERBS_ECHO);
    verbs_run(scene, "-s reload", 1);
    ck_assert_ptr_nonnull(strstr(scene->daemon->err, "the previous configuration stays in force"));
}

const struct verbs_steps verbs_failed_reload = {
    .act = failed_reload_act, .worst = hang_worst, .worst_conf = VERBS_ECHO
};

/* Repeats the reload when workers crash after the probation, for want of a processor. */
static void crashing_reload_act(struct scene *scene)
{
    daemon_expects(scene->daemon, "died at once");
    daemon_expects(scene->daemon, "exited on signal 14");
    daemon_expects(scene->daemon, "every worker process of generation ");
    for (int tries = 1; tries < TRIES; tries++) {
        daemon_configure(scene->daemon, "%s", VERBS_CRASHES);
        if (daemon_run(scene->daemon, "-s", "reload", "-c", "forkbeard.conf", NULL) == 1)
            return;
        daemon_configure(scene->daemon, "%s", VERBS_ECHO);
        verbs_run(scene, "-s reload", 0);
    }
    ck_abort_msg("no reload was taken back");
}

const struct verbs_steps verbs_crashing_reload = { .act = crashing_reload_act };

/* Ending and serving again */

static bool is_quitting(struct scene *scene)
{
    return client_error(scene->daemon->ports[0]) == ECONNREFUSED &&
           quit_is_aside(scene->daemon, scene->daemon->pid);
}

static void quit_act(struct scene *scene)
{
    verbs_type(scene, scene->daemon->pid);
    WAIT_FOR(is_quitting(scene));
}

static void quit_set_up(struct scene *scene)
{
    if (!verbs_types(scene, "TERM"))
        return;
    daemon_configure(scene->daemon, "sigterm_shutdown graceful; " VERBS_ECHO);
    verbs_run(scene, "-s reload", 0);
}

static void resume_back(struct scene *scene)
{
    verbs_run(scene, "-s resume", 0);
}

static void end_worst(struct scene *scene)
{
    verbs_freeze_worker(scene);
    daemon_signal(scene->daemon, SIGQUIT);
    ck_assert_int_eq(daemon_wait(scene->daemon), 0);
    client_expect_gone(scene->session);
}

const struct verbs_steps verbs_quit = { .set_up = quit_set_up,
    .act = quit_act,
    .back = resume_back,
    .worst = end_worst,
    .worst_conf = VERBS_BOUNDED };

static void begin_quit(struct scene *scene)
{
    scene->other = scene->daemon->pid;
    verbs_run(scene, "-s quit", 0);
}

static void start_after_quit_act(struct scene *scene)
{
    begin_quit(scene);
    verbs_run(scene, "forkbeard", 0);
    ck_assert_int_ne(scene->daemon->pid, scene->other);
}

/* The new process has no session, and ends; the old process serves again. */
static void start_after_quit_back(struct scene *scene)
{
    verbs_run(scene, "-s quit", 0);
    WAIT_FOR(client_error(scene->daemon->ports[0]) == ECONNREFUSED);
    ck_assert_int_eq(daemon_wait(scene->daemon), 0);
    verbs_run(scene, "-s resume", 0);
    scene->daemon->pid = scene->other;
    ck_assert_int_eq(daemon_pid(scene->daemon), scene->other);
    client_echo(scene->session, "goes on");
}

const struct verbs_steps verbs_start_after_quit = { .act = start_after_quit_act,
    .back = start_after_quit_back };

static void resume_act(struct scene *scene)
{
    verbs_type(scene, scene->daemon->pid);
    WAIT_FOR(!quit_has_names(scene->daemon, scene->daemon->pid));
    ck_assert_int_eq(daemon_pid(scene->daemon), scene->daemon->pid);
}

static void quit_again(struct scene *scene)
{
    verbs_run(scene, "-s quit", 0);
    WAIT_FOR(is_quitting(scene));
    verbs_run(scene, "-s resume", 0);
}

static void resume_worst(struct scene *scene)
{
    begin_quit(scene);
    scene->begun_ms = now_ms();
    hang_worst(scene);
}

const struct verbs_steps verbs_resume = { .set_up = begin_quit,
    .act = resume_act,
    .back = quit_again,
    .worst = resume_worst,
    .worst_conf = VERBS_ECHO };

/* From then on the sessions are a child's, with another pid. */
static void leave_act(struct scene *scene)
{
    verbs_type(scene, scene->daemon->pid);
    ck_assert_int_eq(daemon_wait(scene->daemon), 0);
}

static void leave_back(struct scene *scene)
{
    verbs_run(scene, "forkbeard", 0);
    client_echo(scene->session, "goes on");
}

static void leave_tear_down(struct scene *scene)
{
    verbs_run(scene, "-s stop", 0);
    client_expect_gone(scene->session);
    ck_assert_int_eq(daemon_wait(scene->daemon), 0);
    proc_reap_orphans();
}

const struct verbs_steps verbs_leave = {
    .act = leave_act, .back = leave_back, .tear_down = leave_tear_down
};

static void stop_act(struct scene *scene)
{
    verbs_type(scene, scene->daemon->pid);
    ck_assert_int_eq(daemon_wait(scene->daemon), 0);
}

static void start_back(struct scene *scene)
{
    verbs_run(scene, "forkbeard", 0);
}

static void stop_worst(struct scene *scene)
{
    verbs_freeze_worker(scene);
    stop_act(scene);
}

const struct verbs_steps verbs_stop = {
    .act = stop_act, .back = start_back, .worst = stop_worst, .worst_conf = VERBS_ECHO
};

static void winch_act(struct scene *scene)
{
    verbs_type(scene, scene->daemon->pid);
    for (int i = 0; i < 2; i++) /* not of the master, whose line has these words, too */
        daemon_wait_log(scene->daemon, "#0: gracefully shutting down");
}

static void winch_back(struct scene *scene)
{
    daemon_signal(scene->daemon, SIGHUP);
}

static void winch_worst(struct scene *scene)
{
    verbs_freeze_worker(scene);
    daemon_signal(scene->daemon, SIGWINCH);
    WAIT_FOR(proc_child_n(scene->daemon->pid) == 0);
    client_expect_gone(scene->session);
}

const struct verbs_steps verbs_winch = {
    .act = winch_act, .back = winch_back, .worst = winch_worst, .worst_conf = VERBS_BOUNDED
};
