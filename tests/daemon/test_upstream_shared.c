/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers share their knowledge of a group's servers by its zone, on the real kernel: failures,
 * running sessions, results of checks; also after the death of a worker, a reload and an
 * upgrade. */
#include "daemon/backends.h"
#include "daemon/client.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define BACKENDS 3
#define WORKERS 2
#define CLIENTS_MAX 200
#define MAX_CONNS (4 + 5 + 6)
#define REFUSED "connect() failed (111: "

/* $0 is where clients come, $1 where servers serve. */
#define CONFIGURATION                                                                              \
    "worker_processes 2; events {}"                                                                \
    "stream { upstream s { %s server 127.0.0.1:$1 %s;"                                             \
    "server 127.0.0.2:$1 %s fail_timeout=1h; server 127.0.0.3:$1 %s; }"                            \
    "server { listen 127.0.0.1:$0; proxy_pass s; %s } }"
#define ZONE "zone s 64k;"

struct shared_test {
    struct daemon *daemon;
    struct backend backends[BACKENDS];
    int clients[CLIENTS_MAX]; /* sessions that go on */
    unsigned client_n;
};

struct shared_options {
    const char *zone, *servers[BACKENDS], *check;
};

static void begin(struct shared_test *test, const struct shared_options *options)
{
    struct daemon *daemon = daemon_create(2);

    *test = (struct shared_test) { .daemon = daemon };
    backends_start(test->backends, BACKENDS, daemon->ports[1]);
    daemon_configure(daemon, CONFIGURATION, options->zone, options->servers[0], options->servers[1],
        options->servers[2], options->check);
    daemon_start(daemon);
}

/* Begins a session, still open at the return; returns the letter of the server. */
static char open_client(struct shared_test *test)
{
    ck_assert_uint_lt(test->client_n, CLIENTS_MAX);
    test->clients[test->client_n] = backend_begin(test->daemon);
    return backend_answer(test->clients[test->client_n++]);
}

static void close_clients(struct shared_test *test)
{
    while (test->client_n > 0)
        close(test->clients[--test->client_n]);
}

static void finish(struct shared_test *test)
{
    close_clients(test);
    daemon_stop(test->daemon, SIGQUIT);
    backends_kill(test->backends, BACKENDS);
    daemon_finish(test->daemon);
}

/* ---- Failures ---- */

/* Lets every worker serve some sessions, none by the second server: a stopped worker leaves all to
 * the running one. */
static void avoid_the_second(struct shared_test *test)
{
    pid_t workers[WORKERS];

    WAIT_FOR(proc_child_n(test->daemon->pid) == WORKERS); /* no worker drains any more */
    ck_assert_uint_eq(proc_children(test->daemon->pid, workers, WORKERS), WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        WAIT_FOR(proc_state(workers[i]) == 'S'); /* no lock is held */
        proc_freeze(workers[i]);
        for (int j = 0; j < 2 * BACKENDS; j++) {
            char server = open_client(test);

            ck_assert(server == '1' || server == '3');
        }
        ck_assert_int_eq(kill(workers[i], SIGCONT), 0);
    }
    close_clients(test);
}

/* _i: without a zone. */
START_TEST(a_failure_is_known_to_all_workers)
{
    unsigned failures = _i == 0 ? 1 : WORKERS;
    struct shared_test test;

    begin(&test, &(struct shared_options) { _i == 0 ? ZONE : "", { "", "", "" }, "" });
    backend_kill(&test.backends[1]);
    avoid_the_second(&test);
    ck_assert_uint_eq(daemon_count_log(test.daemon, REFUSED), failures);
    ck_assert_uint_eq(daemon_count_log(test.daemon, "temporarily disabled"), failures);
    backend_start(&test.backends[1]);
    avoid_the_second(&test);
    finish(&test);
}
END_TEST

/* _i: failures until the server is not chosen for a while. */
START_TEST(a_server_has_its_max_fails)
{
    struct shared_test test;
    char max_fails[32];

    snprintf(max_fails, sizeof(max_fails), "max_fails=%d", _i);
    begin(&test, &(struct shared_options) { ZONE, { "", max_fails, "" }, "" });
    backend_kill(&test.backends[1]);
    WAIT_FOR(!backend_is_used(test.daemon, '2') &&
             daemon_count_log(test.daemon, REFUSED) >= (_i > 0 ? (unsigned)_i : 9));
    if (_i > 0)
        avoid_the_second(&test);
    ck_assert_uint_eq(daemon_count_log(test.daemon, "temporarily disabled"), _i > 0);
    backend_start(&test.backends[1]);
    if (_i > 0)
        avoid_the_second(&test);
    else
        WAIT_FOR(backend_is_used(test.daemon, '2'));
    finish(&test);
}
END_TEST

/* ---- Sessions that run ---- */

/* Begins sessions until all servers are full; their number. */
static unsigned fill(struct shared_test *test)
{
    unsigned n = 0;

    while (open_client(test) != '-')
        n++;
    close(test->clients[--test->client_n]);
    return n;
}

/* Kills the worker of the first session; returns how many of the sessions it had. */
static unsigned kill_worker(struct shared_test *test)
{
    pid_t workers[MAX_CONNS];
    unsigned n = test->client_n, left = 0;

    ck_assert_uint_eq(n, MAX_CONNS);
    for (unsigned i = 0; i < n; i++)
        workers[i] = proc_server_of(test->daemon->pid, test->clients[i]);
    ck_assert_int_eq(kill(workers[0], SIGKILL), 0);
    for (unsigned i = 0; i < n; i++) {
        if (workers[i] == workers[0]) {
            client_expect_gone(test->clients[i]);
            close(test->clients[i]);
        } else {
            test->clients[left++] = test->clients[i];
        }
    }
    test->client_n = left;
    WAIT_FOR(proc_state(workers[0]) == 0);
    WAIT_FOR(proc_child_n(test->daemon->pid) == WORKERS);
    return n - left;
}

