/* SPDX-License-Identifier: BSD-2-Clause */
/* A master process that was told to quit, and has sessions yet, is told to serve again. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/fault_plan.h"
#include "daemon/proc.h"
#include "daemon/quit.h"
#include "daemon/upgrade.h"
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The way back */

static void resume(struct daemon *daemon, pid_t pid, bool by_command)
{
    if (by_command) {
        ck_assert_int_eq(quit_run(daemon, "resume"), 0);
        ck_assert_str_eq(daemon->err, "");
    } else {
        ck_assert_int_eq(kill(pid, SIGHUP), 0);
        WAIT_FOR(daemon_pid(daemon) == pid && !quit_has_names(daemon, pid));
    }
    ck_assert_int_eq(daemon_pid(daemon), pid);
    ck_assert_int_eq(upgrade_read_pid(daemon, "forkbeard.pid.lock"), pid);
    ck_assert(!quit_has_names(daemon, pid));
    daemon->pid = pid;
}

START_TEST(a_quit_is_taken_back)
{
    struct daemon *daemon = daemon_start_new(1, "%s", quit_modes[_i / 2]);
    int clients[3];
    pid_t pid = daemon->pid;
    struct json_value status;

    for (int i = 0; i < 3; i++) {
        clients[i] = quit_begin_session(daemon);
        quit_daemon(daemon);
        resume(daemon, pid, _i % 2 == 0);
        WAIT_FOR(client_error(daemon->ports[0]) == 0);
        upgrade_echo_once(daemon);
        for (int j = 0; j <= i; j++)
            client_echo(clients[j], "goes on");
    }
    status = control_ask(daemon, "status");
    ck_assert_str_eq(control_text(status, "state"), "running");
    ck_assert_int_eq(quit_run(daemon, "reload"), 0);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    WAIT_FOR(proc_child_n(pid) == 2);
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

START_TEST(not_while_another_one_runs)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old = quit_daemon(daemon);
    char refused[64];

    daemon_start(daemon);
    snprintf(refused, sizeof(refused), "resume refused: master process %d runs", (int)daemon->pid);
    ck_assert_int_eq(quit_run(daemon, "resume"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, refused + strlen("resume refused: ")));
    daemon_wait_log(daemon, refused);
    ck_assert_int_eq(kill(old, SIGHUP), 0);
    daemon_wait_log(daemon, refused);
    client_echo(client, "goes on");
    upgrade_echo_once(daemon);
    ck_assert(quit_is_aside(daemon, old));

    daemon_stop(daemon, SIGQUIT);
    resume(daemon, old, true);
    client_echo(client, "goes on");
    upgrade_echo_once(daemon);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_resume_that_fails)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t pid = quit_daemon(daemon);

    daemon_expects(daemon, "unknown directive");
    daemon_configure(daemon, "echo_echo; " QUIT_ECHO);
    ck_assert_int_eq(quit_run(daemon, "resume"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "unknown directive \"echo_echo\""));
    ck_assert_ptr_nonnull(strstr(daemon->err, "resume failed"));
    daemon_wait_log(daemon, "resume failed: ");
    ck_assert(quit_is_aside(daemon, pid));
    ck_assert(!daemon_has(daemon, "forkbeard.pid") && !daemon_has(daemon, "forkbeard.pid.lock"));
    ck_assert_int_eq(client_error(daemon->ports[0]), ECONNREFUSED);

    daemon_configure(daemon, QUIT_ECHO);
    resume(daemon, pid, true);
    client_echo(client, "goes on");
    close(client);
    WAIT_FOR(proc_child_n(pid) == 2);
    daemon_finish(daemon);
}
END_TEST

/* Workers of the new generation hang while they set themselves up, and the last session ends. */
START_TEST(a_resume_outlives_the_last_session)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t pid = quit_daemon(daemon);

    daemon_configure(daemon, "%s", QUIT_HANGS);
    daemon_write(daemon, "late", "x");
    daemon_mark_log(daemon);
    ck_assert_int_eq(kill(pid, SIGHUP), 0);
    daemon_wait_log(daemon, "start worker process");
    daemon_wait_log(daemon, "start worker process");
    close(client);
    WAIT_FOR(proc_child_n(pid) == 2);
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    daemon->pid = pid;
    WAIT_FOR(daemon_pid(daemon) == pid && !quit_has_names(daemon, pid));
    WAIT_FOR(client_error(daemon->ports[0]) == 0);
    daemon_finish(daemon);
}
END_TEST

