/* SPDX-License-Identifier: BSD-2-Clause */
/* A master process that was told to quit, and has sessions yet, is told to serve again. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/fault_plan.h"
#include "daemon/proc.h"
#include "daemon/quit.h"
#include "daemon/upgrade.h"
#include "support/test.h"

#include <signal.h>
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

/* The signal comes when the master wakes because the last worker has ended, before it sees the
 * end. */
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

/* The signal comes while the master is busy, before it reads the command. */
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

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_quit_is_taken_back, 0, 2 * QUIT_MODES);
    tcase_add_test(tcase, a_resume_just_before_the_exit);
    tcase_add_test(tcase, a_reload_just_before_a_quit_is_dropped);
}

TEST_MAIN("resume", add_tests)
