/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers of a daemon in a circle: the circle ends, over all workers, and a chain with a separate
 * end is no circle. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "support/wait.h"

#include <signal.h>
#include <string.h>

static int64_t total(const struct daemon *daemon, const char *name)
{
    return control_number(json_member(control_ask(daemon, "status"), "totals"), name);
}

/* Circles that the configuration does not show. */
static const struct {
    const char *workers, *servers;
} circles[] = {
    { "1", "server { listen 127.0.0.1:$0; proxy_pass $server_addr:$server_port; }" },
    { "4", "server { listen 127.0.0.1:$0; proxy_pass $server_addr:$server_port; }" },
    { "4", "server { listen 127.0.0.1:$0 proxy_protocol; proxy_protocol_timeout 1s; "
           "proxy_protocol on; proxy_pass $server_addr:$server_port; } "
           "server { listen 127.0.0.1:$1; proxy_protocol on; proxy_pass 127.0.0.1:$0; }" },
    { "2", "server { listen 127.0.0.1:$0; proxy_pass 127.0.0.1:$1; } "
           "server { listen $1; set $to 127.0.0.1:$0; proxy_pass $to; }" },
    { "1", "server { listen [::]:$0 ipv6only=off; proxy_pass 127.0.0.1:$server_port; }" },
};

START_TEST(a_circle_ends)
{
    struct daemon *daemon = daemon_create(2);
    bool by_other = strstr(circles[_i].servers, "listen 127.0.0.1:$1") != NULL;
    int client;

    daemon_configure(daemon,
        "worker_processes %s; events { worker_connections 512; } stream { %s }",
        circles[_i].workers, circles[_i].servers);
    daemon_expects(daemon, "a connection of this daemon has come back to ");
    daemon_start(daemon);
    client = client_open(daemon->ports[by_other]);
    client_expect_gone(client);
    daemon_wait_log(daemon, "a connection of this daemon has come back to ");
    WAIT_FOR(total(daemon, "active") == 0);
    ck_assert_int_lt(total(daemon, "accepts"), 50);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Two daemons in a circle cannot know of the circle: all sessions end with the first. */
START_TEST(a_circle_of_daemons_ends_with_its_client)
{
    struct daemon *daemons[] = { daemon_create(1), daemon_create(1) };
    int client;

    for (int i = 0; i < 2; i++) {
        daemon_configure(daemons[i],
            "worker_processes 2; events { worker_connections 256; } "
            "stream { server { listen 127.0.0.1:$0; proxy_pass 127.0.0.1:%u; } }",
            (unsigned)daemons[1 - i]->ports[0]);
        daemon_expects(daemons[i], "worker_connections are not enough");
        daemon_start(daemons[i]);
    }
    client = client_open(daemons[0]->ports[0]);
    WAIT_FOR(total(daemons[0], "active") > 200);
    client_reset(client);
    for (int i = 0; i < 2; i++)
        WAIT_FOR(total(daemons[i], "active") == 0);
    for (int i = 0; i < 2; i++)
        daemon_stop(daemons[i], SIGTERM);
    for (int i = 0; i < 2; i++)
        daemon_finish(daemons[i]);
}
END_TEST

/* Servers of a daemon may lead to further servers of the daemon, as in nginx's idiom for TLS by
 * name. */
START_TEST(a_chain_is_no_circle)
{
    struct daemon *daemon = daemon_start_new(3, "%s",
        "worker_processes 3; events { } stream { "
        "server { listen 127.0.0.1:$0; set $to 127.0.0.1:$1; proxy_pass $to; proxy_protocol on; } "
        "server { listen 127.0.0.1:$1 proxy_protocol; set_real_ip_from 127.0.0.1; "
        "set $to 127.0.0.1:$2; proxy_pass $to; } "
        "server { listen 127.0.0.1:$2; echo; } }");

    for (int i = 0; i < 100; i++) {
        int client = client_open(daemon->ports[0]);

        client_echo(client, "there and back");
        client_reset(client);
    }
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_circle_ends, 0, 5);
    tcase_add_test(tcase, a_circle_of_daemons_ends_with_its_client);
    tcase_add_test(tcase, a_chain_is_no_circle);
}

TEST_MAIN("circles", add_tests)
