/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers of a killed master process: the next master names all, and ends all at an immediate
 * end. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Any worker may have the next client. */
#define REUSEPORT "events {} stream { server { listen 127.0.0.1:$0 reuseport; echo; } }\n"
#define LEFT_MAX 8

/* A daemon with a killed master process, and the remains. */
struct scene {
    struct daemon *daemon;
    pid_t master;
    unsigned n; /* workers with a session, by pid */
    pid_t workers[LEFT_MAX];
    int sessions[LEFT_MAX];
};

/* Opens a session with this worker. */
static int open_at(struct daemon *daemon, pid_t worker)
{
    for (int64_t until = deadline_ms();;) {
        int client = client_open(daemon->ports[0]);

        client_echo(client, "begun");
        if (proc_server_of(daemon->pid, client) == worker)
            return client;
        ck_assert_int_lt(now_ms(), until);
        close(client);
    }
}

/* The daemon has one more worker than there are workers left. */
static void set_up(struct scene *scene, unsigned n)
{
    pid_t workers[LEFT_MAX + 1];
    struct daemon *daemon;

    daemon = scene->daemon = daemon_create(1);
    scene->n = n;
    daemon_configure(daemon, "worker_processes %u; " REUSEPORT, n + 1);
    daemon_expects(daemon, "the master process has gone");
    daemon_expects(daemon, ", which was killed, still ha");
    daemon_start(daemon);
    scene->master = daemon->pid;
    ck_assert_uint_eq(proc_children(daemon->pid, workers, LEFT_MAX + 1), n + 1);
    for (unsigned i = 0; i < n; i++) {
        scene->workers[i] = workers[i];
        scene->sessions[i] = open_at(daemon, workers[i]);
    }
    daemon_signal(daemon, SIGKILL);
    ck_assert_int_eq(daemon_wait(daemon), 128 + SIGKILL);
    for (unsigned i = 0; i <= n; i++)
        daemon_wait_log(daemon, "the master process has gone");
    WAIT_FOR(proc_state(workers[n]) == 'Z');
    daemon_mark_log(daemon);
}

/* Ends the sessions that are left. */
static void tear_down(struct scene *scene)
{
    for (unsigned i = 0; i < scene->n; i++)
        close(scene->sessions[i]);
    daemon_stop(scene->daemon, SIGTERM);
    proc_reap_orphans();
    daemon_finish(scene->daemon); /* no list of workers among the files */
}

static unsigned count_left(struct daemon *daemon)
{
    return control_count(control_ask(daemon, "status"), "left_behind");
}