/* The signal comes when the master wakes because the last worker has ended, before it sees that. */
START_TEST(a_resume_just_before_the_exit)
{
    struct daemon *daemon = daemon_create(1);
    struct fault_plan *plan = fault_plan_share(daemon);
    int client;
    pid_t pid;

    daemon_configure(daemon, "worker_processes 1; events {} " QUIT_SERVER(""));
    daemon->before_exec = fault_plan_preload;
    daemon_start(daemon);
    daemon->before_exec = NULL;
    client = quit_begin_session(daemon);
    pid = quit_daemon(daemon);
    fault_plan_signal(plan, "waitid", SIGHUP);
    close(client);
    daemon_wait_log(daemon, "exited with code 0");
    ck_assert_uint_eq(atomic_load(&plan->hits), 1);
    daemon_wait_log(daemon, "signal 1 (SIGHUP) received");
    WAIT_FOR(daemon_pid(daemon) == pid && !quit_has_names(daemon, pid));
    daemon->pid = pid;
    upgrade_echo_once(daemon);
    daemon_finish(daemon);
}
END_TEST

/* _i: by a signal that goes on with the first end, or ends it at once. */
START_TEST(a_resume_is_given_up)
{
    static const int signals[] = { SIGQUIT, SIGINT, SIGTERM };
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t pid = quit_daemon(daemon);

    daemon_expects(daemon, "exited on signal 9"); /* a worker that hangs */
    daemon_configure(daemon, "%s", QUIT_HANGS);
    daemon_write(daemon, "late", "x");
    ck_assert_int_eq(kill(pid, SIGHUP), 0);
    daemon_wait_log(daemon, ", resuming");
    ck_assert_int_eq(kill(pid, signals[_i]), 0);
    if (_i == 0) {
        daemon_wait_log(daemon, "resume failed: ");
        WAIT_FOR(!daemon_has(daemon, "forkbeard.pid") && !daemon_has(daemon, "forkbeard.sock"));
        ck_assert(quit_is_aside(daemon, pid));
        client_echo(client, "goes on");
        WAIT_FOR(proc_child_n(pid) == 1);
        daemon_configure(daemon, QUIT_ECHO);
        resume(daemon, pid, true);
        client_echo(client, "goes on");
    } else {
        ck_assert_int_eq(proc_wait(pid), 0);
        client_expect_gone(client);
    }
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* A reload that was asked for before is not one that takes the end back. */
START_TEST(a_reload_that_waits_is_dropped)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t pid = daemon->pid;

    proc_freeze(pid);
    daemon_signal(daemon, SIGHUP);
    daemon_signal(daemon, SIGQUIT);
    daemon_signal(daemon, SIGCONT);
    WAIT_FOR(quit_is_aside(daemon, pid));
    daemon->pid = 0;
    WAIT_FOR(client_error(daemon->ports[0]) == ECONNREFUSED);
    quit_end_session(daemon, client, pid);
    ck_assert_uint_eq(daemon_count_log(daemon, "resuming"), 0);
    daemon_finish(daemon);
}
END_TEST

/* The signal comes while the master has something else to do, before it reads the command. */
START_TEST(a_reload_just_before_a_quit_is_dropped)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, QUIT_ECHO);
    for (int i = 0; i < 20; i++) {
        int asks, quits;

        daemon_start(daemon);
        asks = control_open(daemon);
        quits = control_open(daemon);
        control_send(asks, "status");
        daemon_signal(daemon, SIGHUP);
        control_send(quits, "quit");
        ck_assert_int_eq(daemon_wait(daemon), 0);
        close(asks);
        close(quits);
    }
    ck_assert_uint_eq(daemon_count_log(daemon, "resuming"), 0);
    daemon_finish(daemon);
}
END_TEST

/* A quit in each phase of a reload, by a generation that hangs: no name or process is left. */
START_TEST(a_quit_within_a_reload)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t pid = daemon->pid;

    daemon_expects(daemon, "exited on signal 9");
    if (_i == 1) {
        daemon_configure(daemon, "%s", QUIT_HANGS);
        daemon_write(daemon, "late", "x");
    }
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    if (_i == 1)
        daemon_wait_log(daemon, "start worker process");
    quit_daemon(daemon);
    daemon_configure(daemon, QUIT_ECHO);
    if (_i == 1) /* their sockets keep the address for nearly as long as a start waits for it */
        daemon_wait_log(daemon, "exited on signal 9");
    daemon_start(daemon);
    upgrade_echo_once(daemon);
    quit_end_session(daemon, client, pid);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_quit_is_taken_back, 0, 2 * QUIT_MODES);
    tcase_add_test(tcase, not_while_another_one_runs);
    tcase_add_test(tcase, a_resume_that_fails);
    tcase_add_test(tcase, a_resume_outlives_the_last_session);
    tcase_add_test(tcase, a_resume_just_before_the_exit);
    tcase_add_loop_test(tcase, a_resume_is_given_up, 0, 3);
    tcase_add_test(tcase, a_reload_that_waits_is_dropped);
    tcase_add_test(tcase, a_reload_just_before_a_quit_is_dropped);
    tcase_add_loop_test(tcase, a_quit_within_a_reload, 0, 2);
}

TEST_MAIN("resume", add_tests)
