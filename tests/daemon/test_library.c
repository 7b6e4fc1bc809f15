/* SPDX-License-Identifier: BSD-2-Clause */
/* A module over a library with sockets and timeouts of its own, c-ares, on the real kernel under
 * each event mechanism. The test is the server of names: by datagrams, by a connection for an
 * answer that did not fit, and by silence. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/name_server.h"
#include "support/test.h"

#include <signal.h>
#include <unistd.h>

static void answer_datagram(const struct name_server *server, uint8_t last)
{
    struct name_reply reply;

    name_server_take(server, &reply);
    if (last == 0)
        reply.bytes[2] |= NAME_TRUNCATED;
    else
        name_reply_add_a(&reply, 60, last);
    name_server_send(server, &reply, 0);
}

static void answer_connection(const struct name_server *server, uint8_t last)
{
    struct name_reply reply;

    name_server_accept(server, &reply);
    name_reply_add_a(&reply, 60, last);
    name_server_send(server, &reply, 0);
}

static struct daemon *start_names(int i, const struct name_server *server, const char *directives)
{
    return daemon_start_new(1,
        "load_module " MODULES_PATH "/names.so; events { use %s; }"
        "stream { server { listen 127.0.0.1:$0; names %d; %s } }",
        mechanisms_name(i), server->port, directives);
}

START_TEST(names_are_found)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start_names(_i, &server, "");
    int client = client_open(daemon->ports[0]);
    struct name_reply lost;

    client_send(client, "first.test\nsecond.test\n");
    answer_datagram(&server, 1);
    answer_datagram(&server, 1);
    client_expect(client, "192.0.2.1\n192.0.2.1\n");
    client_send(client, "long.test\n");
    answer_datagram(&server, 0);
    answer_connection(&server, 7);
    client_expect(client, "192.0.2.7\n");
    client_send(client, "gone.test\n"); /* the asker goes before the answer */
    name_server_take(&server, &lost);
    close(client);
    daemon_stop(daemon, SIGQUIT);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_server_is_silent)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start_names(_i, &server, "names_wait 50ms;");
    int client = client_open(daemon->ports[0]);

    client_send(client, "silent.test\n");
    client_expect(client, "Timeout while contacting DNS servers\n");
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, names_are_found, 0, mechanisms_count());
    tcase_add_loop_test(tcase, a_server_is_silent, 0, mechanisms_count());
}

TEST_MAIN("library", add_tests)
