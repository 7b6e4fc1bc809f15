/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to a service manager. */
#include "daemon/client.h"
#include "daemon/proc.h"
#include "daemon/service_manager.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONF "worker_processes 2; events {} stream { server { listen 127.0.0.1:$0; echo; } }"
#define SERVING "STATUS=Serving: 2 workers, generation "

/* A daemon that has said that it serves. */
static struct service_manager *start_daemon(struct daemon *daemon, uint64_t watchdog_us)
{
    struct service_manager *manager = service_manager_create(daemon, watchdog_us, false);

    daemon_start(daemon);
    service_manager_wait(manager, SERVING "1");
    service_manager_expect(manager, "READY=1");
    service_manager_wait_barrier(manager);
    return manager;
}

START_TEST(a_start_is_told_when_it_serves)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;

    daemon_configure(daemon, CONF);
    manager = start_daemon(daemon, 0);
    ck_assert_int_eq(client_error(daemon->ports[0]), 0);
    ck_assert(service_manager_is_quiet(manager));
    service_manager_stop(manager, SIGTERM);
    service_manager_expect(manager, "STOPPING=1");
    service_manager_expect(manager, "STATUS=Stopping: 2 workers");
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_start_that_fails_is_not_ready)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 0, false);

    daemon_configure(daemon, "events {} stream { server { listen unix:$D/no/such; echo; } }");
    daemon_expects(daemon, "bind() to unix:");
    daemon_expects(daemon, "listen unix:"); /* the excerpt */
    daemon_expects(daemon, "^~~");
    daemon_launch(daemon);
    ck_assert_int_eq(daemon_wait(daemon), 1);
    ck_assert(service_manager_is_quiet(manager));
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

static void expect_reloading(struct service_manager *manager, int64_t since_ms)
{
    uint64_t us;
    int n = 0;

    ck_assert_int_eq(sscanf(service_manager_wait(manager, "RELOADING=1"),
                         "RELOADING=1\nMONOTONIC_USEC=%" SCNu64 "%n", &us, &n),
        1);
    ck_assert_uint_eq((size_t)n, strlen(manager->message.text));
    ck_assert_int_ge((int64_t)us / 1000, since_ms);
    ck_assert_int_le((int64_t)us / 1000, now_ms());
    service_manager_expect(manager, "STATUS=Reloading; serving: 2 workers, generation 1");
}

START_TEST(a_reload_is_told)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;
    const char *last;
    int64_t before;
    int session;

    daemon_configure(daemon, CONF);
    manager = start_daemon(daemon, 0);
    session = client_open(daemon->ports[0]);
    client_echo(session, "holds its worker");
    before = now_ms();
    if (_i == 0)
        daemon_signal(daemon, SIGHUP);
    else
        ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    expect_reloading(manager, before);
    service_manager_wait(manager, SERVING "2, "); /* draining: one, or both yet */
    service_manager_expect(manager, "READY=1");
    close(session);
    do
        last = service_manager_wait(manager, SERVING "2");
    while (strcmp(last, SERVING "2") != 0);
    ck_assert(service_manager_is_quiet(manager));
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

#define FAILURE "unknown directive \"ecko\", did you mean \"echo\"? in "

/* The status names what -s shows, until a reload succeeds. */
START_TEST(a_failure_is_told_and_stays)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;
    char failed[512];
    pid_t workers[2];

    daemon_configure(daemon, CONF);
    manager = start_daemon(daemon, 0);
    daemon_expects(daemon, FAILURE);
    daemon_configure(daemon, "events {}\nstream { server { listen 127.0.0.1:$0;\necko; } }");
    snprintf(failed, sizeof(failed),
        "STATUS=Reload failed: " FAILURE "%s:5:1; serving: 2 workers, generation 1",
        daemon_path(daemon, "forkbeard.conf"));
    if (_i == 0) {
        daemon_signal(daemon, SIGHUP);
    } else {
        ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 1);
        ck_assert_ptr_nonnull(strstr(daemon->err, FAILURE));
    }
    expect_reloading(manager, 0);
    service_manager_expect(manager, failed);
    service_manager_expect(manager, "READY=1");

    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    daemon_expects(daemon, "exited on signal 9");
    daemon_mark_log(daemon);
    ck_assert_int_eq(kill(workers[0], SIGKILL), 0);
    daemon_wait_log(daemon, "start worker process");
    daemon_signal(daemon, SIGHUP);
    expect_reloading(manager, 0);
    service_manager_expect(manager, failed);
    service_manager_expect(manager, "READY=1");

    daemon_configure(daemon, CONF);
    daemon_signal(daemon, SIGHUP);
    expect_reloading(manager, 0);
    service_manager_wait(manager, SERVING "2");
    service_manager_expect(manager, "READY=1");
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_drain_is_told)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;
    int session;

    daemon_configure(daemon, CONF);
    manager = start_daemon(daemon, 0);
    session = client_open(daemon->ports[0]);
    client_echo(session, "holds its worker");
    daemon_signal(daemon, SIGQUIT);
    service_manager_expect(manager, "STOPPING=1");
    service_manager_expect(
        manager, "STATUS=Draining: the sessions of 2 workers may end by themselves");
    service_manager_expect(
        manager, "STATUS=Draining: the sessions of 1 worker may end by themselves");
    close(session);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

