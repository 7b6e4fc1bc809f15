/* SPDX-License-Identifier: BSD-2-Clause */
/* Names resolved by a protocol, on the real kernel: the results under each event mechanism; joined,
 * kept, cancelled and late questions; and servers that lie, loop, cut or do not answer. The test is
 * the server of names. */
#include "base/compiler.h"
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/name_server.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define ALIAS "\5other\4test"
#define COULD_NOT "could not be resolved: "

static struct daemon *start_with(
    const struct name_server *server, const char *mechanism, const char *options)
{
    return daemon_start_new(1,
        "load_module " MODULES_PATH "/resolves.so; events { use %s; }"
        "stream { resolver 127.0.0.1:%d %s; server { listen 127.0.0.1:$0; resolves; } }",
        mechanism, server->port, options);
}

static struct daemon *start(const struct name_server *server, const char *options)
{
    return start_with(server, mechanisms_name(0), options);
}

static void answer_a(const struct name_server *server, uint32_t ttl, uint8_t last)
{
    struct name_reply reply;

    name_server_take(server, &reply);
    ck_assert_uint_eq(name_reply_type(&reply), NAME_A);
    name_reply_add_a(&reply, ttl, last);
    name_server_send(server, &reply, 0);
}

static void answer_nothing(const struct name_server *server, uint8_t code)
{
    struct name_reply reply;

    name_server_take(server, &reply);
    name_server_send(server, &reply, code);
}

/* Answers both questions for addresses, in any order. */
static void answer_both(const struct name_server *server)
{
    for (int i = 0; i < 2; i++) {
        struct name_reply reply;
        const uint8_t address[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 };

        name_server_take(server, &reply);
        if (name_reply_type(&reply) == NAME_A)
            name_reply_add_a(&reply, 60, 1);
        else
            name_reply_add(&reply, NAME_ASKED, NAME_AAAA, 60, address, sizeof(address));
        name_server_send(server, &reply, 0);
    }
}

static void answer_services(const struct name_server *server)
{
    static const uint8_t second[] = { 0, 20, 0, 5, 0, 80, 1, 'b', 0 };
    static const uint8_t first[] = { 0, 10, 0, 5, 0, 81, 1, 'a', 0 };
    static const uint8_t third[] = { 0, 20, 0, 9, 0, 82, 0xc0, 12 };
    struct name_reply reply;

    name_server_take(server, &reply);
    ck_assert_uint_eq(name_reply_type(&reply), NAME_SRV);
    name_reply_add(&reply, NAME_ASKED, NAME_SRV, 60, second, sizeof(second));
    name_reply_add(&reply, NAME_ASKED, NAME_SRV, 50, first, sizeof(first));
    name_reply_add(&reply, NAME_ASKED, NAME_SRV, 60, third, sizeof(third));
    name_server_send(server, &reply, 0);
}

static void answer_name(const struct name_server *server)
{
    static const uint8_t name[] = "\4Host\4test";
    struct name_reply reply;

    name_server_take(server, &reply);
    ck_assert_uint_eq(name_reply_type(&reply), NAME_PTR);
    name_reply_add(&reply, NAME_ASKED, NAME_PTR, 60, name, sizeof(name));
    name_server_send(server, &reply, 0);
}

/* The time of an address behind an alias is the shorter one. */
static void answer_alias(const struct name_server *server)
{
    struct name_reply reply;

    name_server_take(server, &reply);
    name_reply_add(&reply, NAME_ASKED, NAME_CNAME, 7200, ALIAS, sizeof(ALIAS));
    name_reply_add(&reply, (const uint8_t *)ALIAS, sizeof(ALIAS), NAME_A, 99999,
        ((const uint8_t[]) { 192, 0, 2, 9 }), 4);
    name_server_send(server, &reply, 0);
}

/* The answer does not fit into a datagram. */
static void answer_by_connection(const struct name_server *server)
{
    struct name_reply reply;

    name_server_take(server, &reply);
    reply.bytes[2] |= NAME_TRUNCATED;
    name_server_send(server, &reply, 0);
    name_server_accept(server, &reply);
    for (uint8_t i = 1; i <= 100; i++)
        name_reply_add_a(&reply, 60, i);
    name_server_send(server, &reply, 0);
}

