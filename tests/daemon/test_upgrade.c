/* SPDX-License-Identifier: BSD-2-Clause */
/* USR2: a newer binary beside the old one, and the ways on from there. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 4
#define CLIENTS 40
#define REUSEPORT(n)                                                                               \
    "worker_processes " #n "; events {} "                                                          \
    "stream { server { listen 127.0.0.1:$0 reuseport; echo; } }"

static bool is_served_by(struct daemon *daemon, pid_t master)
{
    int client = client_open(daemon->ports[0]);
    pid_t server;

    client_echo(client, "by whom");
    server = proc_holder(master, proc_connection(client));
    close(client);
    return server != 0;
}

/* Whether ten clients are. A worker accepts waiting clients as it steps back, and a worker kept by
 * a session may do so when the rest have ended. */
static bool is_served_only_by(struct daemon *daemon, pid_t master)
{
    for (int i = 0; i < 10; i++)
        if (!is_served_by(daemon, master))
            return false;
    return true;
}

START_TEST(forward)
{
    struct daemon *daemon = daemon_start_new(2, UPGRADE_ECHO(""));
    int client = client_open(daemon->ports[0]);
    char line[128];
    pid_t new;

    client_echo(client, "begun");
    new = upgrade_start(daemon);
    snprintf(line, sizeof(line),
        "#0: forkbeard/" PACKAGE_VERSION " starts beside process %d: using the \"",
        (int)daemon->pid);
    ck_assert_uint_eq(daemon_count_log(daemon, line), 1);
    ck_assert_int_eq(upgrade_read_pid(daemon, "forkbeard.pid.lock"), new);
    WAIT_FOR(is_served_by(daemon, new)); /* two masters serve */
    WAIT_FOR(is_served_by(daemon, daemon->pid));
    daemon_signal(daemon, SIGQUIT);
    WAIT_FOR(proc_child_n(daemon->pid) == 2); /* the new master, and the worker with the session */
    WAIT_FOR(is_served_only_by(daemon, new));
    client_echo(client, "goes on");
    close(client);
    upgrade_wait_complete(daemon, new);
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(back)
{
    struct daemon *daemon = daemon_start_new(2, UPGRADE_ECHO(""));
    int client;
    pid_t new = upgrade_start(daemon);

    do { /* a session of the new one */
        client = client_open(daemon->ports[0]);
        client_echo(client, "begun");
        if (proc_holder(new, proc_connection(client)) != 0)
            break;
        close(client);
    } while (true);
    ck_assert_int_eq(kill(new, SIGQUIT), 0);
    WAIT_FOR(proc_child_n(new) == 1);
    WAIT_FOR(is_served_only_by(daemon, daemon->pid));
    client_echo(client, "goes on");
    close(client);
    upgrade_wait_rollback(daemon);
    upgrade_echo_once(daemon);
    ck_assert_int_eq(upgrade_read_pid(daemon, "forkbeard.pid.lock"), daemon->pid);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_new_one_is_killed)
{
    struct daemon *daemon = daemon_start_new(2, UPGRADE_ECHO(""));
    pid_t new = upgrade_start(daemon);

    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "the master process has gone");
    daemon_expects(daemon, ", which was killed, still ha"); /* about to end */
    ck_assert_int_eq(kill(new, SIGKILL), 0);
    upgrade_wait_rollback(daemon);
    for (int i = 0; i < 10; i++)
        upgrade_echo_once(daemon);
    upgrade_complete(daemon, upgrade_start(daemon));
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_old_one_is_killed)
{
    struct daemon *daemon = daemon_start_new(2, UPGRADE_ECHO(""));
    pid_t new = upgrade_start(daemon);

    daemon_expects(daemon, "the master process has gone");
    daemon_expects(daemon, ", which was killed, still ha"); /* about to end */
    daemon_owns(daemon, "forkbeard.pid.oldbin"); /* the killed process could not clean up */
    daemon_owns(daemon, "forkbeard.sock.oldbin");
    daemon_signal(daemon, SIGKILL);
    ck_assert_int_eq(proc_wait(daemon->pid), 128 + SIGKILL);
    daemon->pid = new;
    daemon_wait_log(daemon, "has ended: process");
    for (int i = 0; i < 10; i++)
        upgrade_echo_once(daemon);
    upgrade_complete(daemon, upgrade_start(daemon)); /* over the left files */
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

/* Ten forward and ten back: as many descriptors as before, in all processes. */
START_TEST(nothing_is_left)
{
    struct daemon *daemon = daemon_start_new(2, UPGRADE_ECHO(""));
    unsigned descriptors;

    upgrade_complete(daemon, upgrade_start(daemon));
    descriptors = proc_descriptors(daemon->pid); /* perhaps some more, still open for the upgrade */
    for (int i = 0; i < 10; i++) {
        upgrade_roll_back(daemon, upgrade_start(daemon));
        upgrade_complete(daemon, upgrade_start(daemon));
        upgrade_echo_once(daemon);
        WAIT_FOR(proc_descriptors(daemon->pid) <= descriptors);
    }
    ck_assert_uint_eq(proc_child_n(daemon->pid), 2);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* In the background the new process stays a child of the old process during its life. */
START_TEST(in_the_background)
{
    struct daemon *daemon = daemon_create(2);

    daemon_configure(daemon, UPGRADE_ECHO(""));
    ck_assert_int_eq(daemon_start_background(daemon), 0);
    upgrade_complete(daemon, upgrade_start(daemon));
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Sockets of a single configuration of the two. */
START_TEST(another_configuration)
{
    struct daemon *daemon = daemon_create(2);
    pid_t new;
    int client;

    daemon_configure(daemon, "events {} stream { server { listen unix:$D/old; "
                             "listen unix:$D/both; listen 127.0.0.1:$0; echo; } }");
    daemon_start(daemon);
    daemon_configure(daemon, "events {} stream { server { listen unix:$D/new; "
                             "listen unix:$D/both; listen 127.0.0.1:$1; echo; } }");
    new = upgrade_start(daemon);
    client = client_open_unix(daemon_path(daemon, "old"));
    client_echo(client, "the old one's");
    close(client);
    client = client_open(daemon->ports[0]);
    client_echo(client, "the old one's");
    close(client);
    upgrade_complete(daemon, new);
    ck_assert(!daemon_has(daemon, "old"));
    ck_assert_int_eq(client_error(daemon->ports[0]), ECONNREFUSED);
    client = client_open_unix(daemon_path(daemon, "both"));
    client_echo(client, "the new one's");
    close(client);

    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$1; echo; } }");
    new = upgrade_start(daemon);
    ck_assert(daemon_has(daemon, "both") && daemon_has(daemon, "new"));
    upgrade_roll_back(daemon, new);
    client = client_open_unix(daemon_path(daemon, "both"));
    client_echo(client, "the old one's");
    close(client);
    daemon_stop(daemon, SIGTERM);
    ck_assert(!daemon_has(daemon, "both") && !daemon_has(daemon, "new"));
    daemon_finish(daemon);
}
END_TEST

/* Whether a descriptor of the process leads to a file of that name. */
static bool has_open(pid_t pid, const char *name)
{
    for (int fd = 0; fd < 256; fd++) {
        char link[32];

        snprintf(link, sizeof(link), "fd/%d", fd);
        if (strstr(proc_link(pid, link), name) != NULL)
            return true;
    }
    return false;
}

/* Pid file, lock and control socket of the new process lie elsewhere. */
START_TEST(other_names)
{
    struct daemon *daemon = daemon_start_new(2, UPGRADE_ECHO(""));
    pid_t new = 0;

    daemon_write(
        daemon, "forkbeard.conf", "error_log error.log notice; pid other.pid; " UPGRADE_ECHO(""));
    daemon_signal(daemon, SIGUSR2);
    WAIT_FOR((new = upgrade_read_pid(daemon, "other.pid")) > 0);
    daemon_wait_log(daemon, "serves: the upgrade is complete when");
    ck_assert_int_eq(upgrade_read_pid(daemon, "forkbeard.pid.oldbin"), daemon->pid);
    ck_assert(!daemon_has(daemon, "forkbeard.pid") && !daemon_has(daemon, "forkbeard.sock"));
    /* the processes name each other's control socket */
    ck_assert_int_eq(daemon_run(daemon, "upgrade", "status", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "new binary: forkbeard "));
    ck_assert_ptr_nonnull(strstr(daemon->out, "old binary: forkbeard "));
    ck_assert_int_eq(kill(new, SIGQUIT), 0);
    upgrade_wait_rollback(daemon);
    ck_assert(!daemon_has(daemon, "other.pid.lock"));

    daemon_signal(daemon, SIGUSR2);
    WAIT_FOR((new = upgrade_read_pid(daemon, "other.pid")) > 0);
    daemon_wait_log(daemon, "serves: the upgrade is complete when");
    daemon_stop(daemon, SIGQUIT);
    daemon->pid = new;
    daemon_wait_log(daemon, "has ended: process");
    ck_assert(!daemon_has(daemon, "forkbeard.pid.oldbin"));
    ck_assert(!daemon_has(daemon, "forkbeard.pid.lock"));
    ck_assert(!has_open(new, "forkbeard.pid.lock"));
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The larger number of workers decides how many queues there are. _i: there, and back. */
START_TEST(reuseport_and_other_workers)
{
    static const int numbers[][2] = { { 4, 1 }, { 1, 4 } };
    struct daemon *daemon = daemon_create(1);
    pid_t new;

    for (int i = 0; i < 2; i++) {
        daemon_configure(daemon,
            "worker_processes %d; events {} stream { server { listen 127.0.0.1:$0 reuseport; echo; "
            "} "
            "}",
            numbers[_i][i]);
        if (i == 0)
            daemon_start(daemon);
    }
    new = upgrade_start(daemon);
    daemon_signal(daemon, SIGQUIT);
    upgrade_wait_complete(daemon, new);
    for (int i = 0; i < 40; i++)
        ck_assert(is_served_by(daemon, new));
    daemon_finish(daemon);
}
END_TEST

/* The new daemon has more queues than the old daemon, to which it goes back: clients waiting in the
 * extra queues are not lost. */
START_TEST(queues_of_the_new_one_alone)
{
    struct daemon *daemon = daemon_create(1);
    pid_t new, workers[WORKERS];
    int clients[CLIENTS];

    daemon_configure(daemon, REUSEPORT(1));
    daemon_start(daemon);
    daemon_configure(daemon, REUSEPORT(4));
    new = upgrade_start(daemon);
    WAIT_FOR(proc_children(new, workers, WORKERS) == WORKERS);
    proc_freeze(workers[0]); /* the new process has every queue meanwhile */
    ck_assert_int_eq(kill(new, SIGQUIT), 0);
    WAIT_FOR(proc_child_n(new) == 1);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_send(clients[i], "waits");
    }
    ck_assert_int_eq(kill(workers[0], SIGCONT), 0);
    for (int i = 0; i < CLIENTS; i++) {
        client_expect(clients[i], "waits");
        close(clients[i]);
    }
    upgrade_wait_rollback(daemon);
    daemon_finish(daemon);
}
END_TEST

static void expect_number(struct daemon *daemon, const char *reply)
{
    int client = client_open(daemon->ports[0]);

    client_send(client, "incr n\r\n");
    client_expect(client, reply);
    close(client);
}

/* Shared zones outlive the binary, and two binaries may write to them. */
START_TEST(shared_memory_stays)
{
    struct daemon *daemon = daemon_create(1);
    pid_t new;

    daemon_configure(daemon,
        "load_module " EXAMPLES_PATH "/resp/.libs/resp.so; worker_processes 2; events {} "
        "stream { server { listen 127.0.0.1:$0; resp; resp_keys 1000; } }");
    daemon_start(daemon);
    expect_number(daemon, ":1\r\n");
    new = upgrade_start(daemon);
    for (int i = 2; i < 30; i++) {
        char reply[16];

        snprintf(reply, sizeof(reply), ":%d\r\n", i);
        expect_number(daemon, reply);
    }
    upgrade_roll_back(daemon, new);
    expect_number(daemon, ":30\r\n");
    upgrade_complete(daemon, upgrade_start(daemon));
    expect_number(daemon, ":31\r\n");
    upgrade_complete(daemon, upgrade_start(daemon));
    expect_number(daemon, ":32\r\n");
    ck_assert_uint_eq(daemon_count_log(daemon, "begins empty"), 0);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, forward);
    tcase_add_test(tcase, back);
    tcase_add_test(tcase, the_new_one_is_killed);
    tcase_add_test(tcase, the_old_one_is_killed);
    tcase_add_test(tcase, nothing_is_left);
    tcase_add_test(tcase, in_the_background);
    tcase_add_test(tcase, another_configuration);
    tcase_add_test(tcase, other_names);
    tcase_add_loop_test(tcase, reuseport_and_other_workers, 0, 2);
    tcase_add_test(tcase, queues_of_the_new_one_alone);
    tcase_add_test(tcase, shared_memory_stays);
}

TEST_MAIN("upgrade", add_tests)