/* Sessions that have ended at the client end in the worker a little later. */
static bool can_fill_again(struct shared_test *test)
{
    fill(test);
    return test->client_n == MAX_CONNS;
}

START_TEST(max_conns_is_exact_after_the_death_of_a_worker)
{
    struct shared_test test;

    begin(&test,
        &(struct shared_options) { ZONE, { "max_conns=4", "max_conns=5", "max_conns=6" }, "" });
    daemon_expects(test.daemon, "exited on signal 9");
    ck_assert_uint_eq(fill(&test), MAX_CONNS);
    for (unsigned i = 0; i < 5; i++) {
        unsigned n = kill_worker(&test);

        ck_assert_uint_eq(fill(&test), n);
    }
    close_clients(&test);
    WAIT_FOR(can_fill_again(&test));
    finish(&test);
}
END_TEST

/* ---- Reload and upgrade ---- */

static void reload(struct shared_test *test)
{
    daemon_mark_log(test->daemon);
    daemon_signal(test->daemon, SIGHUP);
    daemon_wait_log(test->daemon, " serves in place of generation ");
}

static void go_on(struct shared_test *test, bool upgrade)
{
    if (upgrade)
        upgrade_complete(test->daemon, upgrade_start(test->daemon));
    else
        reload(test);
}

static void only_the_first_serves(const struct shared_test *test)
{
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(backend_ask(test->daemon), '1');
}

/* Keeps a session of the third server, alone. */
static void hold_the_third(struct shared_test *test)
{
    while (open_client(test) != '3')
        close(test->clients[--test->client_n]);
}

/* Lets the second server fail once, and start again. */
static void fail_the_second(struct shared_test *test)
{
    backend_kill(&test->backends[1]);
    WAIT_FOR(!backend_is_used(test->daemon, '2') && daemon_count_log(test->daemon, REFUSED) == 1);
    backend_start(&test->backends[1]);
}

/* The second server has failed, and the third has as many sessions as it may have, of a worker that
 * drains afterwards. _i: an upgrade. */
START_TEST(failures_and_sessions_are_kept)
{
    struct shared_test test;
    pid_t new = 0;

    begin(&test, &(struct shared_options) { ZONE, { "", "", "max_conns=1" }, "" });
    hold_the_third(&test);
    fail_the_second(&test);
    only_the_first_serves(&test);
    if (_i == 0) {
        reload(&test);
        WAIT_FOR(proc_child_n(test.daemon->pid) == WORKERS + 1);
    } else {
        new = upgrade_start(test.daemon);
        only_the_first_serves(&test);
        daemon_signal(test.daemon, SIGQUIT);
        WAIT_FOR(proc_child_n(test.daemon->pid) == 2);
    }
    only_the_first_serves(&test);
    close_clients(&test);
    if (_i == 1)
        upgrade_wait_complete(test.daemon, new);
    WAIT_FOR(backend_is_used(test.daemon, '3'));
    avoid_the_second(&test);
    ck_assert_uint_eq(daemon_count_log(test.daemon, REFUSED), 1);
    finish(&test);
}
END_TEST

/* _i: an upgrade. */
START_TEST(what_checks_say_is_kept)
{
    struct shared_test test;

    begin(&test, &(struct shared_options) { ZONE, { "", "", "" }, "health_check interval=100ms;" });
    backend_kill(&test.backends[1]);
    daemon_wait_log(test.daemon, "peer is unhealthy");
    go_on(&test, _i == 1);
    avoid_the_second(&test);
    ck_assert_uint_eq(daemon_count_log(test.daemon, "connecting to upstream, client"), 0);
    ck_assert_uint_eq(daemon_count_log(test.daemon, "peer is unhealthy"), 1);
    backend_start(&test.backends[1]);
    daemon_wait_log(test.daemon, "peer is healthy");
    WAIT_FOR(backend_is_used(test.daemon, '2'));
    finish(&test);
}
END_TEST

/* Says a word of the operator about the second server. */
static void say_of_the_second(const struct shared_test *test, const char *word)
{
    struct daemon *daemon = test->daemon;
    char server[32];

    snprintf(server, sizeof(server), "127.0.0.2:%u", daemon->ports[1]);
    ck_assert_int_eq(
        daemon_run(daemon, "upstream", "s", word, server, "-c", "forkbeard.conf", NULL), 0);
}

/* _i: an upgrade. */
START_TEST(what_the_operator_says_is_kept)
{
    struct shared_test test;

    begin(&test, &(struct shared_options) { ZONE, { "", "", "" }, "" });
    while (open_client(&test) != '2')
        ;
    say_of_the_second(&test, "drain");
    client_echo(test.clients[test.client_n - 1], "goes on");
    avoid_the_second(&test);
    go_on(&test, _i == 1);
    avoid_the_second(&test);
    say_of_the_second(&test, "auto");
    WAIT_FOR(backend_is_used(test.daemon, '2'));
    finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_failure_is_known_to_all_workers, 0, 2);
    tcase_add_loop_test(tcase, a_server_has_its_max_fails, 0, 4);
    tcase_add_test(tcase, max_conns_is_exact_after_the_death_of_a_worker);
    tcase_add_loop_test(tcase, failures_and_sessions_are_kept, 0, 2);
    tcase_add_loop_test(tcase, what_checks_say_is_kept, 0, 2);
    tcase_add_loop_test(tcase, what_the_operator_says_is_kept, 0, 2);
}

TEST_MAIN("upstream_shared", add_tests)
