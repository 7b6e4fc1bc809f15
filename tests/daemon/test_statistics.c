/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics in the status: what clients count, over a reload and the kill of a worker. */
#include "base/json.h"
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define TWO                                                                                        \
    "worker_processes 2; events { } stream { server { listen 127.0.0.1:$0; echo; }"                \
    " server { listen 127.0.0.1:$1; deny all; echo; } }"
#define ONE "worker_processes 2; events { } stream { server { listen 127.0.0.1:$0; echo; } }"

/* Returns the statistics of the server at a port; valid until the next question. */
static struct json_value server_at(const struct daemon *daemon, in_port_t port)
{
    struct json_value servers = json_member(control_ask(daemon, "status"), "servers"),
                      server = { NULL, 0 };
    char address[32];

    snprintf(address, sizeof(address), "127.0.0.1:%d", port);
    while ((server = json_next(servers, server)).text != NULL)
        if (strcmp(control_text(server, "listen"), address) == 0)
            break;
    return server;
}

static int64_t number_of(const struct daemon *daemon, unsigned port, const char *name)
{
    return json_integer(json_member(server_at(daemon, daemon->ports[port]), name), -1);
}

static int64_t ended_of(const struct daemon *daemon, unsigned port, const char *cause)
{
    struct json_value ended = json_member(server_at(daemon, daemon->ports[port]), "ended");

    return json_integer(json_member(ended, cause), 0);
}

START_TEST(clients_are_counted_exactly)
{
    struct daemon *daemon = daemon_start_new(2, TWO);
    int clients[3];

    for (int i = 0; i < 3; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_echo(clients[i], "hello");
    }
    client_expect_gone(client_open(daemon->ports[1]));
    ck_assert_int_eq(number_of(daemon, 0, "accepts"), 3);
    ck_assert_int_eq(number_of(daemon, 0, "active"), 3);
    ck_assert_int_eq(number_of(daemon, 0, "received"), 15);
    WAIT_FOR(number_of(daemon, 0, "sent") == 15); /* counted behind the call that sends */
    WAIT_FOR(ended_of(daemon, 1, "denied") == 1);
    ck_assert_int_eq(number_of(daemon, 1, "active"), 0);
    close(clients[0]);
    WAIT_FOR(number_of(daemon, 0, "active") == 2);
    client_reset(clients[1]);
    WAIT_FOR(ended_of(daemon, 0, "client_reset") == 1);
    close(clients[2]);
    WAIT_FOR(number_of(daemon, 0, "active") == 0);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "status", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "\n  ended: 1 denied\n"));
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_reload_and_a_killed_worker_lose_nothing)
{
    struct daemon *daemon = daemon_start_new(2, TWO);
    int clients[4];
    pid_t workers[2];
    int64_t died;

    daemon_expects(daemon, "exited on signal 9");
    for (int i = 0; i < 4; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_echo(clients[i], "hello");
    }
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    ck_assert_int_eq(kill(workers[0], SIGKILL), 0);
    WAIT_FOR(number_of(daemon, 0, "active") + ended_of(daemon, 0, "worker_died") == 4);
    WAIT_FOR(proc_children(daemon->pid, workers, 2) == 2);
    died = ended_of(daemon, 0, "worker_died");
    daemon_configure(daemon, ONE);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
    ck_assert_int_eq(number_of(daemon, 0, "accepts"), 4);
    ck_assert_int_eq(number_of(daemon, 0, "active"), 4 - died);
    ck_assert_int_eq(number_of(daemon, 0, "received"), 20);
    ck_assert_int_eq(number_of(daemon, 1, "accepts"), -1); /* dropped, and without clients */
    for (int i = 0; i < 4; i++)
        close(clients[i]);
    WAIT_FOR(number_of(daemon, 0, "active") == 0);
    ck_assert_int_eq(ended_of(daemon, 0, "worker_died"), died);
    daemon_finish(daemon);
}
END_TEST

/* Returns a number of a server's tries; -1: the server is not there. */
static int64_t tries_of(const struct daemon *daemon, unsigned port, const char *name)
{
    struct json_value servers = json_member(control_ask(daemon, "status"), "upstream_servers"),
                      server = { NULL, 0 };
    char address[32];

    snprintf(address, sizeof(address), "127.0.0.1:%d", daemon->ports[port]);
    while ((server = json_next(servers, server)).text != NULL)
        if (strcmp(control_text(server, "server"), address) == 0)
            break;
    return json_integer(json_member(server, name), -1);
}

#define PROXY(servers)                                                                             \
    "worker_processes 1; events { } stream { upstream g { " servers " }"                           \
    " server { listen 127.0.0.1:$0; proxy_pass g; } server { listen 127.0.0.1:$1; echo; } }"

START_TEST(tries_are_counted_over_a_reload)
{
    struct daemon *daemon =
        daemon_start_new(3, PROXY("server 127.0.0.1:$1; server 127.0.0.1:$2 backup;"));
    int client = client_open(daemon->ports[0]);

    client_echo(client, "hello");
    ck_assert_int_eq(tries_of(daemon, 1, "tries"), 1);
    ck_assert_int_eq(tries_of(daemon, 1, "active"), 1);
    ck_assert_int_eq(tries_of(daemon, 1, "sent"), 5);
    ck_assert_int_eq(tries_of(daemon, 2, "tries"), 0);
    daemon_configure(daemon, PROXY("server 127.0.0.1:$1;"));
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
    client_echo(client, "again");
    ck_assert_int_eq(tries_of(daemon, 1, "active"), 1);
    ck_assert_int_eq(tries_of(daemon, 1, "received"), 10);
    ck_assert_int_eq(tries_of(daemon, 2, "tries"), -1);
    close(client);
    WAIT_FOR(tries_of(daemon, 1, "active") == 0);
    ck_assert_int_eq(tries_of(daemon, 1, "tries"), 1);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, clients_are_counted_exactly);
    tcase_add_test(tcase, a_reload_and_a_killed_worker_lose_nothing);
    tcase_add_test(tcase, tries_are_counted_over_a_reload);
}

TEST_MAIN("statistics", add_tests)
