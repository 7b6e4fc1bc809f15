/* SPDX-License-Identifier: BSD-2-Clause */
/* Names without an answering server, and the effect on other names meanwhile. The test is the
 * server of names. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/name_server.h"
#include "support/test.h"
#include "support/wait.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

static struct daemon *start(const struct name_server *server)
{
    return daemon_start_new(1,
        "load_module " MODULES_PATH "/resolves.so; events {}"
        "stream { resolver 127.0.0.1:%d; server { listen 127.0.0.1:$0; resolves; } }",
        server->port);
}

static bool is_about(const struct name_reply *reply, const char *question)
{
    return memcmp(reply->bytes + 12, question, strlen(question) + 1) == 0;
}

/* Unanswered questions without waiting clients leave room for the rest. */
START_TEST(silent_names_block_nobody)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server);
    int client = client_open(daemon->ports[0]);
    struct name_reply reply;
    char text[32];

    daemon_expects(daemon, "could not be resolved: no server has answered within 50 ms");
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof(text), "sA n%d.test\n", i);
        client_send(client, text);
    }
    for (int i = 0; i < 300; i++)
        client_expect(client, "timed out \n");
    client_send(client, "A asked.test\n");
    do /* a slow worker has repeated some questions */
        name_server_take(&server, &reply);
    while (!is_about(&reply, "\5asked\4test"));
    name_reply_add_a(&reply, 60, 1);
    name_server_send(&server, &reply, 0);
    client_expect(client, "found 192.0.2.1:0 \n");
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* Receives a datagram, and returns the source port. */
static in_port_t receive_from(const struct name_server *server, struct name_reply *reply)
{
    struct pollfd entry = { .fd = server->udp, .events = POLLIN };
    socklen_t length = sizeof(reply->from);
    ssize_t n;

    ck_assert_int_eq(poll(&entry, 1, (int)patience_ms()), 1);
    n = recvfrom(server->udp, reply->bytes, sizeof(reply->bytes), 0,
        (struct sockaddr *)&reply->from, &length);
    ck_assert_int_gt(n, 0);
    reply->n = (size_t)n;
    return reply->from.sin_port;
}

/* An unanswered question is repeated from a new port. */
START_TEST(repeated_questions_have_other_ports)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server);
    int client = client_open(daemon->ports[0]);
    struct name_reply first, second;

    client_send(client, "A repeated.test\n");
    receive_from(&server, &first);
    ck_assert_int_ne(receive_from(&server, &second), first.from.sin_port);
    ck_assert_uint_eq(second.n, first.n);
    ck_assert_mem_eq(second.bytes, first.bytes, first.n);
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* Questions have separate ports while a question hangs. */
START_TEST(questions_have_ports_of_their_own)
{
    enum { QUESTIONS = 20 };
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server);
    int client = client_open(daemon->ports[0]);
    in_port_t ports[QUESTIONS];
    struct name_reply reply;
    char text[32];

    for (int i = 0; i < QUESTIONS; i++) {
        snprintf(text, sizeof(text), "A n%d.test\n", i);
        client_send(client, text);
        name_server_take(&server, &reply);
        ports[i] = reply.from.sin_port;
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(ports[i], ports[j]);
    }
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, silent_names_block_nobody);
    tcase_add_test(tcase, repeated_questions_have_other_ports);
    tcase_add_test(tcase, questions_have_ports_of_their_own);
}

TEST_MAIN("silent names", add_tests)
