/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets in the service manager's store. */
#include "daemon/client.h"
#include "daemon/proc.h"
#include "daemon/service_manager.h"

#include "net/address.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ECHO(listen) "server { listen " listen "; echo; }"
#define TWO ECHO("127.0.0.1:$0") ECHO("unix:$D/socket")
#define CONF(servers) "worker_processes 2; events {} stream { " servers " }"

static struct service_manager *start_daemon(struct daemon *daemon)
{
    struct service_manager *manager = service_manager_create(daemon, 0, false);

    daemon_start(daemon);
    service_manager_wait(manager, "READY=1");
    return manager;
}

static void reload_daemon(struct daemon *daemon, struct service_manager *manager)
{
    daemon_signal(daemon, SIGHUP);
    service_manager_wait(manager, "RELOADING=1");
    service_manager_wait(manager, "READY=1");
}

/* The number of stored sockets of the address; all must share a name, unique among the stored
 * sockets. */
static unsigned stored(const struct service_manager *manager, const char *text)
{
    const char *name = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < manager->stored_n; i++) {
        const struct service_manager_stored *one = &manager->store[i];
        struct address address = { .length = sizeof(address.un) };
        char shown[ADDRESS_TEXT];

        ck_assert_int_eq(getsockname(one->fd, &address.any, &address.length), 0);
        ck_assert_int_eq(strncmp(one->name, "forkbeard-", 10), 0);
        if (strcmp(address_format(&address, true, shown), text) == 0) {
            ck_assert(name == NULL || strcmp(one->name, name) == 0);
            name = one->name;
            n++;
        } else {
            ck_assert(name == NULL || strcmp(one->name, name) != 0);
        }
    }
    return n;
}

static const char *tcp(const struct daemon *daemon, unsigned i)
{
    static char text[64];

    snprintf(text, sizeof(text), "127.0.0.1:%u", daemon->ports[i]);
    return text;
}

static const char *local(const struct daemon *daemon)
{
    static char text[160];

    snprintf(text, sizeof(text), "unix:%s", daemon_path(daemon, "socket"));
    return text;
}

START_TEST(what_listens_is_stored)
{
    struct daemon *daemon = daemon_create(2);
    struct service_manager *manager;

    daemon_configure(daemon, CONF(TWO ECHO("127.0.0.1:$1 reuseport")));
    manager = start_daemon(daemon);
    ck_assert_uint_eq(stored(manager, tcp(daemon, 0)), 1);
    ck_assert_uint_eq(stored(manager, tcp(daemon, 1)), 2);
    ck_assert_uint_eq(stored(manager, local(daemon)), 1);
    ck_assert_uint_eq(manager->stored_n, 4);
    service_manager_destroy(manager);
    ck_assert(daemon_has(daemon, "socket"));
    daemon_owns(daemon, "socket");
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_reload_stores_what_is_new_and_removes_what_has_gone)
{
    struct daemon *daemon = daemon_create(3);
    struct service_manager *manager;

    daemon_configure(daemon, CONF(TWO ECHO("127.0.0.1:$1 reuseport")));
    manager = start_daemon(daemon);
    reload_daemon(daemon, manager);
    ck_assert_uint_eq(manager->stored_n, 4);

    daemon_configure(daemon, "worker_processes 3; events {} stream {" ECHO("127.0.0.1:$1 reuseport")
                                 ECHO("127.0.0.1:$2") "}");
    reload_daemon(daemon, manager);
    ck_assert_uint_eq(stored(manager, tcp(daemon, 1)), 3);
    ck_assert_uint_eq(stored(manager, tcp(daemon, 2)), 1);
    ck_assert_uint_eq(manager->stored_n, 4);
    WAIT_FOR(client_error(daemon->ports[0]) == ECONNREFUSED);
    ck_assert(!daemon_has(daemon, "socket"));

    daemon_expects(daemon, "unknown directive \"nonsense\"");
    daemon_configure(daemon, "nonsense;");
    reload_daemon(daemon, manager);
    ck_assert_uint_eq(manager->stored_n, 4);
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

static const struct {
    const char *conf;
    int signal;
} ends[] = {
    { CONF(TWO), SIGQUIT },
    { CONF(TWO), SIGTERM },
    { "master_process off;" CONF(TWO), SIGQUIT },
    { "master_process off;" CONF(TWO), SIGTERM },
};

/* A client that comes after the end waits for the next start. */
START_TEST(clients_wait_while_nobody_runs)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;
    int clients[2];

    daemon_configure(daemon, "%s", ends[_i].conf);
    manager = start_daemon(daemon);
    service_manager_stop(manager, ends[_i].signal);
    clients[0] = client_open(daemon->ports[0]);
    clients[1] = client_open_unix(daemon_path(daemon, "socket"));
    for (int i = 0; i < 2; i++) {
        client_send(clients[i], "waits");
        ck_assert(client_is_quiet(clients[i]));
        close(clients[i]);
    }
    service_manager_destroy(manager);
    ck_assert_int_eq(client_error(daemon->ports[0]), ECONNREFUSED);
    daemon_owns(daemon, "socket");
    daemon_finish(daemon);
}
END_TEST