START_TEST(the_next_master_names_them)
{
    struct scene scene;
    struct json_value status, left;
    char line[256];

    set_up(&scene, 2);
    daemon_start(scene.daemon);
    snprintf(line, sizeof(line),
        "[alert] %d#0: 2 worker processes of master process %d, which was killed, still have "
        "sessions: %d %d (\"kill -INT\" ends the processes, as a fast shutdown does)\n",
        (int)scene.daemon->pid, (int)scene.master, (int)scene.workers[0], (int)scene.workers[1]);
    ck_assert_uint_eq(daemon_count_log(scene.daemon, line), 1);
    status = control_ask(scene.daemon, "status");
    ck_assert_uint_eq(control_count(status, "left_behind"), 2);
    for (unsigned i = 0; i < 2; i++) {
        left = control_at(status, "left_behind", i);
        ck_assert_int_eq(control_number(left, "pid"), scene.workers[i]);
        ck_assert_int_eq(control_number(left, "master"), scene.master);
    }
    ck_assert_int_eq(daemon_run(scene.daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    snprintf(line, sizeof(line),
        "\nworkers left behind, whose master was killed (end with kill -INT): %d %d\n",
        (int)scene.workers[0], (int)scene.workers[1]);
    ck_assert_ptr_nonnull(strstr(scene.daemon->out, line));
    for (unsigned i = 0; i < 2; i++)
        client_echo(scene.sessions[i], "goes on");
    ck_assert_int_eq(kill(scene.workers[0], SIGINT), 0); /* the manual's way */
    client_expect_gone(scene.sessions[0]);
    WAIT_FOR(count_left(scene.daemon) == 1);
    client_echo(scene.sessions[1], "goes on");
    ck_assert_int_eq(shutdown(scene.sessions[1], SHUT_RDWR), 0);
    WAIT_FOR(count_left(scene.daemon) == 0);
    tear_down(&scene);
}
END_TEST

/* _i: by SIGINT, by -s stop. */
START_TEST(a_fast_shutdown_ends_them)
{
    struct scene scene;
    int session;

    set_up(&scene, 2);
    if (_i == 0)
        proc_freeze(scene.workers[1]); /* must be killed */
    daemon_start(scene.daemon);
    session = client_open(scene.daemon->ports[0]);
    client_echo(session, "held open");
    client_echo(scene.sessions[0], "goes on");
    if (_i == 1)
        ck_assert_int_eq(daemon_run(scene.daemon, "-s", "stop", "-c", "forkbeard.conf", NULL), 0);
    else
        daemon_signal(scene.daemon, SIGINT);
    ck_assert_int_eq(daemon_wait(scene.daemon), 0);
    for (unsigned i = 0; i < 2; i++) {
        WAIT_FOR(proc_state(scene.workers[i]) == 'Z');
        client_expect_gone(scene.sessions[i]);
    }
    daemon_wait_log(scene.daemon, "2 worker processes of a killed master process are");
    close(session);
    proc_reap_orphans();
    daemon_finish(scene.daemon);
    for (unsigned i = 0; i < 2; i++)
        close(scene.sessions[i]);
}
END_TEST

/* Whether a client gets a session. */
static bool is_let_in(struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);
    char byte;
    bool let_in = send(client, "x", 1, MSG_NOSIGNAL) == 1 && recv(client, &byte, 1, 0) == 1;

    close(client);
    return let_in;
}

/* A limit counts the session of a worker left behind during the worker's life. _i: the old process
 * is killed, or the new. */
START_TEST(a_limit_forgets_them)
{
    struct daemon *daemon =
        daemon_start_new(1, "worker_processes 1; events {} stream { limit_conn_zone all "
                            "zone=all:32k; limit_conn_log_level "
                            "info;\nserver { listen 127.0.0.1:$0; limit_conn all 1; echo; } }\n");
    pid_t old = daemon->pid, new, worker;
    int session = -1;

    daemon_expects(daemon, "the master process has gone");
    daemon_expects(daemon, "exited on signal 9");
    daemon_owns(daemon, "forkbeard.pid.oldbin");
    daemon_owns(daemon, "forkbeard.sock.oldbin");
    new = upgrade_start(daemon);
    for (int64_t until = deadline_ms();; close(session)) {
        char byte;

        ck_assert_int_lt(now_ms(), until);
        session = client_open(daemon->ports[0]);
        if (send(session, "x", 1, MSG_NOSIGNAL) != 1 || recv(session, &byte, 1, 0) != 1)
            continue; /* the one before is counted yet */
        worker = proc_holder(_i == 0 ? old : new, proc_connection(session));
        if (worker != 0)
            break;
    }
    ck_assert(!is_let_in(daemon));
    ck_assert_int_eq(kill(_i == 0 ? old : new, SIGKILL), 0);
    if (_i == 0) {
        ck_assert_int_eq(proc_wait(old), 128 + SIGKILL);
        daemon->pid = new;
        daemon_wait_log(daemon, "has ended: process");
    } else {
        upgrade_wait_rollback(daemon);
    }
    WAIT_FOR(count_left(daemon) == 1);
    ck_assert(!is_let_in(daemon));
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    WAIT_FOR(is_let_in(daemon));
    close(session);
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, the_next_master_names_them);
    tcase_add_loop_test(tcase, a_fast_shutdown_ends_them, 0, 2);
    tcase_add_loop_test(tcase, a_limit_forgets_them, 0, 2);
}

TEST_MAIN("left_behind", add_tests)
