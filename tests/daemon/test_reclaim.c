/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle clients give way where a worker runs out of connections or descriptors: the longest idle
 * first, and no client that its protocol is busy with. */
#include "base/compiler.h"
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODULES                                                                                    \
    "load_module " EXAMPLES_PATH "/resp/.libs/resp.so;"                                            \
    "load_module " EXAMPLES_PATH "/relay/.libs/relay.so;"

#define CLIENTS 60

/* Configurations without room for CLIENTS. */
static const struct {
    const char *main, *events;
} shortages[] = {
    { "worker_rlimit_nofile 32;", "" },
    { "worker_rlimit_nofile 32;", "multi_accept on; use poll;" },
    { "master_process off; worker_rlimit_nofile 32;", "" },
    { "", "worker_connections 20;" },
    { "", "worker_connections 20; multi_accept on;" },
    { "", "worker_connections 20; use select;" },
    { "master_process off;", "worker_connections 20;" },
    { "worker_processes 2;", "worker_connections 10;" },
    { "worker_processes 2;", "worker_connections 10; accept_mutex off;" },
};

static void ping(int client)
{
    client_send(client, "PING\r\n");
    client_expect(client, "+PONG\r\n");
}

static int64_t count_reclaimed(const struct daemon *daemon)
{
    return control_number(json_member(control_ask(daemon, "status"), "totals"), "reclaimed");
}

static struct daemon *start_daemon(const char *main, const char *events)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        MODULES "%s events { accept_mutex_delay 20ms; %s }"
                "stream { server { listen 127.0.0.1:$0; resp; } }",
        main, events);
    return daemon;
}

START_TEST(the_longest_idle_gives_way)
{
    struct daemon *daemon = start_daemon(shortages[_i].main, shortages[_i].events);
    int busy, used, clients[CLIENTS];

    daemon_expects(daemon, "idle connections are closed");
    daemon_start(daemon);
    busy = client_open(daemon->ports[0]);
    client_send(busy, "*1\r\n$4\r\nPI");
    used = client_open(daemon->ports[0]);
    ping(used);
    for (int i = 0; i < CLIENTS; i++) { /* served one after another */
        clients[i] = client_open(daemon->ports[0]);
        ping(clients[i]);
        ping(used);
    }
    if (strstr(shortages[_i].main, "worker_processes") == NULL) /* no room in that worker */
        client_expect_gone(clients[0]);
    ck_assert(client_is_quiet(clients[CLIENTS - 1]));
    ping(clients[CLIENTS - 1]);
    client_send(busy, "NG\r\n");
    client_expect(busy, "+PONG\r\n");
    if (strstr(shortages[_i].main, "master_process off") == NULL)
        ck_assert_int_ge(count_reclaimed(daemon), CLIENTS - 30);
    ck_assert_uint_eq(daemon_count_log(daemon, "accepting is suspended"), 0);
    ck_assert_uint_ge(daemon_count_log(daemon, "idle connections are closed"), 1);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    close(busy);
    close(used);
    daemon_finish(daemon);
}
END_TEST

/* Many clients waiting at once are served. */
START_TEST(many_come_at_once)
{
    struct daemon *daemon = start_daemon(shortages[_i].main, shortages[_i].events);
    int idle[10], clients[CLIENTS];

    daemon_expects(daemon, "idle connections are closed");
    daemon_start(daemon);
    for (unsigned i = 0; i < countof(idle); i++)
        ping(idle[i] = client_open(daemon->ports[0]));
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_send(clients[i], "PING\r\n");
    }
    for (int i = 0; i < CLIENTS; i++)
        client_expect(clients[i], "+PONG\r\n");
    for (unsigned i = 0; i < countof(idle); i++)
        close(idle[i]);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    daemon_finish(daemon);
}
END_TEST

START_TEST(off_they_stay)
{
    struct daemon *daemon = start_daemon("", "worker_connections 8; reclaim_idle off; use epoll;");
    int clients[9];

    daemon_expects(daemon, "accepting is suspended");
    daemon_start(daemon);
    for (unsigned i = 0; i < 8; i++)
        ping(clients[i] = client_open(daemon->ports[0]));
    clients[8] = client_open(daemon->ports[0]);
    client_send(clients[8], "PING\r\n");
    daemon_wait_log(daemon, "accepting is suspended");
    for (unsigned i = 0; i < 8; i++)
        ping(clients[i]);
    ck_assert_int_eq(count_reclaimed(daemon), 0);
    close(clients[0]);
    client_expect(clients[8], "+PONG\r\n");
    for (unsigned i = 1; i < 9; i++)
        close(clients[i]);
    daemon_finish(daemon);
}
END_TEST

#define WORKERS 4
#define ROOM 16

static const struct {
    const char *events, *parameter;
} ways[] = {
    { "", "" },
    { "accept_share off;", "" },
    { "multi_accept on;", "" },
    { "accept_mutex off;", "" },
    { "accept_mutex off; accept_share off;", "" },
    { "accept_mutex off;", "reuseport" },
    { "", "reuseport" },
    { "use poll; accept_mutex off; accept_share off;", "" },
};

