/* SPDX-License-Identifier: BSD-2-Clause */
/* The workers carry the load alike, in each way of accepting, and no client waits for a stopped,
 * full or lying worker. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"
#include "event/mechanism.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 4
#define CLIENTS_MAX 400
#define BURST 64
#define TRIES 10
/* Longer than the tests' deadlines: a client that waits for the delay to pass is never served. */
#define LONG_DELAY "accept_mutex_delay 10m;"

struct way {
    const char *events, *parameter;
};

static const struct way ways[] = {
    { "", "" },
    { "multi_accept on;", "" },
    { "accept_mutex off;", "" },
    { "accept_mutex off; multi_accept on;", "" },
    { "accept_mutex off;", "reuseport" },
    { "multi_accept on;", "reuseport" },
    { "use poll;", "" },
    { "use poll; accept_mutex off;", "" },
    { "use select; multi_accept on;", "" },
    { "use select; accept_mutex off;", "" },
};

#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))
/* The mutex, none, and reuseport: the first case of each without multi_accept. */
#define BASIC 3
#define BASIC_WAY (ways[2 * _i])

static struct daemon *start(struct way way, const char *more)
{
    return daemon_start_new(1,
        "worker_processes 4; events { worker_connections 512; " LONG_DELAY " %s %s }"
        "stream { server { listen 127.0.0.1:$0 %s; echo; } }",
        way.events, more, way.parameter);
}

/* Connections of the fullest worker, in relation to all. */
struct spread {
    int64_t most, all;
};

static struct spread find_spread(struct daemon *daemon)
{
    struct json_value status = control_ask(daemon, "status"), generation;
    struct spread spread = { 0, 0 };
    unsigned last = control_count(status, "generations") - 1;

    generation = control_at(status, "generations", last);
    ck_assert_uint_eq(control_count(generation, "workers"), WORKERS);
    for (unsigned i = 0; i < WORKERS; i++) {
        int64_t n = control_number(control_at(generation, "workers", i), "connections");

        spread.most = n > spread.most ? n : spread.most;
        spread.all += n;
    }
    return spread;
}

static bool are_open(struct daemon *daemon, int64_t n)
{
    return find_spread(daemon).all == n;
}

/* No worker has more than 1.1 times the mean, but for one client. */
static bool is_even(struct spread spread)
{
    return 10 * WORKERS * (spread.most - 1) <= 11 * spread.all;
}

static void check_shares(struct daemon *daemon, int64_t n)
{
    struct spread spread;

    WAIT_FOR(are_open(daemon, n));
    spread = find_spread(daemon);
    ck_assert_msg(is_even(spread), "one worker has %jd of %jd clients", (intmax_t)spread.most,
        (intmax_t)spread.all);
}

static bool all_accept(struct daemon *daemon)
{
    struct json_value status = control_ask(daemon, "status"), generation;
    unsigned n = 0;

    generation = control_at(status, "generations", control_count(status, "generations") - 1);
    for (unsigned i = 0; i < WORKERS; i++)
        n += strcmp(control_text(control_at(generation, "workers", i), "state"), "accepting") == 0;
    return n == WORKERS;
}

static int64_t count_passes(struct daemon *daemon)
{
    return control_number(json_member(control_ask(daemon, "status"), "totals"), "passes");
}

static void open_clients(struct daemon *daemon, int *clients, int n)
{
    for (int i = 0; i < n; i++) {
        clients[i] = client_open(daemon->ports[0]);
        if (i % 8 == 7)
            client_echo(clients[i], "served");
    }
    for (int i = 0; i < n; i++)
        client_echo(clients[i], "served");
}

/* Like are_open(), of any number of workers. */
static bool are_connected(struct daemon *daemon, int64_t n)
{
    return control_number(json_member(control_ask(daemon, "status"), "totals"), "active") == n;
}

static void close_clients(const int *clients, int n)
{
    for (int i = 0; i < n; i++)
        close(clients[i]);
}

static void open_burst(const struct daemon *daemon, int *clients)
{
    proc_freeze(daemon->pid); /* the master is not involved */
    for (int i = 0; i < BURST; i++)
        clients[i] = client_open(daemon->ports[0]);
    for (int i = 0; i < BURST; i++)
        client_echo(clients[i], "served");
    ck_assert_int_eq(kill(daemon->pid, SIGCONT), 0);
}

