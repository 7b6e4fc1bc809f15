/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers of a group that have names, and a server of names that lies, loops, cuts, or says
 * nothing: the worker goes on, the error log has the reason, and the name is asked for again. The
 * test is the server of names. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/name_server.h"
#include "support/test.h"

#include <string.h>
#include <unistd.h>

#define COULD_NOT "\"a.test\" could not be resolved: "
#define SILENT "no server has answered in time"
#define ALIAS "\5other\4test"

/* Two servers have the name's possible addresses; a third server needs no name. */
static struct daemon *start(const struct name_server *server, const char *timeout)
{
    return daemon_start_new(3,
        "events {} stream { resolver 127.0.0.1:%d ipv6=off valid=1s; resolver_timeout %s;"
        "upstream named { server a.test:$1 resolve; }"
        "server { listen 127.0.0.1:$0; proxy_pass named; }"
        "server { listen 127.0.0.1:$1; echo; } server { listen 127.0.0.2:$1; echo; }"
        "server { listen 127.0.0.1:$2; proxy_pass 127.0.0.1:$1; } }",
        server->port, timeout);
}

static void expect_served(in_port_t port)
{
    int client = client_open(port);

    client_echo(client, "served");
    close(client);
}

static void add_address(struct name_reply *reply, uint8_t last)
{
    name_reply_add(reply, NAME_ASKED, NAME_A, 0, ((const uint8_t[]) { 127, 0, 0, last }), 4);
}

static void answer(const struct name_server *server, uint8_t last)
{
    struct name_reply reply;

    name_server_take(server, &reply);
    add_address(&reply, last);
    name_server_send(server, &reply, 0);
}

/* Answers the questions of the meantime; whether the log has the text. */
static bool has_logged(struct daemon *daemon, const struct name_server *server, const char *text)
{
    if (!name_server_is_quiet(server))
        answer(server, 1);
    return daemon_count_log(daemon, text) > 0;
}

static void tell_no_such_name(const struct name_server *server, struct name_reply *reply)
{
    name_server_send(server, reply, 3);
}

static void answer_failure(const struct name_server *server, struct name_reply *reply)
{
    name_server_send(server, reply, 2);
}

static void answer_refusal(const struct name_server *server, struct name_reply *reply)
{
    name_server_send(server, reply, 5);
}

static void loop(const struct name_server *server, struct name_reply *reply)
{
    name_reply_add(reply, NAME_ASKED, NAME_CNAME, 60, ALIAS, sizeof(ALIAS));
    name_reply_add(reply, (const uint8_t *)ALIAS, sizeof(ALIAS), NAME_CNAME, 60, NAME_ASKED);
    name_server_send(server, reply, 0);
}

/* Announces records that do not follow. */
static void cut(const struct name_server *server, struct name_reply *reply)
{
    add_address(reply, 1);
    reply->n -= 3;
    name_server_send(server, reply, 0);
}

static void answer_for_another(const struct name_server *server, struct name_reply *reply)
{
    name_reply_add(reply, (const uint8_t *)ALIAS, sizeof(ALIAS), NAME_A, 60,
        ((const uint8_t[]) { 127, 0, 0, 1 }), 4);
    name_server_send(server, reply, 0);
}

/* Answers a different question, so that the resolver must not take the reply for an answer. */
static void answer_another(const struct name_server *server, struct name_reply *reply)
{
    add_address(reply, 1);
    reply->bytes[13] = 'b';
    name_server_send(server, reply, 0);
}

static void send_nothing(const struct name_server *server, struct name_reply *reply)
{
    reply->n = 0;
    name_server_send(server, reply, 0);
}

static void answer_never(const struct name_server *server, struct name_reply *reply)
{
    (void)server;
    (void)reply;
}

static const struct {
    const char *why;
    void (*send)(const struct name_server *server, struct name_reply *reply);
} lies[] = {
    { "the name does not exist", tell_no_such_name },
    { "the aliases do not end", loop },
    { "the answer is about another name", answer_for_another },
    { "the answer is cut", cut },
    { COULD_NOT, answer_failure },
    { COULD_NOT, answer_refusal },
    { SILENT, answer_another },
    { SILENT, send_nothing },
    { SILENT, answer_never },
};

