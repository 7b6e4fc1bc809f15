/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard upstream`: output, refusals, and the effect of a server's state on new and on running
 * sessions, which the command may end; how long the state lasts. The servers are the daemon's own:
 * they report the serving server, or echo. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/load_clients.h"
#include "daemon/name_server.h"
#include "daemon/upgrade.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 3
#define NO_LIVE "no live upstreams while connecting to upstream"

/* $0 is the port of clients, $1 the port of servers: servers reply their number. */
#define GROUP(zone, parameters, more)                                                              \
    "worker_processes 3; events { } stream { "                                                     \
    "upstream u { " zone " server 127.0.0.1:$1; server 127.0.0.2:$1; "                             \
    "server 127.0.0.3:$1 " parameters "; } server { listen 127.0.0.1:$0; proxy_pass u; " more " }" \
    "server { listen 127.0.0.1:$1; return 1; } server { listen 127.0.0.2:$1; return 2; }"          \
    "server { listen 127.0.0.3:$1; return 3; } }"

/* Runs `forkbeard upstream u STATE SERVER`; the server is "$1"'s, at the address `host`. */
static int set_state(struct daemon *daemon, const char *state, const char *host)
{
    char server[64];

    snprintf(server, sizeof(server), "%s:%u", host, daemon->ports[1]);
    return daemon_run(daemon, "-c", "forkbeard.conf", "upstream", "u", state, server, NULL);
}

/* The numbers of the servers with sessions; '-': sessions are refused. */
static const char *serving(const struct daemon *daemon)
{
    static char digits[8];
    unsigned seen[256] = { 0 }, n = 0;

    for (unsigned i = 0; i < 4 * WORKERS; i++)
        seen[(unsigned char)*client_read_all(client_open(daemon->ports[0]))] = 1;
    if (seen[0] != 0)
        digits[n++] = '-';
    for (char digit = '1'; digit <= '3'; digit++)
        if (seen[(unsigned char)digit] != 0)
            digits[n++] = digit;
    digits[n] = '\0';
    return digits;
}

#define EXPECT(daemon, digits) WAIT_FOR(strcmp(serving(daemon), digits) == 0)

/* A number of a server in the reply of the control socket. */
static int64_t number_of(const struct daemon *daemon, unsigned server, const char *name)
{
    struct json_value reply = control_ask(daemon, "upstream");

    ck_assert(control_is_ok(reply));
    return control_number(control_at(control_at(reply, "upstreams", 0), "servers", server), name);
}

START_TEST(states_are_heeded_by_all_workers)
{
    struct daemon *daemon = daemon_start_new(2, GROUP("zone u 64k;", "down", ""));

    daemon_expects(daemon, NO_LIVE);
    EXPECT(daemon, "12");
    ck_assert_int_eq(set_state(daemon, "drain", "127.0.0.1"), 0);
    ck_assert_str_eq(serving(daemon), "2");
    ck_assert_int_eq(set_state(daemon, "up", "127.0.0.3"), 0);
    ck_assert_str_eq(serving(daemon), "23");
    ck_assert_int_eq(set_state(daemon, "down", "127.0.0.2"), 0);
    ck_assert_int_eq(set_state(daemon, "auto", "127.0.0.3"), 0);
    ck_assert_str_eq(serving(daemon), "-");
    ck_assert_int_eq(set_state(daemon, "auto", "127.0.0.1"), 0);
    ck_assert_int_eq(set_state(daemon, "auto", "127.0.0.2"), 0);
    ck_assert_str_eq(serving(daemon), "12");
    ck_assert_uint_eq(daemon_count_log(daemon, "by the control socket"), 6);
    daemon_finish(daemon);
}
END_TEST

/* The servers are checked at a closed port. */
START_TEST(up_overrules_health_checks)
{
    struct daemon *daemon =
        daemon_start_new(3, GROUP("zone u 64k;", "", "health_check interval=100ms port=$2;"));

    daemon_expects(daemon, NO_LIVE);
    EXPECT(daemon, "-");
    ck_assert_int_eq(set_state(daemon, "up", "127.0.0.2"), 0);
    ck_assert_str_eq(serving(daemon), "2");
    ck_assert_ptr_nonnull(strstr(daemon->out, " up         up "));
    ck_assert_ptr_nonnull(strstr(daemon->out, " unhealthy  auto "));
    ck_assert_int_eq(set_state(daemon, "auto", "127.0.0.2"), 0);
    EXPECT(daemon, "-");
    daemon_finish(daemon);
}
END_TEST

START_TEST(states_last)
{
    struct daemon *daemon = daemon_start_new(2, GROUP("zone u 64k;", "", ""));
    pid_t workers[WORKERS + 1], new;

    daemon_expects(daemon, "exited on signal 9");
    ck_assert_int_eq(set_state(daemon, "drain", "127.0.0.2"), 0);
    ck_assert_str_eq(serving(daemon), "13");
    ck_assert_uint_eq(proc_children(daemon->pid, workers, WORKERS + 1), WORKERS);
    for (unsigned i = 0; i < WORKERS; i++)
        ck_assert_int_eq(kill(workers[i], SIGKILL), 0);
    WAIT_FOR(daemon_count_log(daemon, "exited on signal 9") == WORKERS);
    ck_assert_str_eq(serving(daemon), "13");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
    ck_assert_str_eq(serving(daemon), "13");
    new = upgrade_start(daemon);
    ck_assert_str_eq(serving(daemon), "13");
    ck_assert_int_eq(set_state(daemon, "down", "127.0.0.3"), 0); /* by the new binary */
    upgrade_complete(daemon, new);
    ck_assert_str_eq(serving(daemon), "1");
    new = upgrade_start(daemon);
    ck_assert_int_eq(set_state(daemon, "auto", "127.0.0.2"), 0);
    upgrade_roll_back(daemon, new);
    ck_assert_str_eq(serving(daemon), "12");
    daemon_finish(daemon);
}
END_TEST

/* Opens a client of the second server. */
static int open_at_second(struct daemon *daemon)
{
    int client;

    ck_assert_int_eq(set_state(daemon, "drain", "127.0.0.1"), 0);
    ck_assert_int_eq(set_state(daemon, "drain", "127.0.0.3"), 0);
    client = client_open(daemon->ports[0]);
    client_echo(client, "stays");
    ck_assert_int_eq(number_of(daemon, 1, "connections"), 1);
    ck_assert_int_eq(set_state(daemon, "auto", "127.0.0.1"), 0);
    ck_assert_int_eq(set_state(daemon, "auto", "127.0.0.3"), 0);
    return client;
}

static unsigned served_by_second(struct daemon *daemon)
{
    const char *text = daemon_text(daemon, "served.log");
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, "127.0.0.2\n")) != NULL; at++)
        n++;
    return n;
}

START_TEST(a_drained_server_loses_no_session)
{
    struct daemon *daemon = daemon_start_new(2,
        "worker_processes 3; events { worker_connections 1024; } stream { "
        "log_format served \"$server_addr\";"
        "upstream u { %s zone u 64k; server 127.0.0.1:$1; server 127.0.0.2:$1; "
        "server 127.0.0.3:$1; }"
        "server { listen 127.0.0.1:$0; proxy_pass u; }"
        "server { listen 127.0.0.1:$1; listen 127.0.0.2:$1; listen 127.0.0.3:$1;"
        "access_log $D/served.log served; echo; } }",
        _i == 0   ? ""
        : _i == 1 ? "least_conn;"
                  : "hash $remote_port consistent;");
    struct load_clients load;
    int64_t sessions;
    int client;

    daemon_owns(daemon, "served.log");
    client = open_at_second(daemon);
    load_clients_start(&load, daemon->ports[0]);
    WAIT_FOR(number_of(daemon, 1, "sessions") > 50);
    ck_assert_int_eq(set_state(daemon, "drain", "127.0.0.2"), 0);
    WAIT_FOR(number_of(daemon, 1, "connections") == 1);
    load_clients_wait(&load, 100);
    sessions = number_of(daemon, 1, "sessions");
    load_clients_wait(&load, 500);
    client_echo(client, "is here still");
    ck_assert_int_eq(number_of(daemon, 1, "sessions"), sessions);
    ck_assert_int_eq(number_of(daemon, 1, "connections"), 1);
    WAIT_FOR(served_by_second(daemon) == sessions);
    ck_assert_int_eq(set_state(daemon, "auto", "127.0.0.2"), 0);
    WAIT_FOR(number_of(daemon, 1, "sessions") > sessions + 20);
    load_clients_stop_unharmed(&load);
    client_echo(client, "and now");
    close(client);
    WAIT_FOR(number_of(daemon, 1, "connections") == 0);
    daemon_finish(daemon);
}
END_TEST

#define LEAVING 24

/* Whether all dropped sessions are logged, by two workers. */
static bool are_dropped(struct daemon *daemon)
{
    const char *at = daemon_text(daemon, "ends.log");
    unsigned long first = 0, pid;
    unsigned n = 0, others = 0;
    char how[32];

    for (; sscanf(at, "%lu %31s", &pid, how) == 2; at = strchr(at, '\n') + 1) {
        ck_assert_str_eq(how, "dropped");
        first = first != 0 ? first : pid;
        others += pid != first;
        n++;
    }
    ck_assert_uint_le(n, LEAVING);
    return n == LEAVING && others > 0;
}

/* The workers of before a reload hear of the command, too. */
START_TEST(a_server_that_is_down_loses_its_sessions)
{
    struct daemon *daemon = daemon_start_new(2,
        "worker_processes 2; events { } stream { log_format ends \"$pid $session_end\";"
        "upstream u { zone u 64k; server 127.0.0.1:$1; server 127.0.0.2:$1 backup; }"
        "server { listen 127.0.0.1:$0; proxy_pass u; proxy_session_drop on;"
        "access_log $D/ends.log ends; }"
        "server { listen 127.0.0.1:$1; listen 127.0.0.2:$1; echo; } }");
    int leaving[LEAVING], stays;

    daemon_owns(daemon, "ends.log");
    for (unsigned i = 0; i < LEAVING; i++) {
        leaving[i] = client_open(daemon->ports[0]);
        client_echo(leaving[i], "served");
    }
    if (_i == 1)
        ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 0);
    ck_assert_int_eq(number_of(daemon, 0, "connections"), LEAVING);
    ck_assert_int_eq(set_state(daemon, "down", "127.0.0.1"), 0);
    stays = client_open(daemon->ports[0]);
    client_echo(stays, "served by the other");
    for (unsigned i = 0; i < LEAVING; i++) {
        client_expect_gone(leaving[i]);
        close(leaving[i]);
    }
    WAIT_FOR(number_of(daemon, 0, "connections") == 0);
    client_echo(stays, "stays");
    WAIT_FOR(are_dropped(daemon));
    close(stays);
    daemon_finish(daemon);
}
END_TEST

static void add_address(struct name_reply *reply, uint8_t last)
{
    name_reply_add(reply, NAME_ASKED, NAME_A, 60, ((const uint8_t[]) { 127, 0, 0, last }), 4);
}

START_TEST(a_name_and_its_addresses)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = daemon_start_new(2,
        "events { } stream { resolver 127.0.0.1:%u ipv6=off;"
        "upstream u { zone u 64k; server a.test:$1 resolve; }"
        "server { listen 127.0.0.1:$0; proxy_pass u; }"
        "server { listen 127.0.0.1:$1; return 1; } server { listen 127.0.0.2:$1; return 2; } }",
        server.port);
    struct name_reply reply;

    daemon_expects(daemon, NO_LIVE);
    name_server_take(&server, &reply);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "upstream", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "unresolved "));
    add_address(&reply, 1);
    add_address(&reply, 2);
    name_server_send(&server, &reply, 0);
    EXPECT(daemon, "12");
    ck_assert_int_eq(set_state(daemon, "drain", "127.0.0.2"), 0);
    ck_assert_str_eq(serving(daemon), "1");
    ck_assert_int_eq(set_state(daemon, "down", "a.test"), 0);
    ck_assert_str_eq(serving(daemon), "-");
    ck_assert_int_eq(set_state(daemon, "up", "127.0.0.2"), 0);
    ck_assert_str_eq(serving(daemon), "2");
    ck_assert_int_eq(set_state(daemon, "auto", "127.0.0.2"), 0);
    ck_assert_int_eq(set_state(daemon, "auto", "a.test"), 0);
    ck_assert_str_eq(serving(daemon), "12");
    ck_assert_int_eq(set_state(daemon, "drain", "127.0.0.3"), 1);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

static const struct {
    const char *arguments[4];
    const char *error;
} refused[] = {
    { { "v" }, "unknown upstream \"v\", the configuration in force has \"u\", \"bare\"" },
    { { "v", "drain", "a" }, "unknown upstream \"v\", the configuration in force has \"u\"" },
    { { "u", "drain", "a" }, "upstream \"u\" has no server \"a\", only \"127.0.0.1:1\"" },
    { { "u", "stop", "127.0.0.1:1" }, "unknown state \"stop\", expected up, drain, down or auto" },
    { { "bare", "drain", "127.0.0.1:1" }, "upstream \"bare\" has no zone, " },
    { { "bare", "drain", "a" }, "upstream \"bare\" has no zone, " },
    { { "u", "drain" }, "expected \"upstream u up|drain|down|auto server\"" },
    { { "u", "drain", "a", "b" }, "invalid option: \"b\", see -h" },
};

START_TEST(refusals_say_what_there_is)
{
    const char *const *arguments = refused[_i].arguments;
    struct daemon *daemon = daemon_start_new(1,
        "events { } stream { upstream u { zone u 64k; server 127.0.0.1:1; }"
        "upstream bare { server 127.0.0.1:1; } server { listen 127.0.0.1:$0; proxy_pass u; }"
        " server { listen unix:$D/bare; proxy_pass bare; } }");

    daemon_expects(daemon, "nothing leads to upstream \"bare\"");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "upstream", arguments[0],
                         arguments[1], arguments[2], arguments[3], NULL),
        1);
    ck_assert_str_eq(daemon->out, "");
    ck_assert_msg(strstr(daemon->err, refused[_i].error) != NULL, "%s", daemon->err);
    daemon_finish(daemon);
}
END_TEST

START_TEST(groups_are_shown)
{
    struct daemon *daemon = daemon_start_new(1,
        "events { } stream { upstream u { zone z 64k; least_conn; server 127.0.0.1:1 weight=5; "
        "server unix:/nowhere backup max_conns=7; }"
        "upstream bare { server 127.0.0.1:2; } server { listen 127.0.0.1:$0; proxy_pass u; }"
        " server { listen unix:$D/bare; proxy_pass bare; } }");

    daemon_expects(daemon, "nothing leads to upstream \"bare\"");
    WAIT_FOR(daemon_run(daemon, "-c", "forkbeard.conf", "upstream", NULL) == 0 &&
             strstr(daemon->out, " up ") != NULL);
    ck_assert_str_eq(daemon->out,
        "upstream u, least_conn, zone z\n"
        "  server                         state      set   weight connections  sessions failures\n"
        "  127.0.0.1:1                    up         auto       5           0         0        0\n"
        "  unix:/nowhere                  up         auto       1           0         0        0 "
        "backup\n"
        "\n"
        "upstream bare, round_robin, without a zone: each worker has a state of its own\n"
        "  server                         state      set   weight connections  sessions failures\n"
        "  127.0.0.1:2                    -          -          1           0         0        "
        "0\n");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "upstream", "bare", NULL), 0);
    ck_assert_ptr_null(strstr(daemon->out, "least_conn"));
    ck_assert_int_eq(
        daemon_run(daemon, "-c", "forkbeard.conf", "upstream", "u", "--json", NULL), 0);
    ck_assert_str_eq(daemon->out,
        "{\"ok\":true,\"upstreams\":[{\"name\":\"u\",\"balancer\":\"least_conn\",\"zone\":\"z\","
        "\"servers\":[{\"server\":\"127.0.0.1:1\",\"address\":\"127.0.0.1:1\",\"state\":\"up\","
        "\"set\":\"auto\",\"backup\":false,\"weight\":5,\"max_conns\":0,\"connections\":0,"
        "\"sessions\":0,\"failures\":0,\"resets\":0,\"timeouts\":0,\"refusals\":0,\"slow\":0},"
        "{\"server\":\"unix:/nowhere\","
        "\"address\":\"unix:/nowhere\",\"state\":\"up\",\"set\":\"auto\",\"backup\":true,"
        "\"weight\":1,\"max_conns\":7,\"connections\":0,\"sessions\":0,\"failures\":0,"
        "\"resets\":0,\"timeouts\":0,\"refusals\":0,\"slow\":0}],\"names\":[]}],"
        "\"left_out\":0}\n");
    client_read_all(client_open(daemon->ports[0]));
    WAIT_FOR(daemon_run(daemon, "-c", "forkbeard.conf", "upstream", "u", NULL) == 0 &&
             strstr(daemon->out, "\n    resets: 0, connect time-outs: 0, refusals: 1, slow first "
                                 "bytes: 0\n  unix:/nowhere ") != NULL);
    daemon_stop(daemon, SIGTERM);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "upstream", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "connect() to the control socket"));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, states_are_heeded_by_all_workers);
    tcase_add_test(tcase, up_overrules_health_checks);
    tcase_add_test(tcase, states_last);
    tcase_add_loop_test(tcase, a_drained_server_loses_no_session, 0, 3);
    tcase_add_loop_test(tcase, a_server_that_is_down_loses_its_sessions, 0, 2);
    tcase_add_test(tcase, a_name_and_its_addresses);
    tcase_add_loop_test(tcase, refusals_say_what_there_is, 0, sizeof(refused) / sizeof(refused[0]));
    tcase_add_test(tcase, groups_are_shown);
}

TEST_MAIN("upstream command", add_tests)
