/* SPDX-License-Identifier: BSD-2-Clause */
/* Dying workers, and the effect on clients and on further workers. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKERS 4
#define SESSIONS 12
#define SERVERS                                                                                    \
    "stream { server { listen 127.0.0.1:$0; echo; } server { listen 127.0.0.1:$1; stub_status; } " \
    "}"

static struct daemon *start_daemon(const char *directives, const char *events)
{
    return daemon_start_new(2, "%s events { %s } " SERVERS, directives, events);
}

/* Kills the worker, and waits until a replacement has been started. */
static void kill_worker(struct daemon *daemon, pid_t worker, int number)
{
    unsigned started = daemon_count_log(daemon, "start worker process");

    ck_assert_int_eq(kill(worker, number), 0);
    WAIT_FOR(daemon_count_log(daemon, "start worker process") > started);
    WAIT_FOR(proc_state(worker) == 0);
}

static const char *const modes[] = { "accept_mutex on;", "accept_mutex off;",
    "accept_mutex off; use poll;", "use select;" };

START_TEST(only_its_own_sessions_end)
{
    struct daemon *daemon = start_daemon("worker_processes 4;", modes[_i]);
    struct proc_ports lost = { { 0 } };
    int clients[SESSIONS];
    unsigned lost_n = 0;
    pid_t victim;

    for (int i = 0; i < SESSIONS; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_echo(clients[i], "begun");
    }
    victim = proc_server_of(daemon->pid, clients[0]);
    proc_freeze(victim);
    proc_add_clients(victim, daemon->ports[0], &lost);
    daemon_expects(daemon, "exited on signal 9");
    kill_worker(daemon, victim, SIGKILL);

    for (int i = 0; i < SESSIONS; i++) {
        struct sockaddr_in own;
        socklen_t length = sizeof(own);

        ck_assert_int_eq(getsockname(clients[i], (struct sockaddr *)&own, &length), 0);
        if (proc_ports_have(&lost, ntohs(own.sin_port))) {
            lost_n++;
            client_expect_gone(clients[i]);
        } else {
            client_echo(clients[i], "not concerned");
        }
    }
    ck_assert_uint_ge(lost_n, 1);
    ck_assert_uint_eq(client_status(daemon->ports[1]).active, SESSIONS - lost_n + 1);
    ck_assert_uint_eq(proc_child_n(daemon->pid), WORKERS);
    for (int i = 0; i < SESSIONS; i++)
        close(clients[i]);
    daemon_finish(daemon);
}
END_TEST

START_TEST(statistics_outlive_workers)
{
    struct daemon *daemon = start_daemon("worker_processes 4;", "");
    struct client_status before, after;
    pid_t workers[WORKERS];
    int client;

    for (int i = 0; i < 20; i++) {
        client = client_open(daemon->ports[0]);
        client_echo(client, "one request");
        close(client);
    }
    WAIT_FOR(client_status(daemon->ports[1]).active == 1);
    before = client_status(daemon->ports[1]);
    ck_assert_uint_eq(before.accepts, before.handled);
    ck_assert_uint_ge(before.requests, 20);

    ck_assert_uint_eq(proc_children(daemon->pid, workers, WORKERS), WORKERS);
    daemon_expects(daemon, "exited on signal 9");
    for (int i = 0; i < WORKERS; i++)
        kill_worker(daemon, workers[i], SIGKILL);
    after = client_status(daemon->ports[1]);
    ck_assert_uint_eq(after.accepts, before.accepts + 1);
    ck_assert_uint_eq(after.handled, before.handled + 1);
    ck_assert_uint_eq(after.requests, before.requests + 1);
    ck_assert_uint_eq(after.active, 1);
    ck_assert_uint_eq(after.waiting, 1);
    daemon_finish(daemon);
}
END_TEST

/* A replacement would take the mutex at once: here there is no replacement, and the remaining
 * workers, before their next try in a minute, have to be told. With shares a worker with a client
 * would leave the mutex to its neighbours. */
START_TEST(holder_of_the_mutex_dies)
{
    struct daemon *daemon = daemon_create(2);
    char path[128];

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "place"));
    ck_assert_int_eq(mkdir(path, 0755), 0);
    daemon_configure(daemon,
        "worker_processes 4; working_directory place;"
        "events { use poll; accept_mutex_delay 60s; accept_share off; } " SERVERS);
    daemon_start(daemon);
    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "/place\") failed (2: No such file or directory)");
    daemon_expects(daemon, "a worker process died at once (");
    daemon_expects(daemon, "no worker process serves: all 4 "); /* if the last dies soon enough */
    ck_assert_int_eq(rmdir(path), 0);

    for (unsigned left = WORKERS; left > 0; left--) {
        int client = client_open(daemon->ports[0]);
        pid_t holder;

        client_echo(client, "soon");
        holder = proc_server_of(daemon->pid, client); /* the worker takes it again */
        close(client);
        ck_assert_int_eq(kill(holder, SIGKILL), 0);
        daemon_wait_log(daemon, "exited on signal 9");
    }
    ck_assert_uint_ge(daemon_count_log(daemon, "the accept mutex was taken back"), 1);
    daemon_finish(daemon);
}
END_TEST

static const struct {
    int number;
    const char *line, *level;
} ends[] = {
    { SIGSEGV, "exited on signal 11", "[alert]" },
    { SIGABRT, "exited on signal 6", "[alert]" },
    { SIGKILL, "exited on signal 9", "[alert]" },
    { SIGQUIT, "exited with code 0", "[notice]" },
    { SIGTERM, "exited with code 0", "[notice]" },
};

/* A worker ended by any cause is replaced, and the log names the cause. */
START_TEST(end_is_logged)
{
    int64_t from = now_ms();
    struct daemon *daemon = start_daemon("", "");
    bool crashes = ends[_i].number == SIGSEGV || ends[_i].number == SIGABRT;
    pid_t worker;
    char line[128];

    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    daemon_expects(daemon, ends[_i].line);
    daemon_expects(daemon, "died at once (1 in a row), the next starts in 100 ms");
    if (is_wrapped()) /* a sanitizer reports fatal signals itself */
        daemon_expects(daemon, "==");
    kill_worker(daemon, worker, ends[_i].number);
    snprintf(line, sizeof(line), "%s %d#0: worker process %d %s", ends[_i].level, (int)daemon->pid,
        (int)worker, ends[_i].line);
    ck_assert_uint_eq(daemon_count_log(daemon, line), 1);
    if (!crashes || now_ms() - from < 1000) /* a slow machine lets it live */
        ck_assert_uint_eq(daemon_count_log(daemon, "died at once"), crashes);
    close(client_open(daemon->ports[0]));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, only_its_own_sessions_end, 0, 4);
    tcase_add_test(tcase, statistics_outlive_workers);
    tcase_add_test(tcase, holder_of_the_mutex_dies);
    tcase_add_loop_test(tcase, end_is_logged, 0, 5);
}

TEST_MAIN("workers", add_tests)
