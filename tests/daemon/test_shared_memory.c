/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker in an attacker's hands, without a sandbox, and the memory shared with the master and the
 * other workers: the worker can write little of the memory, and nothing with effects elsewhere. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Clients are spread over all workers by the kernel, and no worker needs the accept mutex. */
#define INTRUDER                                                                                   \
    "sandbox off; worker_processes 2; load_module " MODULES_PATH "/intruder.so;\n"                 \
    "events {} stream { server { listen 127.0.0.1:$0 reuseport; intruder; } }\n"
#define WORKERS 2

/* Returns what an intruder answers to a letter, on a line; valid until the next call. */
static const char *ask_intruder(int client, const char *letter)
{
    static char line[4096];
    size_t n = 0;

    client_send(client, letter);
    do
        ck_assert_int_eq(read(client, &line[n], 1), 1);
    while (line[n] != '\n' && ++n < sizeof(line) - 1);
    line[n] = '\0';
    return line;
}

/* A session with the worker, or with any other worker. */
static int open_with(const struct daemon *daemon, pid_t worker, bool other)
{
    for (int64_t until = deadline_ms();;) {
        int client = client_open(daemon->ports[0]);

        ck_assert_int_lt(now_ms(), until);
        ck_assert_str_eq(ask_intruder(client, "?"), "alive=1 ");
        if ((proc_server_of(daemon->pid, client) == worker) != other)
            return client;
        close(client);
    }
}

static pid_t first_worker(const struct daemon *daemon)
{
    pid_t workers[WORKERS];

    WAIT_FOR(proc_children(daemon->pid, workers, WORKERS) == WORKERS);
    return workers[0];
}

/* A worker's own page, the page shared on purpose, its row, and the map's content. */
START_TEST(a_worker_writes_its_own_pages_alone)
{
    struct daemon *daemon = daemon_start_new(1, INTRUDER);

    for (int i = 0; i < 4; i++) {
        int client = client_open(daemon->ports[0]);
        const char *list = ask_intruder(client, "l");
        unsigned shared = 0, n;

        /* adjacent parts are one piece */
        for (const char *at = list; (at = strstr(at, "shared=")) != NULL; at++)
            if (sscanf(at, "shared=%u", &n) == 1)
                shared += n;
        ck_assert_msg(shared == 2, "%s", list);
        ck_assert_msg(strstr(list, "intruder=1 ") != NULL, "%s", list);
        ck_assert_msg(strstr(list, "intruder.loot=") != NULL, "%s", list);
        close(client);
    }
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(nothing_else_can_be_made_writable)
{
    struct daemon *daemon = daemon_start_new(1, INTRUDER);
    int client = client_open(daemon->ports[0]);
    unsigned tried, made;
    const char *line = ask_intruder(client, "m");

    ck_assert_msg(sscanf(line, "tried=%u made=%u", &tried, &made) == 2, "%s", line);
    ck_assert_uint_ge(tried, 4);
    ck_assert_uint_eq(made, 0);
    /* the module's own copy is kept for debuggers, and cannot be changed */
    ck_assert_str_eq(ask_intruder(client, "d"), "memory=1 ours=0 written=0 ");
    close(client);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(who_writes_elsewhere_dies_alone)
{
    struct daemon *daemon = daemon_create(1);
    pid_t worker;
    int client, other;

    daemon_configure(daemon, INTRUDER);
    daemon_start(daemon);
    daemon_expects(daemon, "exited on signal 11");
    daemon_expects(daemon, "a worker process died at once");
    worker = first_worker(daemon);
    client = open_with(daemon, worker, false);
    other = open_with(daemon, worker, true);
    client_send(client, "o");
    client_expect_gone(client);
    daemon_wait_log(daemon, "exited on signal 11");
    ck_assert_str_eq(ask_intruder(other, "?"), "alive=1 ");
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
    close(client);
    close(other);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void reload_once(struct daemon *daemon)
{
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
}

/* Attacks what a worker can write, in turn before a status, a death, a reload and an upgrade. */
START_TEST(nonsense_harms_nobody_else)
{
    struct daemon *daemon = daemon_create(1);
    pid_t worker, new;
    int last;

    daemon_configure(daemon, "worker_watchdog 300ms; " INTRUDER);
    daemon_start(daemon);
    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "(worker_watchdog), and is killed"); /* itself, at worst */
    daemon_expects(daemon, "exited on signal 6");
    daemon_expects(daemon, "the accept mutex was damaged");
    daemon_expects(daemon, "called "); /* by its last words, which were overwritten */
    daemon_expects(daemon, "could not wait for events");
    daemon_expects(daemon, "a worker process died at once");
    for (int i = 0; i < 5; i++) {
        int client, other;

        worker = first_worker(daemon);
        client = open_with(daemon, worker, false);
        other = open_with(daemon, worker, true);
        ck_assert_str_eq(ask_intruder(client, "r"), "filled=1 ");
        ck_assert(control_is_ok(control_ask(daemon, "status")));
        if (i % 2 == 0)
            kill(worker, SIGKILL);
        else
            reload_once(daemon);
        ck_assert(control_is_ok(control_ask(daemon, "status")));
        ck_assert_str_eq(ask_intruder(other, "?"), "alive=1 ");
        close(client);
        close(other);
        WAIT_FOR(proc_child_n(daemon->pid) == WORKERS && proc_state(worker) == 0);
    }
    last = client_open(daemon->ports[0]);
    ck_assert_str_eq(ask_intruder(last, "r"), "filled=1 ");
    close(last);
    new = upgrade_start(daemon);
    upgrade_complete(daemon, new);
    ck_assert(control_is_ok(control_ask(daemon, "status")));
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The module ends the checking process of the configuration if it has the memory. */
START_TEST(a_configuration_check_has_none_of_it)
{
    struct daemon *daemon = daemon_start_new(1, INTRUDER);

    reload_once(daemon);
    ck_assert_uint_eq(daemon_count_log(daemon, "exited while it was loaded"), 0);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_worker_writes_its_own_pages_alone);
    tcase_add_test(tcase, nothing_else_can_be_made_writable);
    tcase_add_test(tcase, who_writes_elsewhere_dies_alone);
    tcase_add_test(tcase, nonsense_harms_nobody_else);
    tcase_add_test(tcase, a_configuration_check_has_none_of_it);
}

TEST_MAIN("shared_memory", add_tests)
