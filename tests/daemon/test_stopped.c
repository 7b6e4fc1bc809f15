/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections stopped by their protocol, on the real kernel under every event mechanism: a reset by
 * the peer ends them, and the end of a half does not. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define EACH 3 /* clients of each server */
#define CLIENTS (2 * EACH)

/* Clients stopped at the opening, and clients stopped after input. */
START_TEST(a_reset_is_noticed)
{
    struct daemon *daemon = daemon_create(2);
    int clients[CLIENTS];

    daemon_configure(daemon,
        "error_log error.log info; load_module " MODULES_PATH "/halts.so; worker_processes 1; "
        "events { use %s; } stream { server { listen 127.0.0.1:$0; halts on; } "
        "server { listen 127.0.0.1:$1; halts off; } }",
        mechanisms_name(_i));
    daemon_start(daemon);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_open(daemon->ports[i / EACH]);
        if (i / EACH == 1)
            client_send(clients[i], "first");
        client_expect(clients[i], "stopped\n");
    }
    for (int i = 0; i < CLIENTS; i += EACH) {
        client_send(clients[i + 1], "input that nobody reads");
        ck_assert_int_eq(shutdown(clients[i + 2], SHUT_WR), 0);
        client_reset(clients[i]);
        client_reset(clients[i + 1]);
    }
    WAIT_FOR(daemon_count_log(daemon, "reason: the client broke the connection") == 4);
    ck_assert_uint_eq(
        daemon_count_log(daemon, "the connection is broken, while it is not read"), 4);
    ck_assert_uint_eq(daemon_count_log(daemon, "client disconnected"), 4);
    close(clients[2]);
    close(clients[EACH + 2]);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_reset_is_noticed, 0, mechanisms_count());
}

TEST_MAIN("stopped", add_tests)
