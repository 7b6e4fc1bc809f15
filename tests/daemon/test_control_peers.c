/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of the control socket of a daemon whose workers have the master's user, and commands to a
 * master that does not answer. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define COMMANDER                                                                                  \
    "sandbox off; worker_processes 2; load_module " MODULES_PATH "/commander.so;\n"                \
    "events {} stream { server { listen 127.0.0.1:$0; commander; } }\n"

static void become_nobody(void)
{
    if (geteuid() == 0 && (setgid(65534) == -1 || setuid(65534) == -1))
        _exit(123);
}

/* Makes a worker's process send the command; returns the reply, "" where there was none. */
static const char *command_from_worker(
    const struct daemon *daemon, const char *how, const char *command)
{
    int client = client_open(daemon->ports[0]);
    char line[160];

    snprintf(line, sizeof(line), "%s %s %s\n", how, daemon_path(daemon, "forkbeard.sock"), command);
    client_send(client, line);
    return client_read_all(client);
}

static const struct {
    const char *how, *why;
} processes[] = {
    { "worker", "permission denied: the client is a worker process" },
    { "child", "permission denied: a worker or module has started the client" },
    { "orphan", "permission denied: a worker or module has started the client" },
};

START_TEST(workers_and_what_they_start_are_refused)
{
    struct daemon *daemon = daemon_create(1);
    char expected[128];

    ck_assert_int_eq(chmod(daemon->directory, 0777), 0);
    daemon_configure(daemon, COMMANDER);
    daemon->before_exec = become_nobody;
    daemon_start(daemon);
    snprintf(expected, sizeof(expected), "{\"ok\":false,\"error\":\"%s\"}\n", processes[_i].why);
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq(command_from_worker(daemon, processes[_i].how, "stop"), expected);
    daemon_wait_log(daemon, "may not use the control socket, refused: permission denied");
    ck_assert(control_is_ok(control_ask(daemon, "status"))); /* the daemon runs, and we may ask */
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    daemon->before_exec = NULL;
    daemon_finish(daemon);
}
END_TEST

/* The master may find the connection before or after the death, and reap before or after it. */
START_TEST(a_worker_that_dies_at_once_is_refused)
{
    struct daemon *daemon = daemon_create(1);

    ck_assert_int_eq(chmod(daemon->directory, 0777), 0);
    daemon_configure(daemon, COMMANDER);
    daemon_expects(daemon, "exited on signal 9");
    daemon->before_exec = become_nobody;
    daemon_start(daemon);
    daemon->before_exec = NULL;
    for (unsigned i = 1; i <= 10; i++) {
        ck_assert_str_eq(command_from_worker(daemon, "dying", "stop"), "");
        WAIT_FOR(daemon_count_log(daemon, "exited on signal 9") == i);
        WAIT_FOR(proc_child_n(daemon->pid) == 2);
    }
    ck_assert(control_is_ok(control_ask(daemon, "status")));
    ck_assert_uint_eq(daemon_count_log(daemon, "received from"), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_command_is_not_waited_for_without_end)
{
    static const char *const commands[][4] = { { "status" }, { "-s", "reload" }, { "-s", "stop" } };
    struct daemon *daemon = daemon_start_new(1, "events {} stream { server { listen "
                                                "127.0.0.1:$0; echo; } }\n");
    const char *const *words = commands[_i];

    daemon_signal(daemon, SIGSTOP);
    WAIT_FOR(proc_state(daemon->pid) == 'T');
    ck_assert_int_eq(
        daemon_run(daemon, "-c", "forkbeard.conf", "--timeout", "200ms", words[0], words[1], NULL),
        3);
    ck_assert_ptr_nonnull(strstr(daemon->err, " did not reply to \""));
    ck_assert_ptr_nonnull(strstr(daemon->err, "\" within 200 ms: the master process may be "));
    daemon_signal(daemon, SIGCONT);
    if (_i == 2) {
        ck_assert_int_eq(daemon_wait(daemon), 0);
    } else {
        ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    }
    daemon_finish(daemon);
}
END_TEST

/* Connects unless that would wait; -1. */
static int try_control(const struct daemon *daemon)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    snprintf(
        address.sun_path, sizeof(address.sun_path), "%s", daemon_path(daemon, "forkbeard.sock"));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The queue of the socket is full: the connection itself is waited for. */
START_TEST(a_connection_is_not_waited_for_without_end)
{
    enum { MANY = 64 };
    struct daemon *daemon = daemon_start_new(1, "events {} stream { server { listen "
                                                "127.0.0.1:$0; echo; } }\n");
    int clients[MANY], n = 0;

    daemon_signal(daemon, SIGSTOP);
    WAIT_FOR(proc_state(daemon->pid) == 'T');
    while (n < MANY && (clients[n] = try_control(daemon)) != -1)
        n++;
    ck_assert_int_lt(n, MANY);
    ck_assert_int_eq(
        daemon_run(daemon, "status", "--timeout=200ms", "-c", "forkbeard.conf", NULL), 3);
    ck_assert_ptr_nonnull(strstr(daemon->err, " did not reply to \"status\" within 200 ms"));
    while (n > 0)
        close(clients[--n]);
    daemon_signal(daemon, SIGCONT);
    WAIT_FOR(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL) == 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(times_are_checked)
{
    struct daemon *daemon = daemon_create(0);

    ck_assert_int_eq(daemon_run(daemon, "status", "--timeout=soon", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "\"--timeout soon\", expected a time"));
    ck_assert_int_eq(daemon_run(daemon, "status", "--timeout=0", NULL), 1);
    ck_assert_int_eq(daemon_run(daemon, "-t", "--timeout=3s", NULL), 1);
    ck_assert_ptr_nonnull(
        strstr(daemon->err, "\"--timeout\" belongs to -s, \"status\", \"upstream\", "
                            "\"sessions\", \"certificates\", \"events\", \"log\" and \"upgrade\""));
    ck_assert_int_eq(daemon_run(daemon, "status", "--timeout", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "option \"--timeout\" requires an argument"));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, workers_and_what_they_start_are_refused, 0,
        sizeof(processes) / sizeof(processes[0]));
    tcase_add_test(tcase, a_worker_that_dies_at_once_is_refused);
    tcase_add_loop_test(tcase, a_command_is_not_waited_for_without_end, 0, 3);
    tcase_add_test(tcase, a_connection_is_not_waited_for_without_end);
    tcase_add_test(tcase, times_are_checked);
}

TEST_MAIN("control_peers", add_tests)