/* Whether the client has been told, while all questions get a constant lie. */
static bool has_been_lied_to(const struct name_server *server, int client,
    void (*send)(const struct name_server *server, struct name_reply *reply))
{
    struct name_reply reply;

    if (!name_server_is_quiet(server)) {
        name_server_take(server, &reply);
        send(server, &reply);
    }
    return !client_is_quiet(client);
}

/* A new client waits until the name is known to have no server; other clients are served. With
 * addresses for the name, all are. */
START_TEST(lies_are_told_and_overcome)
{
    struct name_server server = name_server_start();
    bool is_silent = strcmp(lies[_i].why, SILENT) == 0;
    struct daemon *daemon = start(&server, is_silent ? "1s" : "10s");
    int client = client_open(daemon->ports[0]);

    daemon_expects(daemon, "could not be resolved: ");
    daemon_expects(daemon, "no live upstreams");
    expect_served(daemon->ports[2]);
    WAIT_FOR(has_been_lied_to(&server, client, lies[_i].send));
    client_expect_gone(client);
    close(client);
    ck_assert_uint_eq(daemon_count_log(daemon, COULD_NOT), 1);
    ck_assert_uint_eq(daemon_count_log(daemon, lies[_i].why), 1);
    expect_served(daemon->ports[2]);
    WAIT_FOR(has_logged(daemon, &server, "upstream \"named\" has been resolved, addresses: 1"));
    expect_served(daemon->ports[0]);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* Answers: the name is an alias of the letter's name. */
static void send_alias(const struct name_server *server, char letter)
{
    const uint8_t alias[] = { 1, (uint8_t)letter, 4, 't', 'e', 's', 't', 0 };
    struct name_reply reply;

    name_server_take(server, &reply);
    name_reply_add(&reply, NAME_ASKED, NAME_CNAME, 1, alias, sizeof(alias));
    name_server_send(server, &reply, 0);
}

/* A lone alias as an answer leads to a question for its target; an alias to nowhere ends. */
START_TEST(an_alias_alone_is_followed)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "10s");
    struct name_reply reply;

    daemon_expects(daemon, COULD_NOT "the aliases do not end");
    for (int i = 0; i < 9; i++)
        send_alias(&server, (char)('b' + i));
    daemon_wait_log(daemon, COULD_NOT "the aliases do not end");
    send_alias(&server, 'z');
    name_server_take(&server, &reply);
    ck_assert_int_eq(reply.bytes[13], 'z');
    add_address(&reply, 1);
    name_server_send(&server, &reply, 0);
    WAIT_FOR(has_logged(daemon, &server, "has been resolved, addresses: 1"));
    expect_served(daemon->ports[0]);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* The addresses change while clients come; the first address stays. */
START_TEST(addresses_change_under_load)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "10s");
    int first;

    answer(&server, 1);
    first = client_open(daemon->ports[0]);
    client_echo(first, "first");
    for (uint8_t i = 0; i < 4; i++) {
        for (int n = 0; n < 20; n++)
            expect_served(daemon->ports[0]);
        answer(&server, i % 2 == 0 ? 2 : 1);
        client_echo(first, "first");
    }
    close(first);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* The answer does not fit into a datagram. */
START_TEST(hundreds_of_addresses)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "10s");
    struct name_reply reply;

    daemon_expects(daemon, COULD_NOT "the name does not exist");
    name_server_take(&server, &reply);
    tell_no_such_name(&server, &reply);
    name_server_take(&server, &reply);
    reply.bytes[2] |= NAME_TRUNCATED;
    name_server_send(&server, &reply, 0);
    name_server_accept(&server, &reply);
    for (uint8_t i = 1; i <= 200; i++)
        add_address(&reply, i);
    name_server_send(&server, &reply, 0);
    WAIT_FOR(has_logged(daemon, &server, "has been resolved, addresses: 200"));
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, lies_are_told_and_overcome, 0, sizeof(lies) / sizeof(*lies));
    tcase_add_test(tcase, an_alias_alone_is_followed);
    tcase_add_test(tcase, addresses_change_under_load);
    tcase_add_test(tcase, hundreds_of_addresses);
}

TEST_MAIN("upstream names", add_tests)