/* Clients that come at once stay on all workers alike; again where a worker got no processor. */
START_TEST(a_burst_is_spread)
{
    struct daemon *daemon = start(BASIC_WAY, "");
    int clients[BURST];

    open_burst(daemon, clients);
    for (int tries = 1; tries < TRIES && !is_even(find_spread(daemon)); tries++) {
        close_clients(clients, BURST);
        WAIT_FOR(are_open(daemon, 0));
        open_burst(daemon, clients);
    }
    check_shares(daemon, BURST);
    close_clients(clients, BURST);
    daemon_finish(daemon);
}
END_TEST

/* Opens clients besides the open ones, again if a worker got no processor meanwhile: busy machines
 * leave workers out. */
static void open_evenly(struct daemon *daemon, int *clients, int n)
{
    int64_t before = find_spread(daemon).all;

    for (int tries = 1; tries < TRIES; tries++) {
        open_clients(daemon, clients, n);
        if (is_even(find_spread(daemon)))
            return;
        close_clients(clients, n);
        WAIT_FOR(are_open(daemon, before));
    }
    open_clients(daemon, clients, n);
    check_shares(daemon, before + n);
}

START_TEST(each_worker_has_its_share)
{
    struct daemon *daemon = start(ways[_i], "");
    int clients[CLIENTS_MAX];

    open_evenly(daemon, clients, CLIENTS_MAX);
    if (ways[_i].parameter[0] == '\0') /* otherwise the kernel spreads them by chance */
        ck_assert_int_gt(count_passes(daemon), 0);
    close_clients(clients, CLIENTS_MAX);
    daemon_finish(daemon);
}
END_TEST

/* A replacement worker has fewer clients than the rest, and catches up. */
START_TEST(a_new_worker_catches_up)
{
    struct daemon *daemon = start(BASIC_WAY, "");
    int clients[CLIENTS_MAX];
    pid_t killed;

    daemon_expects(daemon, "exited on signal 9");
    open_clients(daemon, clients, 80);
    killed = proc_server_of(daemon->pid, clients[0]);
    ck_assert_int_eq(kill(killed, SIGKILL), 0);
    daemon_wait_log(daemon, "exited on signal 9");
    WAIT_FOR(all_accept(daemon));
    open_evenly(daemon, clients + 80, 120);
    close_clients(clients, 200);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_reload_spreads_again)
{
    struct daemon *daemon = start(BASIC_WAY, "");
    int clients[120];

    open_clients(daemon, clients, 40);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "gracefully shutting down");
    WAIT_FOR(json_member(control_ask(daemon, "status"), "reload").text[0] != 'n');
    open_evenly(daemon, clients + 40, 80);
    close_clients(clients, 120);
    daemon_finish(daemon);
}
END_TEST

static int count_quiet(const int *clients, int n)
{
    int quiet = 0;

    for (int i = 0; i < n; i++)
        quiet += client_is_quiet(clients[i]);
    return quiet;
}

/* Hardly any client waits for a stopped worker: the kernel may wake the worker for the first
 * client, and its accepted clients are its own. */
START_TEST(a_stopped_worker_gets_no_clients)
{
    struct daemon *daemon = start(BASIC_WAY, "");
    int clients[CLIENTS_MAX];
    pid_t stopped;

    open_clients(daemon, clients, 40);
    stopped = proc_server_of(daemon->pid, clients[39]); /* the mutex's holder, perhaps */
    proc_freeze(stopped);
    for (int i = 40; i < 200; i++) { /* clients come every few milliseconds */
        clients[i] = client_open(daemon->ports[0]);
        client_send(clients[i], "x");
        pause_briefly();
    }
    WAIT_FOR(count_quiet(clients + 80, 120) <= 1); /* the first ones may wait */
    ck_assert_int_eq(kill(stopped, SIGCONT), 0);
    for (int i = 40; i < 200; i++)
        client_expect(clients[i], "x");
    close_clients(clients, 200);
    daemon_finish(daemon);
}
END_TEST

