/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard status --check`, for monitoring systems: exit code, first line, and cause. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define STUCK                                                                                      \
    "load_module " MODULES_PATH "/stuck.so;\n"                                                     \
    "events {} stream { server { listen 127.0.0.1:$0; stuck; } }\n"

static int check(struct daemon *daemon)
{
    return daemon_run(daemon, "-c", "forkbeard.conf", "status", "--check", NULL);
}

/* Whether `status --check` exits with the code, prints the first line's begin, and the text. */
static bool checks(struct daemon *daemon, int code, const char *begin, const char *text)
{
    return check(daemon) == code && strncmp(daemon->out, begin, strlen(begin)) == 0 &&
           strstr(daemon->out, text) != NULL;
}

#define EXPECT_WELL(daemon) WAIT_FOR(checks((daemon), 0, "OK: 0 problems, ", ""))

START_TEST(a_worker_that_does_not_work_is_named)
{
    struct daemon *daemon = daemon_create(1);
    pid_t worker;
    int client;

    daemon_configure(daemon, STUCK);
    daemon_start(daemon);
    daemon_expects(daemon, "exited on signal 9 in callback \"data\" of protocol \"stuck\"");
    EXPECT_WELL(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    ck_assert_int_eq(kill(worker, SIGSTOP), 0);
    WAIT_FOR(checks(daemon, 2, "CRITICAL: 1 problem, ", " is stopped, and its clients wait: kill"));
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "status", NULL), 0);
    ck_assert_int_eq(strncmp(daemon->out, "PROBLEMS\n  critical: worker process ", 36), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "\n\nforkbeard "));
    ck_assert_int_eq(kill(worker, SIGCONT), 0);
    EXPECT_WELL(daemon);
    client = client_open(daemon->ports[0]);
    client_send(client, "d");
    WAIT_FOR(checks(daemon, 2, "CRITICAL: 1 problem, ",
        " is stuck in callback \"data\" of protocol \"stuck\" for "));
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    EXPECT_WELL(daemon);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(full_workers_are_named)
{
    struct daemon *daemon = daemon_start_new(
        1, "events { worker_connections 8; } stream { server { listen 127.0.0.1:$0; echo; } }");
    int clients[9];

    daemon_expects(daemon, "worker_connections");
    EXPECT_WELL(daemon);
    for (unsigned i = 0; i < 9; i++) {
        clients[i] = client_open(daemon->ports[0]);
        if (i < 8)
            client_echo(clients[i], "x");
    }
    WAIT_FOR(checks(daemon, 2, "CRITICAL: 1 problem, 8 connections\n",
        " uses all of its 8 worker_connections, and accepts no clients: raise "));
    for (unsigned i = 0; i < 9; i++)
        close(clients[i]);
    EXPECT_WELL(daemon);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_failed_reload_is_a_warning)
{
    struct daemon *daemon =
        daemon_start_new(1, "events {} stream { server { listen 127.0.0.1:$0; echo; } }");

    daemon_expects(daemon, "\"events\" directive");
    daemon_write(daemon, "mistake.conf", "x;");
    daemon_configure(daemon, "events {} include mistake.conf;");
    daemon_expects(daemon, "unknown directive \"x\"");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "unknown directive");
    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0; echo; } }");
    WAIT_FOR(checks(daemon, 1, "WARNING: 1 problem, ", "warning: the last reload has failed: "));
    daemon_signal(daemon, SIGHUP);
    EXPECT_WELL(daemon);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_daemon_that_is_not_there_is_critical)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0; echo; } }");
    ck_assert(checks(daemon, 2, "CRITICAL: the daemon does not reply\n", ""));
    ck_assert_int_eq(daemon_run(daemon, "-c", "missing.conf", "status", "--check", NULL), 3);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_worker_that_does_not_work_is_named);
    tcase_add_test(tcase, full_workers_are_named);
    tcase_add_test(tcase, a_failed_reload_is_a_warning);
    tcase_add_test(tcase, a_daemon_that_is_not_there_is_critical);
}

TEST_MAIN("check", add_tests)
