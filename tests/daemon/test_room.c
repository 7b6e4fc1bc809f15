/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker that runs out of descriptors accepts no client without a descriptor for a server:
 * clients wait in the queue, and all are served in the end. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/resources.h"
#include "support/wait.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 40

/* Descriptors that leave an even, or an odd, number for clients; and ways of accepting. */
static const struct {
    unsigned descriptors;
    const char *events;
} shortages[] = { { 40, "" }, { 41, "" }, { 40, "use poll;" }, { 41, "use poll;" } };

static struct daemon *start_server(void)
{
    return daemon_start_new(1, "%s", "events { } stream { server { listen 127.0.0.1:$0; echo; } }");
}

/* Ends a client with a received answer; then *client is -1. */
static bool take_answer(int *client)
{
    char answer;
    ssize_t n = recv(*client, &answer, 1, MSG_DONTWAIT);

    ck_assert_msg(n != 0, "a client was closed");
    if (n != 1)
        return false;
    client_reset(*client);
    *client = -1;
    return true;
}

START_TEST(all_clients_are_served)
{
    struct daemon *server = start_server(), *proxy = daemon_create(1);
    int clients[CLIENTS];
    unsigned served = 0;

    daemon_configure(proxy,
        "worker_rlimit_nofile %u; events { accept_mutex_delay 20ms; %s } "
        "stream { server { listen 127.0.0.1:$0; proxy_pass 127.0.0.1:%u; } }",
        shortages[_i].descriptors, shortages[_i].events, (unsigned)server->ports[0]);
    daemon_expects(proxy, "Too many open files");
    daemon_expects(proxy, "exceed open file resource limit");
    daemon_start(proxy);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_open(proxy->ports[0]);
        client_send(clients[i], "x");
    }
    for (int64_t until = deadline_ms(); served < CLIENTS; pause_briefly()) {
        for (int i = 0; i < CLIENTS; i++)
            served += clients[i] != -1 && take_answer(&clients[i]);
        ck_assert_msg(now_ms() < until, "%u of %d clients were served", served, CLIENTS);
    }
    ck_assert_uint_eq(daemon_count_log(proxy, "no connection is left for the server"), 0);
    ck_assert_uint_eq(daemon_count_log(proxy, "connect() failed"), 0);
    daemon_stop(proxy, SIGTERM);
    daemon_stop(server, SIGTERM);
    daemon_finish(proxy);
    daemon_finish(server);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, all_clients_are_served, 0, 4);
}

TEST_MAIN("room", add_tests)