/* A quit that an operator asks for may be taken back: it is no end for the manager, who would kill
 * what is left of the daemon some time later. */
START_TEST(a_quit_may_be_taken_back)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;
    int session;

    daemon_configure(daemon, CONF);
    manager = start_daemon(daemon, 0);
    session = client_open(daemon->ports[0]);
    client_echo(session, "holds its worker");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "quit", NULL), 0);
    service_manager_expect(
        manager, "STATUS=Draining: the sessions of 2 workers may end by themselves");
    service_manager_expect(
        manager, "STATUS=Draining: the sessions of 1 worker may end by themselves");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "resume", NULL), 0);
    service_manager_wait(manager, SERVING "2, 1 draining");
    service_manager_expect(manager, "READY=1");
    client_echo(session, "goes on");
    ck_assert_int_eq(client_error(daemon->ports[0]), 0);
    close(session);
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

static const char *const ways[] = { CONF, "master_process off; " CONF };

START_TEST(the_watchdog_is_fed)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 40000, false);

    daemon_configure(daemon, "%s", ways[_i]);
    daemon_start(daemon);
    service_manager_wait(manager, "READY=1");
    for (int i = 0; i < 5; i++)
        service_manager_wait(manager, "WATCHDOG=1");
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

/* A process that was not asked to sends nothing, although it has the time. */
START_TEST(another_ones_watchdog_is_not_fed)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 2000, true);

    daemon_configure(daemon, CONF);
    daemon_start(daemon);
    for (unsigned i = 1; i <= 5; i++) {
        daemon_signal(daemon, SIGHUP);
        while (strcmp(service_manager_next(manager), "READY=1") != 0)
            ck_assert_str_ne(manager->message.text, "WATCHDOG=1");
    }
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_single_process_tells_too)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 0, false);
    int session;

    daemon_configure(daemon, "master_process off; " CONF);
    daemon_start(daemon);
    service_manager_expect(manager, "STATUS=Serving: a single process");
    service_manager_expect(manager, "READY=1");
    session = client_open(daemon->ports[0]);
    client_echo(session, "holds it");
    daemon_signal(daemon, SIGQUIT);
    service_manager_expect(manager, "STOPPING=1");
    service_manager_expect(manager, "STATUS=Draining: the sessions may end by themselves");
    service_manager_stop(manager, SIGTERM);
    ck_assert(service_manager_is_quiet(manager));
    close(session);
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

/* The daemon serves all the same, and says it once. */
START_TEST(a_manager_that_is_gone_is_one_line)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 2000, false);
    int client;

    service_manager_go(manager);
    daemon_expects(daemon, "cannot be reached (111: Connection refused)");
    daemon_configure(daemon, "%s", ways[_i]);
    daemon_start(daemon);
    daemon_wait_log(daemon, "cannot be reached (111: Connection refused)");
    client = client_open(daemon->ports[0]);
    client_echo(client, "serves");
    close(client);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(daemon_count_log(daemon, "cannot be reached"), 1);
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

/* No message comes even where the configuration asks for it. */
START_TEST(no_worker_knows_the_manager)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;
    int client;

    daemon_configure(daemon,
        "env NOTIFY_SOCKET; env WATCHDOG_USEC; load_module " MODULES_PATH "/stuck.so;\n"
        "worker_processes 2; events {} stream { server { listen 127.0.0.1:$0; stuck; } }");
    manager = start_daemon(daemon, 60000000);
    client = client_open(daemon->ports[0]);
    client_send(client, "m");
    client_expect(client, "n");
    close(client);
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_start_is_told_when_it_serves);
    tcase_add_test(tcase, a_start_that_fails_is_not_ready);
    tcase_add_loop_test(tcase, a_reload_is_told, 0, 2);
    tcase_add_loop_test(tcase, a_failure_is_told_and_stays, 0, 2);
    tcase_add_test(tcase, a_drain_is_told);
    tcase_add_test(tcase, a_quit_may_be_taken_back);
    tcase_add_loop_test(tcase, the_watchdog_is_fed, 0, 2);
    tcase_add_test(tcase, another_ones_watchdog_is_not_fed);
    tcase_add_test(tcase, a_single_process_tells_too);
    tcase_add_test(tcase, no_worker_knows_the_manager);
    tcase_add_loop_test(tcase, a_manager_that_is_gone_is_one_line, 0, 2);
}

TEST_MAIN("manager", add_tests)
