/* SPDX-License-Identifier: BSD-2-Clause */
/* A master process leaves its sessions to a child, and exits at once; and the awaited end of all
 * master processes. */
#include "daemon/client.h"
#include "daemon/fault_plan.h"
#include "daemon/proc.h"
#include "daemon/quit.h"
#include "daemon/resources.h"
#include "daemon/upgrade.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT "-c", "forkbeard.conf", "-s"

/* The process with the sessions left by the daemon, by its name, except `before`; 0: none. */
static pid_t find_left(const struct daemon *daemon, pid_t before)
{
    static const char name[] = "forkbeard.pid.quit.";
    DIR *dir = opendir(daemon->directory);
    const struct dirent *entry;
    pid_t pid = 0, named;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, name, strlen(name)) == 0 &&
            (named = (pid_t)strtol(entry->d_name + strlen(name), NULL, 10)) != before)
            pid = named;
    closedir(dir);
    return pid;
}

/* Makes the daemon leave its sessions; returns the process now holding the sessions. */
static pid_t leave(struct daemon *daemon, pid_t before)
{
    pid_t pid = daemon->pid, left;

    ck_assert_int_eq(quit_run(daemon, "leave"), 0);
    ck_assert_str_eq(daemon->err, "");
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert(!quit_has_names(daemon, pid));
    left = find_left(daemon, before);
    ck_assert_int_ne(left, 0);
    ck_assert(quit_is_aside(daemon, left));
    return left;
}

/* The left process ends, and the last worker too. */
static void expect_end(struct daemon *daemon, pid_t left)
{
    ck_assert_int_eq(proc_wait(left), 0);
    ck_assert(!quit_has_names(daemon, left));
}

START_TEST(sessions_go_on)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int clients[2];
    pid_t left[2];

    for (int i = 0; i < 2; i++) {
        clients[i] = quit_begin_session(daemon);
        left[i] = leave(daemon, i > 0 ? left[0] : 0);
        client_echo(clients[i], "goes on");
        ck_assert_uint_eq(quit_count_status(daemon, "quitting"), (unsigned)i + 1);
        daemon_start(daemon);
        upgrade_echo_once(daemon);
    }
    client_echo(clients[0], "goes on beside two");
    ck_assert_uint_eq(quit_count_status(daemon, "master process "), 3);
    ck_assert_int_eq(quit_run(daemon, "reload"), 0);
    quit_end_session(daemon, clients[0], left[0]);
    ck_assert_uint_eq(quit_count_status(daemon, "quitting"), 1);
    quit_end_session(daemon, clients[1], left[1]);
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

START_TEST(stop_reaches_what_was_left)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t left = leave(daemon, 0);

    daemon_start(daemon);
    ck_assert_int_eq(quit_run(daemon, "stop"), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    expect_end(daemon, left);
    client_expect_gone(client);
    close(client);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

/* The signal comes when the leaving process acts on signals no more. _i: the signal. */
START_TEST(a_late_signal_reaches_what_was_left)
{
    struct daemon *daemon = daemon_create(1);
    struct fault_plan *plan = fault_plan_share(daemon);
    int client;
    pid_t left;

    daemon_configure(daemon, QUIT_ECHO);
    daemon->before_exec = fault_plan_preload;
    daemon_start(daemon);
    daemon->before_exec = NULL;
    client = quit_begin_session(daemon);
    fault_plan_signal(plan, "fork", _i == 0 ? SIGUSR1 : SIGTERM);
    ck_assert_int_eq(quit_run(daemon, "leave"), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_uint_eq(atomic_load(&plan->hits), 1);
    if (_i == 0) {
        daemon_wait_log(daemon, "signal 10 (SIGUSR1) received from ");
        client_echo(client, "goes on");
        left = find_left(daemon, 0);
        quit_end_session(daemon, client, left);
    } else {
        daemon_wait_log(daemon, "signal 15 (SIGTERM) received from ");
        client_expect_gone(client);
        close(client);
        WAIT_FOR(find_left(daemon, 0) == 0);
    }
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_single_process_has_nobody_to_leave_to)
{
    struct daemon *daemon = daemon_start_new(1, "master_process off; " QUIT_ECHO);

    ck_assert_int_eq(quit_run(daemon, "leave"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "sessions are left over a control socket alone"));
    upgrade_echo_once(daemon);
    ck_assert_int_eq(daemon_run(daemon, WAIT, "quit", "--wait", "1h", NULL), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

/* --wait */

static int64_t wait_for(struct daemon *daemon, const char *command, const char *time, int code)
{
    int64_t begun = now_ms();

    ck_assert_int_eq(daemon_run(daemon, WAIT, command, "--wait", time, NULL), code);
    return now_ms() - begun;
}

START_TEST(wait_until_all_have_ended)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon), other;
    pid_t left = leave(daemon, 0);

    daemon_start(daemon);
    other = quit_begin_session(daemon);
    ck_assert_int_ge(wait_for(daemon, "quit", "300ms", 0), 300);
    ck_assert_ptr_nonnull(strstr(daemon->err, "has not ended within 300 ms, and is told to stop"));
    ck_assert_int_eq(daemon_wait(daemon), 0);
    expect_end(daemon, left);
    client_expect_gone(client);
    client_expect_gone(other);
    close(client);
    close(other);
    proc_reap_orphans();
    wait_for(daemon, "quit", "1h", 0); /* nobody is left */
    ck_assert_str_eq(daemon->err, "");
    daemon_finish(daemon);
}
END_TEST

START_TEST(wait_no_longer_than_needed)
{
    static const char *const controls[] = { "", "control off; " };
    struct daemon *daemon = daemon_start_new(1, "%s" QUIT_ECHO, controls[_i / 2]);

    wait_for(daemon, _i % 2 == 0 ? "quit" : "stop", "1h", 0);
    ck_assert_str_eq(daemon->err, "");
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(wait_for_two_of_an_upgrade)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old = daemon->pid;

    upgrade_start(daemon);
    wait_for(daemon, "quit", "300ms", 0);
    client_expect_gone(client);
    close(client);
    ck_assert_int_eq(proc_wait(old), 0);
    daemon->pid = 0;
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

START_TEST(wait_belongs_to_an_end)
{
    struct daemon *daemon = daemon_create(0);

    daemon_configure(daemon, "events {} stream {}");
    ck_assert_int_eq(daemon_run(daemon, WAIT, "reload", "--wait", "3s", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "\"--wait\" belongs to \"-s quit\" and \"-s stop\""));
    ck_assert_int_eq(daemon_run(daemon, WAIT, "quit", "--wait", "soon", NULL), 1);
    ck_assert_int_eq(daemon_run(daemon, "--wait", "3s", NULL), 1);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, sessions_go_on);
    tcase_add_test(tcase, stop_reaches_what_was_left);
    tcase_add_loop_test(tcase, a_late_signal_reaches_what_was_left, 0, 2);
    tcase_add_test(tcase, the_single_process_has_nobody_to_leave_to);
    tcase_add_test(tcase, wait_until_all_have_ended);
    tcase_add_loop_test(tcase, wait_no_longer_than_needed, 0, 4);
    tcase_add_test(tcase, wait_for_two_of_an_upgrade);
    tcase_add_test(tcase, wait_belongs_to_an_end);
}

TEST_MAIN("leave", add_tests)
