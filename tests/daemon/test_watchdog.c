/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers that are stuck. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STUCK                                                                                      \
    "load_module " MODULES_PATH "/stuck.so;\n"                                                     \
    "events {} stream { server { listen 127.0.0.1:$0; stuck; } }\n"
/* Clients are spread over all workers by the kernel. */
#define SHARED_OUT                                                                                 \
    "load_module " MODULES_PATH "/stuck.so;\n"                                                     \
    "events {} stream { server { listen 127.0.0.1:$0 reuseport; stuck; } }\n"
#define WORKERS 2

/* A session with the worker, or with any other worker. */
static int open_with(const struct daemon *daemon, pid_t worker, bool other)
{
    for (int64_t until = deadline_ms();;) {
        int client = client_open(daemon->ports[0]);

        ck_assert_int_lt(now_ms(), until);
        client_echo(client, "?");
        if ((proc_server_of(daemon->pid, client) == worker) != other)
            return client;
        close(client);
    }
}

static void expect_stuck(struct daemon *daemon)
{
    daemon_expects(daemon, "(worker_watchdog), and is killed");
    daemon_expects(daemon, "exited on signal 6");
    daemon_expects(daemon, "a worker process died at once"); /* the turn may just have begun */
}

static const struct {
    const char *letter, *where;
} places[] = {
    { "d", "in callback \"data\" of protocol \"stuck\"" },
    { "t", "in callback \"timer\" of protocol \"stuck\"" },
    { "c", "in callback \"closed\" of protocol \"stuck\"" },
    { "r", "in callback \"release\" of protocol \"stuck\"" },
    { "f", "in callback \"done\" of protocol \"stuck\"" },
};

/* Only the log learns of it. */
START_TEST(a_stuck_worker_is_replaced_alone)
{
    struct daemon *daemon = daemon_create(1);
    pid_t workers[WORKERS], now[WORKERS];
    int victim, other;
    char line[256];

    daemon_configure(daemon, "worker_processes 2; worker_watchdog 1s; " SHARED_OUT);
    daemon_start(daemon);
    expect_stuck(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, workers, WORKERS), WORKERS);
    victim = open_with(daemon, workers[0], false);
    other = open_with(daemon, workers[1], false);
    client_send(victim, places[_i].letter);
    snprintf(line, sizeof(line), "worker process %d was stuck %s for ", (int)workers[0],
        places[_i].where);
    daemon_wait_log(daemon, line);
    daemon_wait_log(daemon, "(worker_watchdog), and is killed");
    daemon_wait_log(daemon, "exited on signal 6");
    daemon_wait_log(daemon, "start worker process");
    WAIT_FOR(proc_children(daemon->pid, now, WORKERS) == WORKERS && !proc_has(now, 2, workers[0]));
    ck_assert(proc_has(now, 2, workers[1]));
    client_echo(other, "?");
    close(victim);
    close(open_with(daemon, workers[1], true));
    close(other);
    ck_assert_uint_eq(daemon_count_log(daemon, "was stuck"), 1);
    daemon_finish(daemon);
}
END_TEST

#define NAPS 40 /* sleeps of 60 ms, in one turn */

