/* SPDX-License-Identifier: BSD-2-Clause */
/* A reload in one of two master processes, and the remains after the second process's end. */
#include "daemon/client.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <unistd.h>

#define CLIENTS 40
#define REUSEPORT(n) "worker_processes " #n "; " REUSEPORT_SERVER("echo;")
#define REUSEPORT_SERVER(protocol)                                                                 \
    "events {} stream { server { listen 127.0.0.1:$0 reuseport; " protocol " } }"
#define HANGS "load_module " MODULES_PATH "/hangs.so; "

/* Reloads a master of the two, and waits until the new configuration serves. */
static void reload_one(struct daemon *daemon, pid_t master)
{
    daemon_mark_log(daemon);
    ck_assert_int_eq(kill(master, SIGHUP), 0);
    daemon_wait_log(daemon, "start worker process");
    daemon_wait_log(daemon, "exited with code 0");
}

/* Queues given by the old master while the new master's next workers start. _i: they do not get
 * ready. */
START_TEST(queues_come_during_a_reload)
{
    struct daemon *daemon = daemon_start_new(1, REUSEPORT(1));
    pid_t new = upgrade_start(daemon);

    daemon_configure(daemon, REUSEPORT(4));
    reload_one(daemon, daemon->pid); /* the new configuration lacks three of the queues */
    daemon_configure(daemon,
        HANGS "worker_start_timeout %s; " REUSEPORT_SERVER("hangs; hangs_while $D/late;"),
        _i == 0 ? "60s" : "1s");
    daemon_write(daemon, "late", "x");
    daemon_mark_log(daemon);
    ck_assert_int_eq(kill(new, SIGHUP), 0);
    daemon_wait_log(daemon, "start worker process");
    daemon_stop(daemon, SIGQUIT);
    daemon->pid = new;
    daemon_wait_log(daemon, "has ended: process");
    if (_i == 1) {
        daemon_expects(daemon, "was not ready within worker_start_timeout");
        daemon_expects(daemon, "the previous configuration stays in force");
        daemon_expects(daemon, "exited on signal 9");
        WAIT_FOR(daemon_count_log(daemon, "stays in force") > 0);
    }
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    for (int i = 0; i < CLIENTS; i++) {
        int client = client_open(daemon->ports[0]);

        client_echo(client, "in whichever queue");
        close(client);
    }
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* An address beside a wildcard of its port in the old master. */
START_TEST(beside_a_wildcard)
{
    struct daemon *daemon =
        daemon_start_new(1, "events {} stream { server { listen $0; return wide; } }");
    int client;

    daemon_configure(daemon, "events {} stream { server { listen $0; return wide; } "
                             "server { listen 127.0.0.1:$0 bind; echo; } }");
    upgrade_complete(daemon, upgrade_start(daemon));
    client = client_open(daemon->ports[0]);
    client_echo(client, "of this address");
    close(client);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, queues_come_during_a_reload, 0, 2);
    tcase_add_test(tcase, beside_a_wildcard);
}

TEST_MAIN("upgrade_reloads", add_tests)