static void expect_hundred(int client)
{
    char text[4096] = "found";

    for (int i = 1; i <= 100; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " 192.0.2.%d:0", i);
    strcat(text, " \n");
    client_expect(client, text);
}

START_TEST(names_are_found)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start_with(&server, mechanisms_name(_i), "");
    int client = client_open(daemon->ports[0]);

    client_send(client, "pA one.test\n");
    answer_a(&server, 60, 1);
    client_expect(client, "found 192.0.2.1:80 \n");
    client_send(client, "ANY both.test\n");
    answer_both(&server);
    client_expect(client, "found 192.0.2.1:0 [2001:db8::1]:0 \n");
    client_send(client, "SRV _x._tcp.test\n");
    answer_services(&server);
    client_expect(client, "found 10/5/81/a 20/9/82/_x._tcp.test 20/5/80/b \n");
    client_send(client, "PTR 192.0.2.77\n");
    answer_name(&server);
    client_expect(client, "found as 77.2.0.192.in-addr.arpa Host.test \n");
    client_send(client, "wA alias.test\n");
    answer_alias(&server);
    client_expect(client, "found as other.test 192.0.2.9:0 \n");
    client_send(client, "A long.test\n");
    answer_by_connection(&server);
    expect_hundred(client);
    client_send(client, "A gone.test\n");
    answer_nothing(&server, 3);
    client_expect(client, "absent \n");
    close(client);
    daemon_stop(daemon, SIGQUIT);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* Addresses need no question, and names with mistakes are refused: no server hears of either. */
START_TEST(nobody_is_asked)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "");
    int client = client_open(daemon->ports[0]);

    client_send(client, "pANY 10.1.2.3\n");
    client_expect(client, "found 10.1.2.3:80 \n");
    client_send(client, "AAAA 2001:db8::7\n");
    client_expect(client, "found [2001:db8::7]:0 \n");
    client_send(client, "AAAA 10.1.2.3\n");
    client_expect(client, "no data \n");
    client_send(client, "A two..dots\nA \nA back\\slash\n");
    client_expect(client, "refused\nrefused\nrefused\n");
    ck_assert(name_server_is_quiet(&server));
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

START_TEST(answers_are_joined_and_kept)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "");
    int client = client_open(daemon->ports[0]), other = client_open(daemon->ports[0]);

    client_send(client, "A one.test\nA ONE.test\nwA one.test\n");
    client_send(other, "A one.test\n");
    answer_a(&server, 60, 1);
    client_expect(client, "found 192.0.2.1:0 \nfound 192.0.2.1:0 \nfound 192.0.2.1:0 \n");
    client_expect(other, "found 192.0.2.1:0 \n");
    client_send(client, "A one.test\n");
    client_expect(client, "found 192.0.2.1:0 \n");
    client_send(client, "AAAA one.test\n");
    answer_nothing(&server, 0);
    client_expect(client, "no data \n");
    client_send(client, "AAAA one.test\nANY one.test\n");
    client_expect(client, "no data \nfound 192.0.2.1:0 \n");
    ck_assert(name_server_is_quiet(&server));
    client_send(client, "A short.test\n"); /* holds for no time */
    answer_a(&server, 0, 2);
    client_expect(client, "found 192.0.2.2:0 \n");
    client_send(client, "A short.test\n");
    answer_a(&server, UINT32_MAX, 3);
    client_expect(client, "found 192.0.2.3:0 \n");
    client_send(client, "A short.test\n");
    answer_a(&server, 60, 4);
    client_expect(client, "found 192.0.2.4:0 \n");
    close(client);
    close(other);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

