/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals to a master, a worker and a single process; reloads are in test_reload.c. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SERVERS                                                                                    \
    "stream { server { listen 127.0.0.1:$0; listen unix:$D/socket; echo; } "                       \
    "server { listen 127.0.0.1:$1; stub_status; } }\n"
#define TWO_WORKERS "worker_processes 2; events {} " SERVERS
#define ONE_WORKER "events {} " SERVERS
#define SINGLE "master_process off; events {} " SERVERS

static const int ending[] = { SIGTERM, SIGINT };
static const char *const kinds[] = { TWO_WORKERS, SINGLE };

/* _i: the kind, and the signal. */
START_TEST(ends_at_once)
{
    struct daemon *daemon = daemon_start_new(2, "%s", kinds[_i % 2]);
    int client = client_open(daemon->ports[0]);

    client_echo(client, "begun");
    daemon_stop(daemon, ending[_i / 2]);
    client_expect_gone(client);
    ck_assert_int_eq(client_error(daemon->ports[0]), ECONNREFUSED);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(quit_lets_sessions_finish)
{
    struct daemon *daemon = daemon_start_new(2, "%s", kinds[_i]);
    int client = client_open(daemon->ports[0]);

    client_echo(client, "begun");
    daemon_signal(daemon, SIGQUIT);
    WAIT_FOR(client_error(daemon->ports[0]) == ECONNREFUSED);
    WAIT_FOR(!daemon_has(daemon, "socket"));
    client_echo(client, "goes on");
    ck_assert_int_ne(proc_state(daemon->pid), 'Z');
    close(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

/* A client not yet accepted when the drain begins. Only one worker moves, perhaps a worker without
 * the accept mutex: then the worker finds the client as it steps back. */
START_TEST(drain_serves_who_waits)
{
    struct daemon *daemon = daemon_create(2);
    pid_t workers[2];
    int client;

    daemon_configure(daemon, "worker_processes 2; events { accept_mutex_delay 60s; } " SERVERS);
    daemon_start(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    proc_freeze(workers[0]);
    proc_freeze(workers[1]);
    client = client_open(daemon->ports[0]);
    client_send(client, "who is there");
    daemon_signal(daemon, SIGQUIT);
    WAIT_FOR(!daemon_has(daemon, "socket"));
    ck_assert_int_eq(kill(workers[_i], SIGCONT), 0);
    client_expect(client, "who is there");
    close(client);
    ck_assert_int_eq(kill(workers[1 - _i], SIGCONT), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(term_after_quit)
{
    struct daemon *daemon = daemon_start_new(2, SINGLE);
    int client = client_open(daemon->ports[0]);

    client_echo(client, "begun");
    daemon_signal(daemon, SIGQUIT);
    daemon_wait_log(daemon, "gracefully shutting down");
    daemon_signal(daemon, SIGQUIT); /* changes nothing */
    client_echo(client, "goes on");
    daemon_stop(daemon, SIGTERM);
    client_expect_gone(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* A process keeps the path of a unix socket taken over meanwhile. */
START_TEST(end_leaves_a_successor_its_socket)
{
    struct daemon *daemon = daemon_start_new(2, "%s", kinds[_i]), *next = daemon_create(0);
    int client = client_open(daemon->ports[0]);
    char path[128];

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "socket"));
    client_echo(client, "begun");
    daemon_signal(daemon, SIGQUIT);
    daemon_wait_log(daemon, "gracefully shutting down");
    WAIT_FOR(!daemon_has(daemon, "socket"));
    daemon_configure(next, "events {} stream { server { listen unix:%s; echo; } }", path);
    daemon_start(next);
    daemon_stop(daemon, SIGTERM);
    ck_assert(daemon_has(daemon, "socket"));
    close(client);
    client = client_open_unix(path);
    client_echo(client, "the successor");
    close(client);
    daemon_finish(next);
    daemon_finish(daemon);
}
END_TEST

START_TEST(refused_start_leaves_the_other_its_socket)
{
    struct daemon *daemon = daemon_start_new(2, ONE_WORKER), *next = daemon_create(0);
    char path[128];

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "socket"));
    daemon_configure(next, "%sevents {} stream { server { listen unix:%s; echo; } }",
        "master_process off; ", path);
    daemon_expects(next, "the socket is in use");
    ck_assert_int_eq(daemon_run(next, "-c", "forkbeard.conf", "-g", "daemon off;", NULL), 75);
    close(client_open_unix(path));
    daemon_finish(daemon);
    daemon_finish(next);
}
END_TEST

START_TEST(logs_are_reopened)
{
    struct daemon *daemon = daemon_create(2);
    unsigned descriptors;
    char old[128];
    int client;

    daemon_write(
        daemon, "forkbeard.conf", "error_log error.log info; pid forkbeard.pid; %s", kinds[_i]);
    daemon_start(daemon);
    client = client_open(daemon->ports[0]);
    client_echo(client, "before");
    descriptors = proc_descriptors(daemon->pid);
    snprintf(old, sizeof(old), "%s", daemon_path(daemon, "old.log"));
    ck_assert_int_eq(rename(daemon_path(daemon, "error.log"), old), 0);
    daemon_owns(daemon, "old.log");
    daemon->log_mark = 0;
    daemon_signal(daemon, SIGUSR1);
    WAIT_FOR(daemon_has(daemon, "error.log"));

    daemon_signal(daemon, _i == 0 ? SIGUSR1 : SIGUSR2); /* something to log */
    daemon_wait_log(daemon, _i == 0 ? "SIGUSR1" : "upgrade refused");
    do /* a worker may have been told later */
        close(client_open(daemon->ports[0]));
    while (daemon_count_log(daemon, "client disconnected") == 0);
    client_echo(client, "after");
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(upgrade_is_declined)
{
    struct daemon *daemon = daemon_start_new(2, SINGLE);

    daemon_signal(daemon, SIGUSR2);
    daemon_wait_log(daemon, "[error] ");
    daemon_wait_log(daemon, "upgrade refused: an upgrade needs a master process");
    ck_assert_int_eq(client_error(daemon->ports[0]), 0);
    daemon_finish(daemon);
}
END_TEST

static char terminal_name[64];

static void take_terminal(void)
{
    if (setsid() == -1 || open(terminal_name, O_RDWR) == -1)
        _exit(123);
}

/* The daemon in the foreground of a resized terminal. */
START_TEST(winch_of_a_terminal)
{
    struct daemon *daemon = daemon_create(2);
    struct winsize size = { .ws_row = 10, .ws_col = 20 };
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    ck_assert_int_ne(terminal, -1);
    ck_assert_int_eq(grantpt(terminal), 0);
    ck_assert_int_eq(unlockpt(terminal), 0);
    ck_assert_int_eq(ptsname_r(terminal, terminal_name, sizeof(terminal_name)), 0);
    daemon_configure(daemon, ONE_WORKER);
    daemon->before_exec = take_terminal;
    daemon_start(daemon);
    ck_assert_int_eq(ioctl(terminal, TIOCSWINSZ, &size), 0);
    daemon_signal(daemon, SIGUSR1); /* handled together with the first, or later */
    daemon_wait_log(daemon, "signal 10 (SIGUSR1)");
    ck_assert_uint_eq(daemon_count_log(daemon, "SIGWINCH"), 0);
    ck_assert_uint_eq(proc_child_n(daemon->pid), 1);
    daemon_finish(daemon);
    close(terminal);
}
END_TEST

START_TEST(shutdown_timeout)
{
    struct daemon *daemon = daemon_create(2);
    int client;
    int64_t from;

    daemon_configure(daemon, "worker_shutdown_timeout 300ms; %s", kinds[_i]);
    daemon_start(daemon);
    client = client_open(daemon->ports[0]);
    client_echo(client, "begun");
    from = now_ms();
    daemon_signal(daemon, SIGQUIT);
    client_expect_gone(client);
    ck_assert_int_ge(now_ms() - from, 295);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_uint_eq(
        daemon_count_log(daemon, "worker_shutdown_timeout has passed, 1 connections are closed"),
        1);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* Workers notice the death, drain and end; the next start copes with the leftovers. */
START_TEST(killed_master)
{
    struct daemon *daemon = daemon_start_new(2, TWO_WORKERS);
    int client = client_open(daemon->ports[0]);

    client_echo(client, "begun");
    daemon_expects(daemon, "the master process has gone");
    daemon_signal(daemon, SIGKILL);
    ck_assert_int_eq(daemon_wait(daemon), 128 + SIGKILL);
    daemon_wait_log(daemon, "the master process has gone");
    daemon_wait_log(daemon, "the master process has gone");
    WAIT_FOR(client_error(daemon->ports[0]) == ECONNREFUSED);
    client_echo(client, "goes on");
    close(client);
    proc_reap_orphans();

    ck_assert(daemon_has(daemon, "forkbeard.pid"));
    ck_assert(daemon_has(daemon, "socket"));
    daemon_start(daemon);
    client = client_open(daemon->ports[0]);
    client_echo(client, "again");
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* Signals come at any time: behind the pid file at once. */
START_TEST(end_just_after_the_start)
{
    struct daemon *daemon = daemon_create(2);

    daemon_configure(daemon, "%s", kinds[_i % 2]);
    for (int round = 0; round < 10; round++) {
        daemon_launch(daemon);
        for (int64_t until = deadline_ms(); daemon_pid(daemon) == 0;)
            ck_assert_int_lt(now_ms(), until);
        daemon_stop(daemon, _i < 2 ? SIGTERM : SIGQUIT);
        ck_assert(!daemon_has(daemon, "forkbeard.pid"));
    }
    daemon_finish(daemon);
}
END_TEST

/* Signals before the daemon serves: the exit code may then say that nothing was served. */
START_TEST(end_during_the_start)
{
    struct daemon *daemon = daemon_create(2);
    int code;

    daemon_configure(daemon, SINGLE);
    for (int round = 0; round < 10; round++) {
        daemon_launch(daemon);
        WAIT_FOR(daemon_has(daemon, "forkbeard.pid.lock") || proc_state(daemon->pid) == 'Z');
        daemon_signal(daemon, SIGTERM);
        code = daemon_wait(daemon);
        ck_assert_msg(code == 0 || code == 1, "it ended with %d", code);
        ck_assert(!daemon_has(daemon, "forkbeard.pid.lock"));
        ck_assert(!daemon_has(daemon, "socket"));
    }
    daemon_finish(daemon);
}
END_TEST

START_TEST(single_process)
{
    struct daemon *daemon = daemon_start_new(2, SINGLE);

    ck_assert_uint_eq(proc_child_n(daemon->pid), 0);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "[error] ");
    daemon_wait_log(daemon, "a reload needs a master process");
    daemon_signal(daemon, SIGWINCH);
    ck_assert_int_eq(client_error(daemon->ports[0]), 0);
    ck_assert_uint_eq(daemon_count_log(daemon, "reload"), 1);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, ends_at_once, 0, 4);
    tcase_add_loop_test(tcase, quit_lets_sessions_finish, 0, 2);
    tcase_add_loop_test(tcase, drain_serves_who_waits, 0, 2);
    tcase_add_test(tcase, term_after_quit);
    tcase_add_loop_test(tcase, end_leaves_a_successor_its_socket, 0, 2);
    tcase_add_test(tcase, refused_start_leaves_the_other_its_socket);
    tcase_add_loop_test(tcase, logs_are_reopened, 0, 2);
    tcase_add_test(tcase, upgrade_is_declined);
    tcase_add_test(tcase, winch_of_a_terminal);
    tcase_add_loop_test(tcase, shutdown_timeout, 0, 2);
    tcase_add_test(tcase, killed_master);
    tcase_add_loop_test(tcase, end_just_after_the_start, 0, 4);
    tcase_add_test(tcase, end_during_the_start);
    tcase_add_test(tcase, single_process);
}

TEST_MAIN("signals", add_tests)
