/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of a group's servers: failures, the next question, and services. Time and the servers
 * of names are simulated. */
#include "upstream/led.h"

#include <stdio.h>
#include <string.h>

#define COULD_NOT "could not be resolved: "

static fb_test *start(const char *servers)
{
    char stream[1024];

    snprintf(stream, sizeof(stream), "upstream u { %s }", servers);
    return led_start(stream, "proxy_pass u;");
}

/* Serves clients in sequence, by all the addresses in turn, in any order. */
static void expect_turns(fb_test *test, const char *const *addresses, unsigned n)
{
    fb_test_server *servers[8];
    fb_test_peer *clients[8];

    ck_assert_uint_le(n, 8);
    for (unsigned i = 0; i < n; i++)
        servers[i] = fb_test_serve(test, addresses[i], FB_TEST_ACCEPTS);
    for (unsigned i = 0; i < n; i++)
        clients[i] = fb_test_connect(test);
    fb_test_run(test);
    for (unsigned i = 0; i < n; i++) {
        if (fb_test_accept(servers[i]) == NULL)
            ck_abort_msg("no connection to %s, log:\n%.4000s", addresses[i], fb_test_logged(test));
        ck_assert_ptr_null(fb_test_accept(servers[i]));
    }
    for (unsigned i = 0; i < n; i++)
        led_close(test, clients[i]);
}

#define EXPECT_TURNS(...)                                                                          \
    do {                                                                                           \
        static const char *const turns[] = { __VA_ARGS__ };                                        \
                                                                                                   \
        expect_turns(test, turns, sizeof(turns) / sizeof(*turns));                                 \
    } while (0)