START_TEST(options_are_kept_to)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "valid=1h ipv6=off");
    int client = client_open(daemon->ports[0]);

    client_send(client, "tANY one.test\n");
    answer_a(&server, 0, 1);
    client_expect(client, "found 192.0.2.1:0 (3600) \n");
    client_send(client, "ANY one.test\n");
    client_expect(client, "found 192.0.2.1:0 \n");
    ck_assert(name_server_is_quiet(&server));
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* Each server's own. */
START_TEST(servers_have_resolvers)
{
    struct name_server one = name_server_start(), other = name_server_start();
    struct daemon *daemon = daemon_start_new(2,
        "load_module " MODULES_PATH "/resolves.so; events { } stream {"
        "server { listen 127.0.0.1:$0; resolves; }"
        "server { listen 127.0.0.1:$1; resolves; resolver 127.0.0.1:%d; resolver_timeout 60ms; }"
        "resolver 127.0.0.1:%d; }",
        other.port, one.port);
    int client = client_open(daemon->ports[0]), second = client_open(daemon->ports[1]);

    client_send(client, "A a.test\n");
    answer_a(&one, 60, 1);
    client_expect(client, "found 192.0.2.1:0 \n");
    client_send(second, "A a.test\nwA b.test\n");
    answer_a(&one, 60, 3); /* the worker's */
    answer_a(&other, 60, 2);
    name_server_stop(&one);
    name_server_stop(&other);
    close(client);
    close(second);
    daemon_finish(daemon);
}
END_TEST

START_TEST(nobody_answers)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "");
    int client = client_open(daemon->ports[0]);

    daemon_expects(daemon, COULD_NOT "no server has answered within 50 ms");
    client_send(client, "sA silent.test\nsA silent.test\n");
    client_expect(client, "timed out \ntimed out \n");
    ck_assert_uint_eq(daemon_count_log(daemon, "\"silent.test\" (A) " COULD_NOT), 1);
    answer_a(&server, 60, 1); /* too late for the waiting clients, not for later ones */
    client_send(client, "A silent.test\n");
    client_expect(client, "found 192.0.2.1:0 \n");
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* Answers the question; whether the client was told. */
static bool has_failed(const struct name_server *server, int client)
{
    if (!name_server_is_quiet(server))
        answer_nothing(server, 2);
    return !client_is_quiet(client);
}

/* A server that does not exist, or always fails, is told at once. */
START_TEST(servers_fail)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "");
    int client = client_open(daemon->ports[0]);

    daemon_expects(daemon, "\"fails.test\" (A) " COULD_NOT);
    daemon_expects(daemon, "\"lost.test\" (A) " COULD_NOT);
    client_send(client, "A fails.test\n");
    WAIT_FOR(has_failed(&server, client));
    client_expect(client, "failed \n");
    name_server_stop(&server);
    client_send(client, "A lost.test\n");
    client_expect(client, "failed \n");
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* Askers that go, or lose interest. */
START_TEST(askers_go)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "");
    int client = client_open(daemon->ports[0]), other = client_open(daemon->ports[0]);
    struct name_reply reply;

    client_send(client, "cA one.test\n");
    client_expect(client, "cancelled\n");
    client_send(client, "A two.test\nwA two.test\n");
    name_server_take(&server, &reply);
    close(client);
    client_send(other, "A two.test\n");
    client_send(other, "A 10.0.0.1\n");
    client_expect(other, "found 10.0.0.1:0 \n");
    name_reply_add_a(&reply, 60, 2);
    name_server_send(&server, &reply, 0);
    client_expect(other, "found 192.0.2.2:0 \n");
    client_send(other, "wA three.test\nA four.test\n");
    name_server_take(&server, &reply);
    close(other);
    daemon_stop(daemon, SIGQUIT); /* while the worker waits for an answer */
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* ---- Answers that make no sense ---- */

static void lie_about_another(struct name_reply *reply)
{
    name_reply_add(reply, (const uint8_t *)ALIAS, sizeof(ALIAS), NAME_A, 60, "abcd", 4);
}

static void loop_aliases(struct name_reply *reply)
{
    name_reply_add(reply, NAME_ASKED, NAME_CNAME, 60, ALIAS, sizeof(ALIAS));
    name_reply_add(reply, (const uint8_t *)ALIAS, sizeof(ALIAS), NAME_CNAME, 60, NAME_ASKED);
}

static void loop_pointer(struct name_reply *reply)
{
    name_reply_add(reply, NAME_AT((uint8_t)reply->n), NAME_A, 60, "abcd", 4);
}

