/* SPDX-License-Identifier: BSD-2-Clause */
/* A master process told to quit lets its sessions end while the next start serves. */
#include "daemon/client.h"
#include "daemon/proc.h"
#include "daemon/quit.h"
#include "daemon/rate_clients.h"
#include "daemon/upgrade.h"
#include "support/test.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The next start */

START_TEST(names_at_each_step)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old = quit_daemon(daemon);

    ck_assert(!daemon_has(daemon, "forkbeard.pid"));
    ck_assert(!daemon_has(daemon, "forkbeard.pid.lock"));
    ck_assert(!daemon_has(daemon, "forkbeard.sock"));
    ck_assert(!daemon_has(daemon, "socket"));
    ck_assert_int_eq(client_error(daemon->ports[0]), ECONNREFUSED);
    client_echo(client, "goes on");
    ck_assert_uint_eq(quit_count_status(daemon, "master process "), 1);
    ck_assert_uint_eq(quit_count_status(daemon, "quitting"), 1);
    ck_assert_uint_eq(quit_count_status(daemon, "\n         1  draining "), 2);
    ck_assert_int_eq(daemon_run(daemon, "status", "--json", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "[{\"number\":1,\"state\":\"draining\","));

    daemon_start(daemon);
    upgrade_echo_once(daemon);
    client_echo(client, "goes on beside it");
    ck_assert_uint_eq(quit_count_status(daemon, "master process "), 2);
    ck_assert_uint_eq(quit_count_status(daemon, "quitting"), 1);
    ck_assert_int_eq(daemon_run(daemon, "status", "--json", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "}\n{\"ok\":true,"));

    quit_end_session(daemon, client, old);
    ck_assert_uint_eq(quit_count_status(daemon, "master process "), 1);
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    ck_assert_int_eq(upgrade_read_pid(daemon, "forkbeard.pid.lock"), daemon->pid);
    upgrade_echo_once(daemon); /* the path is there */
    daemon_stop(daemon, SIGQUIT);
    ck_assert(!quit_has_names(daemon, daemon->pid));
    daemon_finish(daemon);
}
END_TEST

/* With sessions that stay, and clients that come all the time: none is lost, and none refused once
 * the start has returned. Odd ones by the signal, and the start does not wait for anything. */