/* The worker starts without an existing name, and a session does not wait for it. */
START_TEST(a_name_that_comes_later)
{
    fb_test *test = start("server a.test:80;");

    led_connect(test, NULL);
    led_logged(test,
        "\"a.test\" could not be resolved: the name does not exist, server "
        "\"a.test:80\" of upstream \"u\" is down",
        1);
    fb_test_pass(test, 60000);
    led_connect(test, NULL);
    led_logged(test, COULD_NOT, 1);
    fb_test_name(test, "a.test 60 A 10.0.0.1");
    fb_test_name(test, "a.test 60 AAAA 2001:db8::1");
    fb_test_pass(test, 40000);
    led_logged(
        test, "[notice] server \"a.test:80\" of upstream \"u\" has been resolved, addresses: 2", 1);
    EXPECT_TURNS("10.0.0.1:80", "[2001:db8::1]:80");
    led_logged(test, COULD_NOT, 1);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Without `resolve` the first answer stays. */
START_TEST(a_first_answer_stays)
{
    fb_test *test = start("server a.test:80;");

    fb_test_name(test, "a.test 1 A 10.0.0.1");
    fb_test_pass(test, 40000);
    EXPECT_TURNS("10.0.0.1:80");
    fb_test_name(test, "a.test 1 A 10.0.0.2");
    fb_test_pass(test, 100000);
    EXPECT_TURNS("10.0.0.1:80");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A name is asked for again when its time is over, and the session of before goes on. */
START_TEST(answers_change)
{
    fb_test *test = start("server a.test:80 resolve;");
    fb_test_peer *client, *server;

    fb_test_name(test, "a.test 0 A 10.0.0.1");
    fb_test_pass(test, 40000);
    fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);
    client = fb_test_connect(test);
    fb_test_run(test);
    server = fb_test_accept(fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS));
    ck_assert_ptr_nonnull(server);
    fb_test_name(test, "a.test 0 A 10.0.0.2");
    fb_test_pass(test, 2000);
    EXPECT_TURNS("10.0.0.1:80", "10.0.0.2:80");
    fb_test_says(client, "still there");
    ck_assert_uint_eq(fb_test_heard(server).n, 11);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A failure keeps the addresses, and an answer restoring them is no news. */
START_TEST(failures_keep_addresses)
{
    fb_test *test = start("server a.test:80 resolve;");

    fb_test_name(test, "a.test 5 A 10.0.0.1");
    fb_test_pass(test, 40000);
    fb_test_names(test, _i == 0 ? FB_TEST_REFUSES : FB_TEST_SILENT);
    fb_test_pass(test, 120000);
    led_logged(test, "keeps its addresses", 1);
    EXPECT_TURNS("10.0.0.1:80");
    fb_test_names(test, FB_TEST_ACCEPTS);
    fb_test_pass(test, 60000);
    led_logged(test, "[notice] server \"a.test:80\" of upstream \"u\" has been resolved", 1);
    EXPECT_TURNS("10.0.0.1:80");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(services)
{
    fb_test *test = start("server test service=http resolve;");

    fb_test_name(test, "_http._tcp.test 60 SRV 10 0 8001 a.test");
    fb_test_name(test, "_http._tcp.test 60 SRV 10 0 8002 b.test");
    fb_test_name(test, "_http._tcp.test 60 SRV 20 0 8003 c.test");
    fb_test_name(test, "_http._tcp.test 60 SRV 10 0 8004 none.test");
    fb_test_name(test, "_http._tcp.test 60 SRV 5 0 0 a.test");
    fb_test_name(test, "a.test 60 A 10.0.0.1");
    fb_test_name(test, "b.test 60 A 10.0.0.2");
    fb_test_name(test, "b.test 60 A 10.0.0.1");
    fb_test_name(test, "c.test 60 A 10.0.0.3");
    fb_test_pass(test, 40000);
    EXPECT_TURNS("10.0.0.1:8001", "10.0.0.1:8002", "10.0.0.2:8002");
    led_logged(test, "\"a.test\" could not be resolved: its port is 0", 1);
    fb_test_serve(test, "10.0.0.1:8001", FB_TEST_REFUSES);
    fb_test_serve(test, "10.0.0.1:8002", FB_TEST_REFUSES);
    fb_test_serve(test, "10.0.0.2:8002", FB_TEST_REFUSES);
    fb_test_pass(test, 100);            /* sessions have ended without a byte */
    led_connect(test, "10.0.0.3:8003"); /* a backup, after all three */
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* The records' weights become the addresses', unless the server has a weight. */
START_TEST(services_have_weights)
{
    fb_test *test = start(_i == 0 ? "server test service=_x._udp resolve;"
                                  : "server test service=_x._udp weight=2 resolve;");
    fb_test_server *first, *second;
    unsigned n = 0;

    fb_test_name(test, "_x._udp.test 60 SRV 10 3 8001 a.test");
    fb_test_name(test, "_x._udp.test 60 SRV 10 1 8002 a.test");
    fb_test_name(test, "a.test 60 A 10.0.0.1");
    fb_test_pass(test, 40000);
    first = fb_test_serve(test, "10.0.0.1:8001", FB_TEST_ACCEPTS);
    second = fb_test_serve(test, "10.0.0.1:8002", FB_TEST_ACCEPTS);
    for (int i = 0; i < 8; i++)
        fb_test_connect(test);
    fb_test_run(test);
    while (fb_test_accept(first) != NULL)
        n++;
    ck_assert_uint_eq(n, _i == 0 ? 6 : 4);
    while (fb_test_accept(second) != NULL)
        n++;
    ck_assert_uint_eq(n, 8);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static const char *const nowhere[] = {
    "_http._tcp.test 1 SRV 1 1 80 nowhere.test",
    "_http._tcp.test 1 SRV 1 1 80 _http._tcp.test",
    "_http._tcp.test 1 SRV 1 1 80 loop.test",
    "_http._tcp.test 1 SRV 1 1 80 .",
    "_http._tcp.test 1 SRV 1 1 0 a.test",
    "_http._tcp.test 1 A 10.0.0.1",
    "_http._tcp.test 1 CNAME _http._tcp.test",
};

START_TEST(services_that_lead_nowhere)
{
    fb_test *test = start("server test service=http resolve;");

    fb_test_name(test, nowhere[_i]);
    fb_test_name(test, "loop.test 1 CNAME pool.test");
    fb_test_name(test, "pool.test 1 CNAME loop.test");
    fb_test_name(test, "a.test 1 A 10.0.0.1");
    fb_test_pass(test, 100000);
    led_connect(test, NULL);
    led_logged(test, "server \"test\" of upstream \"u\" is down", 1);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A session waits for the first answer, unless a second server can serve. */
START_TEST(sessions_wait_for_the_first_answer)
{
    fb_test *test;
    fb_test_peer *client;

    test = start("server a.test:80; server 10.0.0.9:80; resolver 10.0.0.53; "
                 "resolver_timeout 5s;");
    led_connect(test, "10.0.0.9:80");
    ck_assert_int_eq(fb_test_end(&test), 0);

    test = start("server a.test:80 resolve;");
    fb_test_names(test, FB_TEST_SILENT);
    client = fb_test_connect(test);
    fb_test_run(test);
    led_close(test, client);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* More addresses than a datagram has room for, and than are taken. */
START_TEST(hundreds_of_addresses)
{
    fb_test *test = start("server a.test:80 resolve;");
    char record[64];

    for (int i = 0; i < 60; i++) {
        snprintf(record, sizeof(record), "a.test 60 A 10.0.%d.%d", i / 250, i % 250 + 1);
        fb_test_name(test, record);
    }
    fb_test_pass(test, 40000);
    led_logged(test, "has been resolved, addresses: 60", 1);
    EXPECT_TURNS("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* The name comes first, and then the queue. */
START_TEST(a_name_and_then_room)
{
    fb_test *test =
        led_start("upstream u { server a.test:80 max_conns=1; queue 5; }", "proxy_pass u;");
    fb_test_peer *clients[3];

    fb_test_name(test, "a.test 60 A 10.0.0.1");
    fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);
    for (int i = 0; i < 3; i++)
        clients[i] = fb_test_connect(test);
    for (int i = 0; i < 3; i++) {
        led_expect(test, clients[i], "10.0.0.1:80");
        led_close(test, clients[i]);
    }
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A try is an address of a name. */
START_TEST(tries_count_addresses)
{
    static const char *const tries[] = { "", "proxy_next_upstream_tries 2;",
        "proxy_next_upstream off;" };
    static const unsigned counts[] = { 4, 2, 1 };
    char server[64];
    fb_test *test;

    snprintf(server, sizeof(server), "proxy_pass a.test:80; %s", tries[_i]);
    test = led_start("", server);
    for (int i = 1; i <= 4; i++) {
        char text[64];

        snprintf(text, sizeof(text), "a.test 60 A 10.0.0.%d", i);
        fb_test_name(test, text);
        snprintf(text, sizeof(text), "10.0.0.%d:80", i);
        fb_test_serve(test, text, FB_TEST_REFUSES);
    }
    fb_test_pass(test, 40000);
    led_connect(test, NULL);
    led_logged(test, "connect() failed", counts[_i]);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_name_that_comes_later);
    tcase_add_test(tcase, a_first_answer_stays);
    tcase_add_test(tcase, answers_change);
    tcase_add_loop_test(tcase, failures_keep_addresses, 0, 2);
    tcase_add_test(tcase, services);
    tcase_add_loop_test(tcase, services_have_weights, 0, 2);
    tcase_add_loop_test(tcase, services_that_lead_nowhere, 0, sizeof(nowhere) / sizeof(*nowhere));
    tcase_add_test(tcase, sessions_wait_for_the_first_answer);
    tcase_add_test(tcase, hundreds_of_addresses);
    tcase_add_test(tcase, a_name_and_then_room);
    tcase_add_loop_test(tcase, tries_count_addresses, 0, 3);
}

TEST_MAIN("resolve", add_tests)
