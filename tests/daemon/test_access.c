/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of access: the clients served, the server whose rules count, and the log of denials. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FORBIDDEN "access forbidden by rule while initializing session, client: "

static struct daemon *start_daemon(unsigned port_n, const char *servers)
{
    struct daemon *daemon = daemon_create(port_n);

    daemon_expects(daemon, FORBIDDEN);
    daemon_configure(daemon, "events {} stream { %s }", servers);
    daemon_start(daemon);
    return daemon;
}

/* Whether a server of `return ok` serves the client. */
static bool is_served(int client)
{
    const char *said = client_read_all(client);

    ck_assert(strcmp(said, "ok") == 0 || strcmp(said, "") == 0);
    return *said != '\0';
}

START_TEST(a_server_has_its_rules_or_those_of_the_stream)
{
    struct daemon *daemon =
        start_daemon(4, "server { listen 127.0.0.1:$0; return ok; }"
                        "server { listen 127.0.0.1:$1; allow 127.0.0.1; return ok; }"
                        "server { listen 127.0.0.1:$2; allow ::1; return ok; }"
                        "server { listen 127.0.0.1:$3; allow 127.0.0.0/8; deny all; return ok; }"
                        "allow 10.0.0.0/8; deny all;");
    char line[128];

    for (unsigned i = 0; i < 4; i++)
        ck_assert_msg(is_served(client_open(daemon->ports[i])) == (i > 0), "server %u", i);
    snprintf(line, sizeof(line), FORBIDDEN "127.0.0.1, server: 127.0.0.1:%u", daemon->ports[0]);
    daemon_wait_log(daemon, line);
    ck_assert_uint_eq(daemon_count_log(daemon, "access forbidden"), 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(kinds_of_clients)
{
    struct daemon *daemon = start_daemon(2,
        "server { listen 127.0.0.1:$0; listen [::1]:$0; listen unix:$D/a; allow unix:; deny all;"
        " return ok; }"
        "server { listen [::]:$1 ipv6only=off; listen unix:$D/b; deny 127.0.0.1; deny unix:;"
        " return ok; }");

    daemon_owns(daemon, "a");
    daemon_owns(daemon, "b");
    ck_assert(!is_served(client_open(daemon->ports[0])));
    ck_assert(!is_served(client_open6(daemon->ports[0])));
    ck_assert(is_served(client_open_unix(daemon_path(daemon, "a"))));
    ck_assert(!is_served(client_open(daemon->ports[1]))); /* IPv4-mapped */
    daemon_wait_log(daemon, FORBIDDEN "::ffff:127.0.0.1, server: [::]:");
    ck_assert(is_served(client_open6(daemon->ports[1])));
    ck_assert(!is_served(client_open_unix(daemon_path(daemon, "b"))));
    daemon_wait_log(daemon, FORBIDDEN "unix:, server: unix:");
    daemon_finish(daemon);
}
END_TEST

/* A denied client never reaches the protocol, with any input, and harms no client. */
START_TEST(a_denied_client_is_not_served)
{
    struct daemon *daemon = start_daemon(2, "server { listen 127.0.0.1:$0; deny all; echo; }"
                                            "server { listen 127.0.0.1:$1; stub_status; }");
    unsigned asked = 0;

    for (int i = 0; i < 50; i++) {
        int client = client_open(daemon->ports[0]);

        client_send(client, "hello");
        client_expect_gone(client);
        close(client);
    }
    WAIT_FOR((asked++, client_status(daemon->ports[1]).active == 1));
    ck_assert_uint_eq(client_status(daemon->ports[1]).requests, asked + 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_reload_has_other_rules)
{
    struct daemon *daemon =
        start_daemon(1, "server { listen 127.0.0.1:$0; deny 127.0.0.1; return ok; }");

    ck_assert(!is_served(client_open(daemon->ports[0])));
    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0; return ok; } }");
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    daemon_wait_log(daemon, "gracefully shutting down"); /* the old worker accepts no more */
    ck_assert(is_served(client_open(daemon->ports[0])));
    daemon_finish(daemon);
}
END_TEST

START_TEST(low_bits_are_a_warning)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "events {} stream { server { listen 127.0.0.1:$0; deny 192.168.1.1/24; return ok; } }");
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(
        strstr(daemon->err, "[warn] low address bits of 192.168.1.1/24 are meaningless in "));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_server_has_its_rules_or_those_of_the_stream);
    tcase_add_test(tcase, kinds_of_clients);
    tcase_add_test(tcase, a_denied_client_is_not_served);
    tcase_add_test(tcase, a_reload_has_other_rules);
    tcase_add_test(tcase, low_bits_are_a_warning);
}

TEST_MAIN("daemon_access", add_tests)