START_TEST(a_long_turn_that_gets_on_is_not_stuck)
{
    struct daemon *daemon = daemon_create(1);
    int clients[NAPS];
    pid_t worker;

    daemon_configure(daemon, "worker_watchdog 1s; " STUCK);
    daemon_start(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    for (int i = 0; i < NAPS; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_echo(clients[i], "?");
    }
    proc_freeze(worker);
    for (int i = 0; i < NAPS; i++)
        client_send(clients[i], "n");
    ck_assert_int_eq(kill(worker, SIGCONT), 0);
    for (int i = 0; i < NAPS; i++) {
        client_expect(clients[i], "n");
        close(clients[i]);
    }
    ck_assert_uint_eq(daemon_count_log(daemon, "was stuck"), 0);
    daemon_finish(daemon);
}
END_TEST

/* A worker that waits for longer than a stuck worker lives is not stuck itself. */
static void see_another_killed(struct daemon *daemon, pid_t not_this)
{
    int client = open_with(daemon, not_this, true);

    client_send(client, "d");
    daemon_wait_log(daemon, "(worker_watchdog), and is killed");
    daemon_wait_log(daemon, "exited on signal 6");
    close(client);
}

START_TEST(neither_waiting_nor_a_job_is_being_stuck)
{
    struct daemon *daemon = daemon_create(1);
    pid_t workers[WORKERS];
    int client;

    daemon_configure(daemon, "worker_processes 2; worker_watchdog 1s; " SHARED_OUT);
    daemon_start(daemon);
    expect_stuck(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, workers, WORKERS), WORKERS);
    client = open_with(daemon, workers[0], false);
    client_echo(client, "j");
    see_another_killed(daemon, workers[0]);
    client_echo(client, "?");
    close(client);
    ck_assert_uint_eq(daemon_count_log(daemon, "was stuck"), 1);
    daemon_finish(daemon);
}
END_TEST

static const char *const letters[] = { "n", "l" }; /* workers nap in a callback */

static struct json_value ask_worker(struct daemon *daemon)
{
    return control_at(control_at(control_ask(daemon, "status"), "generations", 0), "workers", 0);
}

static int64_t longest_turn_us(struct daemon *daemon)
{
    return control_number(json_member(ask_worker(daemon), "turns"), "max_us");
}

START_TEST(a_long_callback_is_a_stall)
{
    static const char *const callbacks[] = { "data", "release" };
    struct daemon *daemon = daemon_create(1);
    struct json_value worker, callback;
    char line[128];
    int client;

    daemon_configure(daemon,
        "load_module " MODULES_PATH "/stuck.so;\n"
        "events { stall_threshold 20ms; } stream { server { listen 127.0.0.1:$0; stuck; } }\n");
    daemon_start(daemon);
    daemon_expects(daemon, "and blocked the worker");
    client = client_open(daemon->ports[0]);
    client_echo(client, letters[_i]);
    snprintf(line, sizeof(line), "callback \"%s\" of protocol \"stuck\" took ", callbacks[_i]);
    daemon_wait_log(daemon, line);
    WAIT_FOR(control_number(ask_worker(daemon), "stalls") >= 1);
    WAIT_FOR(longest_turn_us(daemon) >= 65536); /* the turn ends after its callback */
    worker = ask_worker(daemon);
    callback = control_at(worker, "callbacks", 0);
    ck_assert_str_eq(control_text(callback, "protocol"), "stuck");
    ck_assert_int_ge(control_number(callback, "n"), 1);
    ck_assert_int_ge(control_number(callback, "max_us"), 65536);
    ck_assert_int_gt(control_number(json_member(worker, "turns"), "n"), 0);
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "  stalls  "));
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(no_callback_is_a_stall_by_zero)
{
    struct daemon *daemon = daemon_create(1);
    int client;

    daemon_configure(daemon,
        "load_module " MODULES_PATH "/stuck.so;\n"
        "events { stall_threshold 0; } stream { server { listen 127.0.0.1:$0; stuck; } }\n");
    daemon_start(daemon);
    client = client_open(daemon->ports[0]);
    client_echo(client, "n");
    close(client);
    ck_assert_int_eq(control_number(ask_worker(daemon), "stalls"), 0);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(
        tcase, a_stuck_worker_is_replaced_alone, 0, (int)(sizeof(places) / sizeof(places[0])));
    tcase_add_test(tcase, a_long_turn_that_gets_on_is_not_stuck);
    tcase_add_test(tcase, neither_waiting_nor_a_job_is_being_stuck);
    tcase_add_loop_test(tcase, a_long_callback_is_a_stall, 0, 2);
    tcase_add_test(tcase, no_callback_is_a_stall_by_zero);
}

TEST_MAIN("watchdog", add_tests)
