/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to a service manager. */
#include "daemon/client.h"
#include "daemon/service_manager.h"

#include <signal.h>
#include <unistd.h>

#define CONF "worker_processes 2; events {} stream { server { listen 127.0.0.1:$0; echo; } }"
#define SERVING "STATUS=Serving: 2 workers, generation "

/* A daemon that has reported READY=1. */
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

/* The daemon serves all the same, and logs the loss once. */
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

/* No message comes, even if asked for by the configuration. */
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
    tcase_add_loop_test(tcase, the_watchdog_is_fed, 0, 2);
    tcase_add_test(tcase, a_single_process_tells_too);
    tcase_add_test(tcase, no_worker_knows_the_manager);
    tcase_add_loop_test(tcase, a_manager_that_is_gone_is_one_line, 0, 2);
}

TEST_MAIN("manager", add_tests)
