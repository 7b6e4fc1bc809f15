/* SPDX-License-Identifier: BSD-2-Clause */
/* Kills, stops and starts one of three servers while clients come without a pause. No client may
 * notice, except the clients of a server killed after the connect: their bytes cannot be taken
 * back. The access log names these clients. */
#include "daemon/backends.h"
#include "daemon/client.h"
#include "daemon/load_clients.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BACKENDS 3
#define VICTIM 1 /* index of the killed or stopped server */
#define VICTIM_DIGIT '2'
#define VICTIM_ADDRESS "127.0.0.2:"
#define KILLS 4
#define WAITERS_MAX 64

/* $0 is where clients come, $1 where servers serve. */
#define CONFIGURATION                                                                              \
    "worker_processes 2; events {}"                                                                \
    "stream { log_format tries '$remote_port $status $upstream_addr'; access_log tries.log tries;" \
    "match echo { send PING; expect PING; }"                                                       \
    "upstream s { zone s 64k; %s server 127.0.0.1:$1 fail_timeout=200ms;"                          \
    "server 127.0.0.2:$1 fail_timeout=200ms; server 127.0.0.3:$1 fail_timeout=200ms; }"            \
    "server { listen 127.0.0.1:$0; proxy_pass s; %s } }"

struct load_test {
    struct daemon *daemon;
    struct backend backends[BACKENDS], *victim;
    struct load_clients load;
    int waiters[WAITERS_MAX]; /* clients without an answer yet */
    unsigned waiter_n;
    unsigned kills;
};

/* Starts the servers, the daemon and its clients; with lines for the group, and for the server. */
static void begin(struct load_test *test, const char *method, const char *more)
{
    struct daemon *daemon = daemon_create(2);

    *test = (struct load_test) { .daemon = daemon, .victim = &test->backends[VICTIM] };
    backends_start(test->backends, BACKENDS, daemon->ports[1]);
    daemon_configure(daemon, CONFIGURATION, method, more);
    daemon_owns(daemon, "tries.log");
    daemon_start(daemon);
    load_clients_start(&test->load, daemon->ports[0]);
    load_clients_wait(&test->load, 100);
}

/* Notes the sessions with their last try at the victim; all have found a server. */
static void read_tries(struct load_test *test, struct proc_ports *victims)
{
    char *text = strdup(daemon_text(test->daemon, "tries.log")), *rest = text, *line;

    ck_assert_ptr_nonnull(text);
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        unsigned port = 0, status = 0;
        const char *last = strrchr(line, ' ');

        ck_assert_int_eq(sscanf(line, "%u %u", &port, &status), 2);
        ck_assert_msg(status == 200 && port < 65536, "a session ended so: %s", line);
        if (strncmp(last + 1, VICTIM_ADDRESS, strlen(VICTIM_ADDRESS)) == 0)
            victims->bits[port / 8] |= (uint8_t)(1 << port % 8);
    }
    free(text);
}

/* Ends all, and fails if a client has seen an avoidable error. */
static void finish(struct load_test *test)
{
    static struct proc_ports victims;

    load_clients_stop(&test->load);
    daemon_stop(test->daemon, SIGQUIT);
    read_tries(test, &victims);
    ck_assert_uint_eq(test->load.refused, 0);
    ck_assert_uint_eq(test->load.wrong, 0);
    ck_assert_uint_eq(load_clients_lost_beyond(&test->load, &victims), 0);
    ck_assert_uint_le(test->load.lost_n, test->kills * LOAD_CLIENTS_THREADS);
    backends_kill(test->backends, BACKENDS);
    daemon_finish(test->daemon);
}

static bool is_victim_used(const struct load_test *test)
{
    return backend_is_used(test->daemon, VICTIM_DIGIT);
}

static void reload(struct daemon *daemon)
{
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, " serves in place of generation ");
}

/* Kills the victim and starts it again, after the clients were served without it for a while, at
 * once, or after a reload. */
