/* SPDX-License-Identifier: BSD-2-Clause */
/* The echo protocol, from a client's side. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

extern const fb_protocol fb_protocol_echo;

START_TEST(sends_back_what_it_receives)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("first"),
        FB_TEST_EXPECT("first"),
        FB_TEST_SAY("second \0\xff\r\n"),
        FB_TEST_SAY("third"),
        FB_TEST_EXPECT("second \0\xff\r\nthird"),
        FB_TEST_PASS(60000),
        FB_TEST_SAY("after a minute"),
        FB_TEST_EXPECT("after a minute"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_echo, "echo;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(sends_back_what_follows_the_header_of_a_proxy)
{
    static const fb_test_options options = {
        .size = sizeof(options),
        .server = "echo; set_real_ip_from 192.0.2.1;",
        .listen = "proxy_protocol",
    };
    static const fb_test_step script[] = {
        FB_TEST_SAY("PROXY TCP4 203.0.113.9 198.51.100.7 4321 443\r\nfirst"),
        FB_TEST_EXPECT("first"),
        FB_TEST_SAY("second"),
        FB_TEST_EXPECT("second"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse_with(&fb_protocol_echo, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(sends_back_much)
{
    static uint8_t much[300000];
    fb_test *test = fb_test_start(&fb_protocol_echo, "echo;");
    fb_test_peer *peer = fb_test_connect(test);

    for (size_t i = 0; i < sizeof(much); i++)
        much[i] = (uint8_t)(i * 7 + i / 256);
    fb_test_take(peer, 5000); /* echo does not read for a while */
    fb_test_say(peer, much, 100000);
    fb_test_say(peer, much + 100000, sizeof(much) - 100000);
    fb_test_shut(peer);
    ck_assert_uint_eq(fb_test_heard(peer).n, 5000);
    ck_assert(!fb_test_has_ended(peer));
    fb_test_take(peer, SIZE_MAX);
    ck_assert_uint_eq(fb_test_heard(peer).n, sizeof(much));
    ck_assert_mem_eq(fb_test_heard(peer).p, much, sizeof(much));
    ck_assert(fb_test_is_closed(peer));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(idle_clients_are_closed)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("once"),
        FB_TEST_EXPECT("once"),
        FB_TEST_PASS(9500),
        FB_TEST_SAY("again"),
        FB_TEST_EXPECT("again"),
        FB_TEST_PASS(10000),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(
        fb_test_converse(&fb_protocol_echo, "echo; idle_timeout 10s;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, sends_back_what_it_receives);
    tcase_add_test(tcase, sends_back_what_follows_the_header_of_a_proxy);
    tcase_add_test(tcase, sends_back_much);
    tcase_add_test(tcase, idle_clients_are_closed);
}

TEST_MAIN("echo", add_tests)