/* A full worker wakes a neighbour, though any may accept at will. */
START_TEST(nobody_waits_while_there_is_room)
{
    struct daemon *daemon;
    int clients[WORKERS * 8];

    daemon = daemon_start_new(1,
        "worker_processes 4; events { worker_connections 8; " LONG_DELAY " %s accept_share %s; }"
        "stream { server { listen 127.0.0.1:$0 %s; echo; } }",
        ways[_i].events, _i % 2 == 0 && ways[_i].parameter[0] == '\0' ? "off" : "on",
        ways[_i].parameter);
    daemon_expects(daemon, "8 worker_connections are not enough");
    for (int i = 0; i < WORKERS * 8; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_echo(clients[i], "found a place");
    }
    close_clients(clients, WORKERS * 8);
    daemon_finish(daemon);
}
END_TEST

/* Closes the clients of the first client's worker, and moves the rest to the front; returns the
 * number left. */
static int empty_one(struct daemon *daemon, int *clients, int n)
{
    pid_t emptied = proc_server_of(daemon->pid, clients[0]);
    int left = 0;

    for (int i = 0; i < n; i++)
        if (proc_server_of(daemon->pid, clients[i]) == emptied)
            close(clients[i]);
        else
            clients[left++] = clients[i];
    return left;
}

/* A full worker is woken alone for a client in its own queue, and looks there again, also while it
 * has the accept mutex. */
START_TEST(a_full_worker_strands_nobody)
{
    struct daemon *daemon = daemon_start_new(1,
        "worker_processes 2; events { worker_connections 8; " LONG_DELAY " %s }"
        "stream { server { listen 127.0.0.1:$0 reuseport; echo; } }",
        _i == 0 ? "" : "accept_mutex off;");
    int clients[16], n = 0;

    daemon_expects(daemon, "8 worker_connections are not enough");
    for (int round = 0; round < 8; round++) {
        for (; n < 16; n++) {
            clients[n] = client_open(daemon->ports[0]);
            client_echo(clients[n], "found a place");
        }
        n = empty_one(daemon, clients, n);
        WAIT_FOR(are_connected(daemon, n));
    }
    close_clients(clients, n);
    daemon_finish(daemon);
}
END_TEST

START_TEST(off_by_a_directive)
{
    struct daemon *daemon = start(BASIC_WAY, "accept_share off;");
    int clients[40];

    open_clients(daemon, clients, 40);
    ck_assert_int_eq(count_passes(daemon), 0);
    close_clients(clients, 40);
    daemon_finish(daemon);
}
END_TEST

/* A worker claims no clients, or more than possible, regardless of the truth, and rings the other
 * workers without pause: all clients are served. */
START_TEST(a_liar_harms_nobody)
{
    static const char *const lies[] = { "N", "M" };
    struct daemon *daemon = daemon_start_new(1,
        "load_module " MODULES_PATH "/spoiler.so; worker_processes 4; events { " LONG_DELAY " %s }"
        "stream { server { listen 127.0.0.1:$0 %s; spoiler; } }",
        ways[_i / 2 * 2].events, ways[_i / 2 * 2].parameter);
    int liar = client_open(daemon->ports[0]);

    client_echo(liar, lies[_i % 2]);
    for (int i = 0; i < 200; i++) {
        int client = client_open(daemon->ports[0]);

        client_echo(client, "123"); /* no command */
        close(client);
    }
    client_echo(liar, "s");
    close(liar);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    /* a stopped worker's queue holds no client where the kernel would wake all waiting workers */
    int stopped = mechanisms_used()->exclusive ? BASIC : BASIC - 1;

    resources_fixture(tcase);
    tcase_add_loop_test(tcase, each_worker_has_its_share, 0, WAYS);
    tcase_add_loop_test(tcase, a_burst_is_spread, 0, BASIC);
    tcase_add_loop_test(tcase, a_new_worker_catches_up, 0, BASIC);
    tcase_add_loop_test(tcase, a_reload_spreads_again, 0, BASIC);
    tcase_add_loop_test(tcase, a_stopped_worker_gets_no_clients, 0, stopped);
    tcase_add_loop_test(tcase, nobody_waits_while_there_is_room, 0, WAYS);
    tcase_add_loop_test(tcase, a_full_worker_strands_nobody, 0, 2);
    tcase_add_loop_test(tcase, off_by_a_directive, 0, BASIC);
    tcase_add_loop_test(tcase, a_liar_harms_nobody, 0, 2 * BASIC);
}

TEST_MAIN("accept_share", add_tests)