static void kill_victim(struct load_test *test)
{
    unsigned n = test->kills++;

    backend_kill(test->victim);
    if (n % 3 == 0) {
        load_clients_wait(&test->load, 200);
        ck_assert(!is_victim_used(test));
    } else if (n % 3 == 2) {
        reload(test->daemon);
    }
    backend_start(test->victim);
    WAIT_FOR(is_victim_used(test));
    load_clients_wait(&test->load, 50);
}

static const char *const methods[] = { "", "least_conn;", "least_time first_byte;", "random;",
    "random two;", "hash $remote_port;", "hash $remote_port consistent;" };

START_TEST(a_server_is_killed)
{
    struct load_test test;

    begin(&test, methods[_i], "");
    for (int i = 0; i < (int)test_trials(KILLS); i++)
        kill_victim(&test);
    finish(&test);
}
END_TEST

/* A client led to a stopped server waits for it, and is the last to be added. */
static bool add_waiter(struct load_test *test)
{
    if (test->waiter_n > 0 && client_is_quiet(test->waiters[test->waiter_n - 1]))
        return true;
    ck_assert_uint_lt(test->waiter_n, WAITERS_MAX);
    test->waiters[test->waiter_n++] = backend_begin(test->daemon);
    return true;
}

/* Stops the victim, and returns when a client connected by the kernel waits for it. */
static void stop_victim(struct load_test *test)
{
    proc_freeze(test->victim->pid);
    WAIT_FOR(add_waiter(test) && backend_is_awaited(test->victim));
}

/* Continues the victim, and checks that all waiting clients are served. */
static void continue_victim(struct load_test *test)
{
    backend_thaw(test->victim);
    for (unsigned i = 0; i < test->waiter_n; i++) {
        ck_assert_int_ne(backend_answer(test->waiters[i]), '-');
        close(test->waiters[i]);
    }
    WAIT_FOR(is_victim_used(test));
    load_clients_wait(&test->load, 100);
}

/* Connections made by the kernel for the stopped server, up to the length of the queue, are no
 * failures: the sessions wait. */
START_TEST(a_server_is_stopped)
{
    struct load_test test;

    begin(&test, "", "");
    stop_victim(&test);
    continue_victim(&test);
    ck_assert_uint_eq(daemon_count_log(test.daemon, "temporarily disabled"), 0);
    finish(&test);
}
END_TEST

static bool is_served_by_others(const struct load_test *test)
{
    ck_assert(!is_victim_used(test));
    return true;
}

START_TEST(a_stopped_server_takes_no_more_connections)
{
    struct load_test test;

    begin(&test, "", "proxy_connect_timeout 500ms;");
    stop_victim(&test);
    backend_set_queue(test.victim, 0);
    WAIT_FOR(is_served_by_others(&test) &&
             daemon_count_log(test.daemon, "upstream timed out (110: ") >= 3);
    backend_set_queue(test.victim, SOMAXCONN);
    continue_victim(&test);
    finish(&test);
}
END_TEST

#define CHECK "health_check interval=100ms fails=2 passes=2 match=echo; health_check_timeout 1s;"

START_TEST(a_stopped_server_fails_its_checks)
{
    struct load_test test;

    begin(&test, "", CHECK);
    stop_victim(&test);
    daemon_wait_log(test.daemon,
        "peer is unhealthy (110: Connection timed out) while reading response from upstream, "
        "health check \"echo\" of peer " VICTIM_ADDRESS);
    for (int i = 0; i < 10; i++)
        ck_assert(!is_victim_used(&test));
    continue_victim(&test);
    daemon_wait_log(test.daemon, "peer is healthy");
    finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_server_is_killed, 0, sizeof(methods) / sizeof(methods[0]));
    tcase_add_test(tcase, a_server_is_stopped);
    tcase_add_test(tcase, a_stopped_server_takes_no_more_connections);
    tcase_add_test(tcase, a_stopped_server_fails_its_checks);
}

TEST_MAIN("proxy_load", add_tests)