static bool all_accept(struct daemon *daemon)
{
    struct json_value status = control_ask(daemon, "status"), worker;
    unsigned n = 0;

    for (unsigned i = 0; i < WORKERS; i++) {
        worker = control_at(control_at(status, "generations", 0), "workers", i);
        n += strcmp(control_text(worker, "state"), "accepting") == 0;
    }
    return n == WORKERS;
}

/* Opens clients with room; returns whether hardly any idle connection was closed for room. */
static bool open_clients(struct daemon *daemon, int *clients, int n)
{
    int64_t from = count_reclaimed(daemon);

    for (int i = 0; i < n; i++)
        ping(clients[i] = client_open(daemon->ports[0]));
    return count_reclaimed(daemon) - from <= ROOM / 8;
}

static bool find_room(int way)
{
    struct daemon *daemon = daemon_create(1);
    int clients[WORKERS * ROOM + ROOM];
    bool found;
    int64_t from;

    daemon_expects(daemon, "idle connections are closed");
    daemon_expects(daemon, "exited on signal 9");
    daemon_configure(daemon,
        MODULES "worker_processes 4; events { worker_connections 16; %s }"
                "stream { server { listen 127.0.0.1:$0 %s; resp; } }",
        ways[way].events, ways[way].parameter);
    daemon_start(daemon);
    WAIT_FOR(all_accept(daemon)); /* no room is left at a worker before its begin */
    found = open_clients(daemon, clients, WORKERS * ROOM);
    from = count_reclaimed(daemon);
    ck_assert_int_eq(kill(proc_server_of(daemon->pid, clients[WORKERS * ROOM - 1]), SIGKILL), 0);
    daemon_wait_log(daemon, "exited on signal 9");
    WAIT_FOR(all_accept(daemon));
    ck_assert_int_eq(count_reclaimed(daemon), from);
    found = open_clients(daemon, clients + WORKERS * ROOM, ROOM) && found;
    for (unsigned i = 0; i < countof(clients); i++)
        close(clients[i]);
    daemon_finish(daemon);
    return found;
}

/* A worker has its idle connections closed neither while another has room, nor while no client
 * waits: when a worker is killed, all look whether any does. A loaded machine may let the one that
 * has room sleep for too long: then all is tried again. */
START_TEST(room_elsewhere_comes_first)
{
    int tries = 0;

    while (!find_room(_i))
        ck_assert_msg(++tries < 5, "idle connections are closed while there is room");
}
END_TEST

/* A connection to a server needs room too. */
START_TEST(connects_have_room_made)
{
    struct daemon *daemon = daemon_create(2);
    int idle[16], client;

    daemon_expects(daemon, "idle connections are closed");
    daemon_configure(daemon,
        MODULES "%s events { %s } stream { server { listen 127.0.0.1:$0; resp; }"
                " server { listen 127.0.0.1:$1; relay 127.0.0.1:$0; } }",
        "", "worker_connections 10;");
    daemon_start(daemon);
    for (unsigned i = 0; i < 9; i++)
        ping(idle[i] = client_open(daemon->ports[0]));
    client = client_open(daemon->ports[1]); /* the tenth, which needs another two */
    ping(client);
    client_expect_gone(idle[0]);
    client_expect_gone(idle[1]);
    ping(idle[8]);
    ping(client);
    ck_assert_int_ge(count_reclaimed(daemon), 2);
    close(client);
    for (unsigned i = 0; i < 9; i++)
        close(idle[i]);
    daemon_finish(daemon);
}
END_TEST

#define RELAYED 3

/* Connects and accepts need descriptors, of which idle clients have all but a few. The relay's own
 * client of the other server is idle too, but not for long. */
START_TEST(connects_have_descriptors_freed)
{
    struct daemon *daemon = daemon_create(2);
    int idle[CLIENTS], relayed[RELAYED];

    daemon_expects(daemon, "idle connections are closed");
    daemon_configure(daemon,
        MODULES "%s worker_rlimit_nofile 32; events { accept_mutex_delay 20ms; }"
                "stream { server { listen 127.0.0.1:$0; resp; }"
                " server { listen 127.0.0.1:$1; relay 127.0.0.1:$0; } }",
        _i ? "master_process off;" : "");
    daemon_start(daemon);
    for (unsigned i = 0; i < CLIENTS; i++)
        ping(idle[i] = client_open(daemon->ports[0]));
    for (unsigned i = 0; i < RELAYED; i++) {
        close(idle[i]);
        ping(idle[i] = client_open(daemon->ports[0])); /* takes what may be left */
        ping(relayed[i] = client_open(daemon->ports[1]));
    }
    for (unsigned i = 0; i < RELAYED; i++)
        close(relayed[i]);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(idle[i]);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, the_longest_idle_gives_way, 0, countof(shortages));
    tcase_add_loop_test(tcase, many_come_at_once, 0, countof(shortages));
    tcase_add_test(tcase, off_they_stay);
    tcase_add_loop_test(tcase, room_elsewhere_comes_first, 0, countof(ways));
    tcase_add_test(tcase, connects_have_room_made);
    tcase_add_loop_test(tcase, connects_have_descriptors_freed, 0, 2);
}

TEST_MAIN("reclaim", add_tests)
