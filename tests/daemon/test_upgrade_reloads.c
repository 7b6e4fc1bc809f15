/* SPDX-License-Identifier: BSD-2-Clause */
/* A reload of one of two master processes, and what of it remains when the other has gone. */
#include "daemon/client.h"
#include "daemon/proc.h"
#include "daemon/service_manager.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define CLIENTS 40
#define SERVER "events {} stream { server { listen 127.0.0.1:$0; echo; } }"
/* A worker does not get ready while the file "late" is there. */
#define LATE                                                                                       \
    "load_module " MODULES_PATH "/hangs.so; events {} "                                            \
    "stream { server { listen 127.0.0.1:$0; hangs; hangs_while $D/late; } }"
#define REUSEPORT(n) "worker_processes " #n "; " REUSEPORT_SERVER("echo;")
#define REUSEPORT_SERVER(protocol)                                                                 \
    "events {} stream { server { listen 127.0.0.1:$0 reuseport; " protocol " } }"
#define HANGS "load_module " MODULES_PATH "/hangs.so; "

/* Reloads one of the two, and waits until it serves. */
static void reload_one(struct daemon *daemon, pid_t master)
{
    daemon_mark_log(daemon);
    ck_assert_int_eq(kill(master, SIGHUP), 0);
    daemon_wait_log(daemon, "start worker process");
    daemon_wait_log(daemon, "exited with code 0");
}

/* In place of the configuration file: the pid file and the control socket have other names. */
static void rename_all(struct daemon *daemon, const char *server)
{
    char text[1024];

    snprintf(text, sizeof(text), "error_log error.log notice; pid other.pid; %s", server);
    daemon_write(daemon, "forkbeard.conf", "%s", text);
}

static void check_renamed(struct daemon *daemon)
{
    WAIT_FOR(upgrade_read_pid(daemon, "other.pid") == daemon->pid);
    WAIT_FOR(daemon_has(daemon, "other.sock"));
    WAIT_FOR(!daemon_has(daemon, "forkbeard.sock") && !daemon_has(daemon, "forkbeard.pid.lock"));
    ck_assert(!daemon_has(daemon, "forkbeard.sock.oldbin"));
    ck_assert(!daemon_has(daemon, "forkbeard.pid"));
    ck_assert(!daemon_has(daemon, "forkbeard.pid.oldbin"));
}

/* The old one's names are the new one's meanwhile: they move when it has gone. _i: the reload is
 * under way yet. */
START_TEST(names_move_later)
{
    struct daemon *daemon = daemon_start_new(1, SERVER);
    pid_t new = upgrade_start(daemon);

    rename_all(daemon, _i == 0 ? SERVER : LATE);
    if (_i == 0) {
        reload_one(daemon, daemon->pid);
    } else {
        daemon_write(daemon, "late", "x");
        daemon_mark_log(daemon);
        daemon_signal(daemon, SIGHUP);
        daemon_wait_log(daemon, "start worker process");
    }
    ck_assert(!daemon_has(daemon, "other.pid"));
    ck_assert_int_eq(kill(new, SIGQUIT), 0);
    daemon_wait_log(daemon, "is the only one again");
    if (_i == 1)
        ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    check_renamed(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* They cannot: they stay where they are, and the old one serves. */
START_TEST(names_that_cannot_move)
{
    struct daemon *daemon = daemon_start_new(1, SERVER);
    pid_t new = upgrade_start(daemon);

    rename_all(daemon, SERVER);
    daemon_write(daemon, "other.sock", "no socket");
    reload_one(daemon, daemon->pid);
    daemon_expects(daemon, "exists and is not a socket");
    upgrade_roll_back(daemon, new);
    ck_assert(!daemon_has(daemon, "other.pid") && !daemon_has(daemon, "other.pid.lock"));
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The old one's lock is its alone when the new one has moved its own. */
START_TEST(the_new_ones_names_move)
{
    struct daemon *daemon = daemon_start_new(1, SERVER);
    pid_t new = upgrade_start(daemon), old = daemon->pid;

    rename_all(daemon, SERVER);
    reload_one(daemon, new);
    WAIT_FOR(upgrade_read_pid(daemon, "other.pid") == new);
    daemon_stop(daemon, SIGQUIT);
    daemon->pid = new;
    daemon_wait_log(daemon, "has ended: process");
    ck_assert_int_ne(old, new);
    check_renamed(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Queues that the old one gives while the new one's next workers start. _i: they do not get
 * ready. */
START_TEST(queues_come_during_a_reload)
{
    struct daemon *daemon = daemon_start_new(1, REUSEPORT(1));
    pid_t new = upgrade_start(daemon);

    daemon_configure(daemon, REUSEPORT(4));
    reload_one(daemon, daemon->pid); /* the old one has three that the new one lacks */
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

/* An address beside a wildcard of its port that the old one has. */
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

/* The service manager's main process is the old one again, which is ending itself. */
START_TEST(back_to_one_that_ends)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 0, false);
    char main_is[32];
    pid_t old, new;
    int client;

    daemon_configure(daemon, SERVER);
    daemon_start(daemon);
    old = daemon->pid;
    client = client_open(daemon->ports[0]);
    client_echo(client, "a session of the old one");
    new = upgrade_start(daemon);
    snprintf(main_is, sizeof(main_is), "MAINPID=%d", (int)new);
    service_manager_wait(manager, main_is);
    daemon->pid = new;
    service_manager_wait(manager, "READY=1");
    daemon_mark_log(daemon);
    ck_assert_int_eq(kill(old, SIGQUIT), 0);
    daemon_wait_log(daemon, "(SIGQUIT) received");
    ck_assert_int_eq(kill(new, SIGQUIT), 0);
    snprintf(main_is, sizeof(main_is), "MAINPID=%d", (int)old);
    service_manager_wait(manager, main_is);
    daemon->pid = old;
    service_manager_expect(manager, "STOPPING=1");
    service_manager_wait(manager, "STATUS=Draining: ");
    service_manager_wait_barrier(manager);
    ck_assert_uint_eq(manager->stored_n, 0);
    close(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    proc_reap_orphans();
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, names_move_later, 0, 2);
    tcase_add_test(tcase, names_that_cannot_move);
    tcase_add_test(tcase, the_new_ones_names_move);
    tcase_add_loop_test(tcase, queues_come_during_a_reload, 0, 2);
    tcase_add_test(tcase, beside_a_wildcard);
    tcase_add_test(tcase, back_to_one_that_ends);
}

TEST_MAIN("upgrade_reloads", add_tests)