/* Started again, and given what is stored. */
static void start_again(struct daemon *daemon, struct service_manager *manager)
{
    static char names[SERVICE_MANAGER_STORE_MAX * 64];
    size_t n = 0;

    while (!service_manager_is_quiet(manager)) /* the socket of the daemon before */
        service_manager_next(manager);
    daemon->passed_n = manager->stored_n;
    ck_assert_uint_le(daemon->passed_n, PASSED_MAX);
    for (unsigned i = 0; i < manager->stored_n; i++) {
        daemon->passed[i] = manager->store[i].fd;
        n += (size_t)snprintf(
            names + n, sizeof(names) - n, "%s%s", i > 0 ? ":" : "", manager->store[i].name);
    }
    daemon->passed_names = names;
    daemon_start(daemon);
    service_manager_wait(manager, "READY=1");
}

static const char *const modes[] = { "worker_processes 2;", "master_process off;" };

/* A socket is stored once, and removed when a later reload no longer has it. */
START_TEST(the_next_start_serves_who_has_waited)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;
    int clients[2];

    daemon_configure(daemon, "%s events {} stream {" TWO "}", modes[_i]);
    manager = start_daemon(daemon);
    service_manager_stop(manager, SIGQUIT);
    clients[0] = client_open(daemon->ports[0]);
    clients[1] = client_open_unix(daemon_path(daemon, "socket"));
    start_again(daemon, manager);
    for (int i = 0; i < 2; i++) {
        client_echo(clients[i], "has waited");
        close(clients[i]);
    }
    ck_assert_uint_eq(manager->stored_n, 2);
    if (_i == 0) {
        daemon_configure(daemon, CONF(ECHO("127.0.0.1:$0")));
        reload_daemon(daemon, manager);
        ck_assert_uint_eq(stored(manager, tcp(daemon, 0)), 1);
        ck_assert_uint_eq(manager->stored_n, 1);
        ck_assert(!daemon_has(daemon, "socket"));
    } else {
        daemon_owns(daemon, "socket");
    }
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

/* Clients waiting at a socket missing in the configuration are not left waiting. */
START_TEST(what_is_not_wanted_any_more_is_removed)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;
    int client;

    daemon_configure(daemon, "%s events {} stream {" TWO "}", modes[_i]);
    manager = start_daemon(daemon);
    service_manager_stop(manager, SIGQUIT);
    client = client_open_unix(daemon_path(daemon, "socket"));
    daemon_configure(
        daemon, "%s events {} stream { server { listen 127.0.0.1:$0; echo; } }", modes[_i]);
    start_again(daemon, manager);
    client_expect_gone(client);
    close(client);
    ck_assert_uint_eq(stored(manager, tcp(daemon, 0)), 1);
    ck_assert_uint_eq(manager->stored_n, 1);
    ck_assert(!daemon_has(daemon, "socket"));
    service_manager_destroy(manager);
    daemon_finish(daemon);
}
END_TEST

/* The manager gets no sockets opened by itself. */
START_TEST(an_activated_socket_is_not_stored)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager;

    daemon_configure(daemon, "%s events {} stream {" TWO "}", modes[_i]);
    manager = start_daemon(daemon);
    service_manager_stop(manager, SIGQUIT);
    for (unsigned i = 0; i < manager->stored_n; i++)
        snprintf(manager->store[i].name, sizeof(manager->store[i].name), "forkbeard-%u.socket", i);
    start_again(daemon, manager);
    ck_assert_uint_eq(manager->stored_n, 2);
    ck_assert_int_eq(client_error(daemon->ports[0]), 0);
    service_manager_destroy(manager);
    ck_assert(daemon_has(daemon, "socket"));
    daemon_owns(daemon, "socket");
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, what_listens_is_stored);
    tcase_add_test(tcase, a_reload_stores_what_is_new_and_removes_what_has_gone);
    tcase_add_loop_test(
        tcase, clients_wait_while_nobody_runs, 0, (int)(sizeof(ends) / sizeof(ends[0])));
    tcase_add_loop_test(tcase, the_next_start_serves_who_has_waited, 0, 2);
    tcase_add_loop_test(tcase, what_is_not_wanted_any_more_is_removed, 0, 2);
    tcase_add_loop_test(tcase, an_activated_socket_is_not_stored, 0, 2);
}

TEST_MAIN("store", add_tests)