static void cut_record(struct name_reply *reply)
{
    name_reply_add_a(reply, 60, 1);
    reply->n -= 2;
}

static void cut_count(struct name_reply *reply)
{
    name_reply_add_a(reply, 60, 1);
    reply->bytes[6] = 0xff;
}

static void long_address(struct name_reply *reply)
{
    name_reply_add(reply, NAME_ASKED, NAME_A, 60, "abcde", 5);
}

static void newline_in_alias(struct name_reply *reply)
{
    name_reply_add(reply, NAME_ASKED, NAME_CNAME, 60, "\2a\n", 4);
}

static const struct {
    void (*build)(struct name_reply *reply);
    const char *why;
} broken[] = {
    { lie_about_another, "the answer is about another name" },
    { loop_aliases, "the aliases do not end" },
    { loop_pointer, "the answer is malformed" },
    { cut_record, "the answer is cut" },
    { cut_count, "the answer is cut" },
    { long_address, "the answer is malformed" },
    { newline_in_alias, "the answer is malformed" },
};

START_TEST(answers_make_no_sense)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "");
    int client = client_open(daemon->ports[0]);

    for (size_t i = 0; i < countof(broken); i++) {
        struct name_reply reply;

        daemon_mark_log(daemon);
        daemon_expects(daemon, broken[i].why);
        client_send(client, "A broken.test\n");
        name_server_take(&server, &reply);
        broken[i].build(&reply);
        name_server_send(&server, &reply, 0);
        client_expect(client, "broken \n");
        daemon_wait_log(daemon, broken[i].why);
    }
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* Replies not fitting the question are dropped: an early forger gains nothing. */
START_TEST(false_answers_come_first)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, "");
    int client = client_open(daemon->ports[0]);
    struct name_reply reply, lie;

    client_send(client, "A one.test\n");
    name_server_take(&server, &reply);
    lie = reply;
    lie.n = 0; /* an empty datagram, and a part of a header */
    name_server_send(&server, &lie, 0);
    lie.n = 5;
    name_server_send(&server, &lie, 0);
    lie = reply; /* another question's number */
    lie.bytes[0] ^= 1;
    name_reply_add_a(&lie, 60, 66);
    name_server_send(&server, &lie, 0);
    lie = reply; /* another name */
    lie.bytes[13] = 'x';
    name_reply_add_a(&lie, 60, 66);
    name_server_send(&server, &lie, 0);
    name_reply_add_a(&reply, 60, 1);
    name_server_send(&server, &reply, 0);
    client_expect(client, "found 192.0.2.1:0 \n");
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* The file of every system, and the answer for a protocol without the declared need. */
START_TEST(the_system_is_asked)
{
    struct daemon *daemon = daemon_start_new(2,
        "load_module " MODULES_PATH "/resolves.so; load_module " MODULES_PATH "/resolves_not.so;"
        "events { } stream { server { listen 127.0.0.1:$0; resolves; } }");
    int client = client_open(daemon->ports[0]);

    client_send(client, "A localhost\n");
    client_expect(client, "found 127.0.0.1:0 \n");
    close(client);
    daemon_stop(daemon, SIGTERM);
    daemon_configure(daemon, "load_module " MODULES_PATH "/resolves_not.so;"
                             "events { } stream { server { listen 127.0.0.1:$0; resolves_not; } }");
    daemon_start(daemon);
    client = client_open(daemon->ports[0]);
    client_send(client, "A localhost\n");
    client_expect(client, "refused\n");
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, names_are_found, 0, mechanisms_count());
    tcase_add_test(tcase, nobody_is_asked);
    tcase_add_test(tcase, answers_are_joined_and_kept);
    tcase_add_test(tcase, options_are_kept_to);
    tcase_add_test(tcase, servers_have_resolvers);
    tcase_add_test(tcase, nobody_answers);
    tcase_add_test(tcase, servers_fail);
    tcase_add_test(tcase, askers_go);
    tcase_add_test(tcase, answers_make_no_sense);
    tcase_add_test(tcase, false_answers_come_first);
    tcase_add_test(tcase, the_system_is_asked);
}

TEST_MAIN("resolver", add_tests)
