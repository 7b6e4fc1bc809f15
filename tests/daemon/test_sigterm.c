/* SPDX-License-Identifier: BSD-2-Clause */
/* `sigterm_shutdown`: the meaning of SIGTERM, in both kinds of daemon. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define SERVERS "stream { server { listen 127.0.0.1:$0; echo; } }"
#define TWO_WORKERS "worker_processes 2; events {} " SERVERS
#define SINGLE "master_process off; events {} " SERVERS

static const char *const kinds[] = { TWO_WORKERS, SINGLE };

static struct daemon *start_daemon(const char *directives, const char *kind)
{
    return daemon_start_new(1, "%s %s", directives, kind);
}

/* A client whose session has begun. */
static int begin_drain(const struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);

    client_echo(client, "begun");
    return client;
}

static void goes_on(const struct daemon *daemon, int client)
{
    WAIT_FOR(client_error(daemon->ports[0]) == ECONNREFUSED);
    client_echo(client, "goes on");
    ck_assert_int_ne(proc_state(daemon->pid), 'Z');
}

START_TEST(term_drains)
{
    struct daemon *daemon = start_daemon("sigterm_shutdown graceful;", kinds[_i]);
    int client = begin_drain(daemon);

    daemon_signal(daemon, SIGTERM);
    goes_on(daemon, client);
    close(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_uint_eq(daemon_count_log(daemon, "signal 15 (SIGTERM) received from "), 1);
    ck_assert_uint_eq(daemon_count_log(daemon, ", shutting down"), 1);
    ck_assert_uint_eq(daemon_count_log(daemon, ", exiting"), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_drain_is_bounded)
{
    struct daemon *daemon =
        start_daemon("sigterm_shutdown graceful; worker_shutdown_timeout 300ms;", kinds[_i]);
    int client = begin_drain(daemon);

    daemon_signal(daemon, SIGTERM);
    client_expect_gone(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_uint_eq(daemon_count_log(daemon, "worker_shutdown_timeout has passed"), 1);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* The first SIGTERM adds nothing to a drain of any cause, and the second ends it. */
START_TEST(a_second_term_ends_at_once)
{
    struct daemon *daemon = start_daemon("sigterm_shutdown graceful;", SINGLE);
    int client = begin_drain(daemon);

    if (_i == 1) {
        daemon_signal(daemon, SIGQUIT);
        goes_on(daemon, client);
    }
    daemon_signal(daemon, SIGTERM);
    goes_on(daemon, client);
    daemon_wait_log(daemon, "(SIGTERM) received from ");
    daemon_stop(daemon, SIGTERM);
    client_expect_gone(client);
    ck_assert_uint_eq(daemon_count_log(daemon, ", exiting"), 1);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(int_ends_at_once)
{
    struct daemon *daemon = start_daemon("sigterm_shutdown graceful;", SINGLE);
    int client = begin_drain(daemon);

    if (_i == 1) {
        daemon_signal(daemon, SIGTERM);
        goes_on(daemon, client);
    }
    daemon_stop(daemon, SIGINT);
    client_expect_gone(client);
    ck_assert_uint_eq(daemon_count_log(daemon, "signal 2 (SIGINT) received from "), 1);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* -s stop is a fast shutdown, with a control socket and without. */
START_TEST(stop_ends_at_once)
{
    struct daemon *daemon = start_daemon(
        _i == 0 ? "sigterm_shutdown graceful;" : "sigterm_shutdown graceful; control off;",
        TWO_WORKERS);
    int client = begin_drain(daemon);

    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-q", "-s", "stop", NULL), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    client_expect_gone(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* Some inits signal every process of the container. */
START_TEST(workers_drain_too)
{
    struct daemon *daemon = start_daemon("sigterm_shutdown graceful;", TWO_WORKERS);
    int client = begin_drain(daemon);
    pid_t workers[2];

    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(kill(workers[i], SIGTERM), 0);
    daemon_signal(daemon, SIGTERM);
    goes_on(daemon, client);
    close(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, term_drains, 0, 2);
    tcase_add_loop_test(tcase, the_drain_is_bounded, 0, 2);
    tcase_add_loop_test(tcase, a_second_term_ends_at_once, 0, 2);
    tcase_add_loop_test(tcase, int_ends_at_once, 0, 2);
    tcase_add_loop_test(tcase, stop_ends_at_once, 0, 2);
    tcase_add_test(tcase, workers_drain_too);
}

TEST_MAIN("sigterm", add_tests)