START_TEST(a_start_at_once_under_load)
{
    struct daemon *daemon = daemon_start_new(1, "%s", quit_modes[_i / 2]);
    struct rate_clients clients;
    unsigned refused, reset;
    pid_t old[3];
    int stays[3];

    rate_clients_start(&clients,
        &(struct rate_clients_options) {
            .port = daemon->ports[0], .rate = 500, .long_n = 20, .talk_ms = 20, .missed = -1u });
    for (int i = 0; i < 3; i++) {
        old[i] = daemon->pid;
        stays[i] = quit_begin_session(daemon);
        if (_i % 2 == 0)
            ck_assert_int_eq(quit_run(daemon, "quit"), 0);
        else
            daemon_signal(daemon, SIGQUIT);
        ck_assert_int_eq(daemon_start_background(daemon), 0);
        ck_assert_int_ne(daemon->pid, old[i]);
        rate_clients_wait(&clients, 3); /* attempts from before have been counted */
        refused = atomic_load(&clients.refused);
        reset = atomic_load(&clients.reset);
        rate_clients_wait(&clients, 150);
        ck_assert_uint_eq(atomic_load(&clients.refused), refused);
        ck_assert_uint_eq(atomic_load(&clients.reset), reset);
        ck_assert_uint_eq(atomic_load(&clients.long_ended), 0);
    }
    rate_clients_stop(&clients);
    rate_clients_check(&clients);
    for (int i = 0; i < 3; i++)
        quit_end_session(daemon, stays[i], old[i]);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(several_drain_at_once)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int clients[3];
    pid_t old[3];

    for (int i = 0; i < 3; i++) {
        clients[i] = quit_begin_session(daemon);
        old[i] = quit_daemon(daemon);
        daemon_start(daemon);
    }
    ck_assert_uint_eq(quit_count_status(daemon, "master process "), 4);
    ck_assert_uint_eq(quit_count_status(daemon, "quitting"), 3);
    quit_end_session(daemon, clients[1], old[1]);
    client_echo(clients[0], "goes on");
    client_echo(clients[2], "goes on");
    ck_assert_uint_eq(quit_count_status(daemon, "quitting"), 2);

    ck_assert_int_eq(quit_run(daemon, "stop"), 0);
    ck_assert_str_eq(daemon->err, "");
    ck_assert_int_eq(proc_wait(old[0]), 0);
    ck_assert_int_eq(proc_wait(old[2]), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    client_expect_gone(clients[0]);
    client_expect_gone(clients[2]);
    close(clients[0]);
    close(clients[2]);
    daemon_finish(daemon);
}
END_TEST

/* A stopped worker blocks no other worker. */
START_TEST(stop_beside_one_that_stands_still)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old = quit_daemon(daemon), stop;

    daemon_start(daemon);
    proc_freeze(old);
    stop = fork();
    if (stop == 0)
        _exit(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "stop", "--timeout", "10m", NULL));
    ck_assert_int_gt(stop, 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_int_eq(kill(old, SIGCONT), 0);
    ck_assert_int_eq(proc_wait(stop), 0);
    ck_assert_int_eq(proc_wait(old), 0);
    client_expect_gone(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(commands_when_all_shut_down)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old;

    ck_assert_int_eq(quit_run(daemon, "resume"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "the daemon is not shutting down"));
    old = quit_daemon(daemon);
    ck_assert_int_eq(quit_run(daemon, "quit"), 0);
    ck_assert_ptr_nonnull(strstr(daemon->err, "is shutting down already"));
    ck_assert_int_eq(quit_run(daemon, "reload"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "is shutting down, and \"-s resume\" would"));
    ck_assert_int_eq(quit_run(daemon, "stop"), 0);
    ck_assert_int_eq(proc_wait(old), 0);
    client_expect_gone(client);
    close(client);
    ck_assert_int_eq(quit_run(daemon, "stop"), 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(without_a_control_socket)
{
    struct daemon *daemon = daemon_start_new(1, "control off; " QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old = daemon->pid;

    ck_assert_int_eq(quit_run(daemon, "resume"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "no daemon is shutting down"));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(quit_run(daemon, "quit"), 0);
        WAIT_FOR(upgrade_read_pid(daemon, quit_name("forkbeard.pid", old)) == old);
        ck_assert_int_eq(quit_run(daemon, "quit"), 0);
        ck_assert_ptr_nonnull(strstr(daemon->err, "is shutting down already"));
        if (i == 1)
            break;
        ck_assert_int_eq(quit_run(daemon, "resume"), 0);
        WAIT_FOR(daemon_pid(daemon) == old);
        WAIT_FOR(!quit_has_names(daemon, old));
    }
    daemon->pid = 0;
    daemon_start(daemon);
    ck_assert_int_eq(quit_run(daemon, "stop"), 0);
    ck_assert_int_eq(proc_wait(old), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    client_expect_gone(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* SIGHUP would reload the serving process. _i: there can be no control socket. */
START_TEST(resume_is_no_reload)
{
    static const char *const first[] = { "", "master_process off; " };
    struct daemon *daemon = daemon_start_new(1, "%s" QUIT_ECHO, first[_i]);

    if (_i == 0)
        ck_assert_int_eq(unlink(daemon_path(daemon, "forkbeard.sock")), 0);
    ck_assert_int_eq(quit_run(daemon, "resume"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "no daemon is shutting down"));
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(daemon_count_log(daemon, "SIGHUP"), 0);
    daemon_finish(daemon);
}
END_TEST

/* A stopped worker keeps its listeners: the reply and the lock wait for a while, and the next start
 * tries its addresses again. */
START_TEST(a_worker_stands_still)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old = daemon->pid, workers[2];
    int64_t since = now_ms();
    int terminal;

    ck_assert_uint_eq(proc_children(old, workers, 2), 2);
    proc_freeze(workers[0]);
    quit_daemon(daemon);
    ck_assert_int_ge(now_ms() - since, 1500);
    terminal = quit_open_terminal(daemon);
    daemon_launch(daemon);
    daemon_wait_log(daemon, "another process listens on 127.0.0.1:");
    quit_expect_on_terminal(daemon, terminal, "forkbeard: another process listens on 127.0.0.1:");
    ck_assert_int_eq(kill(workers[0], SIGCONT), 0);
    WAIT_FOR(daemon_pid(daemon) == daemon->pid);
    upgrade_echo_once(daemon);
    close(terminal);
    quit_end_session(daemon, client, old);
    daemon_finish(daemon);
}
END_TEST

/* The start comes before the master process has seen the signal, and says at once for what it
 * waits. _i: the start is ended. */
START_TEST(a_start_that_waits)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    int terminal = quit_open_terminal(daemon);
    pid_t old = daemon->pid;

    proc_freeze(old);
    daemon_signal(daemon, SIGQUIT);
    daemon->pid = 0;
    daemon_expects(daemon, "another master process");
    daemon_launch(daemon);
    daemon_wait_log(daemon, "has the pid file");
    quit_expect_on_terminal(daemon, terminal, "forkbeard: master process ");
    if (_i == 1) {
        daemon_signal(daemon, SIGTERM);
        ck_assert_int_ne(daemon_wait(daemon), 0);
    }
    ck_assert_int_eq(kill(old, SIGCONT), 0);
    if (_i == 0)
        WAIT_FOR(daemon_pid(daemon) == daemon->pid);
    WAIT_FOR(quit_is_aside(daemon, old));
    close(terminal);
    quit_end_session(daemon, client, old);
    daemon_finish(daemon);
}
END_TEST

/* The names of a killed process are harmless, and the next start removes the names. */
START_TEST(a_killed_one_leaves_its_names)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old = quit_daemon(daemon);

    daemon_start(daemon);
    daemon_expects(daemon, "the master process has gone");
    daemon_expects(daemon, "which was killed, still has sessions");
    ck_assert_int_eq(kill(old, SIGKILL), 0);
    ck_assert_int_eq(proc_wait(old), 128 + SIGKILL);
    ck_assert(quit_has_names(daemon, old));
    ck_assert_uint_eq(quit_count_status(daemon, "quitting"), 0);
    ck_assert_int_eq(quit_run(daemon, "resume"), 1);
    client_echo(client, "served by an orphan");
    close(client);
    ck_assert_int_eq(quit_run(daemon, "quit"), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_int_eq(quit_run(daemon, "quit"), 1);
    daemon_start(daemon);
    ck_assert(!quit_has_names(daemon, old));
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

/* Renames the leftovers of a killed process to the names with another pid. */
static void give_number(struct daemon *daemon, const char *what, pid_t from, pid_t to)
{
    char name[64], path[PATH_MAX];

    snprintf(name, sizeof(name), "forkbeard.pid.%s.%d", what, (int)from);
    snprintf(path, sizeof(path), "%s", daemon_path(daemon, name));
    snprintf(name, sizeof(name), "forkbeard.pid.%s.%d", what, (int)to);
    ck_assert_int_eq(rename(path, daemon_path(daemon, name)), 0);
}

/* Without a control socket commands are signals: a stranger with a killed process's pid gets
 * none. */
START_TEST(a_number_is_used_again)
{
    struct daemon *daemon = daemon_start_new(1, "control off; " QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old = daemon->pid, other;

    daemon_expects(daemon, "the master process has gone");
    daemon_signal(daemon, SIGQUIT);
    WAIT_FOR(daemon_has(daemon, quit_name("forkbeard.pid", old)));
    ck_assert_int_eq(kill(old, SIGKILL), 0);
    ck_assert_int_eq(proc_wait(old), 128 + SIGKILL);
    daemon->pid = 0;
    close(client);
    proc_reap_orphans();
    other = fork();
    if (other == 0) {
        signal(SIGINT, SIG_DFL);
        pause();
        _exit(0);
    }
    give_number(daemon, "quit", old, other);
    give_number(daemon, "workers", old, other);
    daemon_write(daemon, quit_name("forkbeard.pid", other), "%d\n", (int)other);
    ck_assert_int_eq(quit_run(daemon, "resume"), 1);
    ck_assert_int_eq(quit_run(daemon, "stop"), 1);
    ck_assert_int_eq(
        daemon_run(daemon, "-c", "forkbeard.conf", "-s", "stop", "--wait", "1s", NULL), 0);
    daemon_start(daemon);
    ck_assert(!daemon_has(daemon, quit_name("forkbeard.pid", other)));
    daemon_stop(daemon, SIGTERM);
    ck_assert_int_eq(kill(other, SIGKILL), 0);
    ck_assert_int_eq(proc_wait(other), 128 + SIGKILL);
    daemon_finish(daemon);
}
END_TEST

/* Upgrades */

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, names_at_each_step);
    tcase_add_loop_test(tcase, a_start_at_once_under_load, 0, 2 * QUIT_MODES);
    tcase_add_test(tcase, several_drain_at_once);
    tcase_add_test(tcase, stop_beside_one_that_stands_still);
    tcase_add_test(tcase, commands_when_all_shut_down);
    tcase_add_test(tcase, without_a_control_socket);
    tcase_add_loop_test(tcase, resume_is_no_reload, 0, 2);
    tcase_add_test(tcase, a_worker_stands_still);
    tcase_add_loop_test(tcase, a_start_that_waits, 0, 2);
    tcase_add_test(tcase, a_killed_one_leaves_its_names);
    tcase_add_test(tcase, a_number_is_used_again);
}

TEST_MAIN("quit", add_tests)
