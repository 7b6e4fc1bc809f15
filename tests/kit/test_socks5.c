/* SPDX-License-Identifier: BSD-2-Clause */
/* The SOCKS5 proxy of examples/ in conversations of the kit: cut, late, broken off, and with each
 * allocation failing once. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

extern const fb_protocol fb_protocol_socks5;

#define ADDRESS "10.0.0.1:80"
#define TO_ADDRESS "\5\1\0\1\12\0\0\1\0\120"
#define ADDRESS6 "[2001:db8::1]:80"
#define TO_ADDRESS6 "\5\1\0\4\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\120"
#define REFUSED(code) "\5" code "\0\1\0\0\0\0\0\0"

static int socks5(const char *server, const fb_test_step *script, size_t n)
{
    /* without memory a request fails for no reason that the client would know */
    const fb_test_options options = { .size = sizeof(options), .server = server, .excuse = "\5\1" };

    return fb_test_converse_with(&fb_protocol_socks5, &options, script, n);
}

START_TEST(socks5_connects)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("\5\1\0"),
        FB_TEST_EXPECT("\5\0"),
        FB_TEST_SAY(TO_ADDRESS "early"),
        FB_TEST_SERVER(1, ADDRESS),
        FB_TEST_EXPECT("early"),
        FB_TEST_SAY("answer"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("\5\0\0\1"),
        FB_TEST_EXPECT_ANY(6),
        FB_TEST_EXPECT("answer"),
        FB_TEST_SHUT(),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT_END(),
        FB_TEST_SAY("the last word"),
        FB_TEST_SHUT(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("the last word"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(socks5("socks5;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(socks5_connects_to_ipv6)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("\5\2\1\0" TO_ADDRESS6),
        FB_TEST_EXPECT("\5\0"),
        FB_TEST_EXPECT("\5\0\0\4"),
        FB_TEST_EXPECT_ANY(18),
        FB_TEST_SERVER(1, ADDRESS6),
        FB_TEST_SAY("hello"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("hello"),
        FB_TEST_PEER(1),
        FB_TEST_RESET(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT_RESET(),
    };

    ck_assert_int_eq(socks5("socks5; socks5_local 2001:db8::7;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A name that is an address, an impossible name, a name with two addresses, and a name without
 * any. */
START_TEST(socks5_resolves_names)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("\5\1\0\5\1\0\3\10"),
        FB_TEST_EXPECT("\5\0"),
        FB_TEST_SAY("10.0.0.1\0\120"),
        FB_TEST_SERVER(1, ADDRESS),
        FB_TEST_SAY("hello"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("\5\0\0\1"),
        FB_TEST_EXPECT_ANY(6),
        FB_TEST_EXPECT("hello"),
        FB_TEST_PEER(2),
        FB_TEST_SAY("\5\1\0\5\1\0\3\3a\0b\0\120"),
        FB_TEST_EXPECT("\5\0" REFUSED("\1")),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_NAME("both.test 60 A 10.0.0.2"),
        FB_TEST_NAME("both.test 60 A 10.0.0.1"),
        FB_TEST_REPLY("10.0.0.2:80", FB_TEST_REFUSES),
        FB_TEST_PEER(3),
        FB_TEST_SAY("\5\1\0\5\1\0\3\11both.test\0\120"),
        FB_TEST_EXPECT("\5\0"),
        FB_TEST_SERVER(4, ADDRESS),
        FB_TEST_SAY("hello"),
        FB_TEST_PEER(3),
        FB_TEST_EXPECT("\5\0\0\1"),
        FB_TEST_EXPECT_ANY(6),
        FB_TEST_EXPECT("hello"),
        FB_TEST_PEER(5),
        FB_TEST_SAY("\5\1\0\5\1\0\3\11none.test\0\120"),
        FB_TEST_EXPECT("\5\0" REFUSED("\4")),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(socks5("socks5;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(socks5_asks_for_a_password)
{
    static const fb_test_step script[] = {
        FB_TEST_REPLY(ADDRESS, FB_TEST_ACCEPTS),
        FB_TEST_SAY("\5\2\0\2"),
        FB_TEST_EXPECT("\5\2"),
        FB_TEST_SAY("\1\2me\6secret"),
        FB_TEST_EXPECT("\1\0"),
        FB_TEST_SAY(TO_ADDRESS),
        FB_TEST_EXPECT("\5\0\0\1"),
        FB_TEST_EXPECT_ANY(6),
        FB_TEST_PEER(1),
        FB_TEST_SAY("\5\1\2\1\2me\5secre"),
        FB_TEST_EXPECT("\5\2\1\1"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(2),
        FB_TEST_SAY("\5\1\2\1\2mE\6secret"),
        FB_TEST_EXPECT("\5\2\1\1"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(3),
        FB_TEST_SAY("\5\1\0"),
        FB_TEST_EXPECT("\5\xff"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(socks5("socks5; socks5_user me secret;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(socks5_tells_why_not)
{
    static const fb_test_step script[] = {
        FB_TEST_REPLY(ADDRESS, FB_TEST_REFUSES),
        FB_TEST_SAY("\5\1\0" TO_ADDRESS),
        FB_TEST_EXPECT("\5\0" REFUSED("\5")),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_REPLY(ADDRESS, FB_TEST_SILENT),
        FB_TEST_PEER(1),
        FB_TEST_SAY("\5\1\0" TO_ADDRESS),
        FB_TEST_EXPECT("\5\0"),
        FB_TEST_PASS(3999),
        FB_TEST_PASS(1),
        FB_TEST_EXPECT(REFUSED("\4")),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(2),
        FB_TEST_SAY("\5\1\0\5\2\0\1"), /* BIND */
        FB_TEST_EXPECT("\5\0"),
        FB_TEST_SAY("\12\0\0\1\0\120"),
        FB_TEST_EXPECT(REFUSED("\7")),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(3),
        FB_TEST_SAY("\5\1\0\5\1\0\7x"),
        FB_TEST_EXPECT("\5\0" REFUSED("\10")),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(4),
        FB_TEST_SAY("\4\1\0\120\12\0\0\1\0"), /* SOCKS 4 */
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(socks5("socks5; socks5_connect_timeout 4s;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A local address missing on this host. */
START_TEST(socks5_without_its_address)
{
    static const fb_test_step script[] = {
        FB_TEST_REPLY(ADDRESS, FB_TEST_ACCEPTS),
        FB_TEST_REPLY(ADDRESS6, FB_TEST_ACCEPTS),
        FB_TEST_SAY("\5\1\0" TO_ADDRESS),
        FB_TEST_EXPECT("\5\0" REFUSED("\1")),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_SAY("\5\1\0" TO_ADDRESS6),
        FB_TEST_EXPECT("\5\0"),
        FB_TEST_EXPECT("\5\0\0\4"),
        FB_TEST_EXPECT_ANY(18),
    };

    ck_assert_int_eq(socks5("socks5; socks5_local 203.0.113.1;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Every step has a timeout, for bytes in any pieces, and so has the silence before it. */
START_TEST(socks5_does_not_wait_for_ever)
{
    static const fb_test_step script[] = {
        FB_TEST_PASS(60000), /* first_byte_timeout */
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_SAY("\5\1\2"),
        FB_TEST_EXPECT("\5\2"),
        FB_TEST_PASS(10000),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(2),
        FB_TEST_SAY("\5\1\2\1\2m"),
        FB_TEST_EXPECT("\5\2"),
        FB_TEST_PASS(9999),
        FB_TEST_SAY("e"),
        FB_TEST_PASS(1),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(socks5("socks5; socks5_user me secret;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, socks5_connects);
    tcase_add_test(tcase, socks5_connects_to_ipv6);
    tcase_add_test(tcase, socks5_resolves_names);
    tcase_add_test(tcase, socks5_asks_for_a_password);
    tcase_add_test(tcase, socks5_tells_why_not);
    tcase_add_test(tcase, socks5_without_its_address);
    tcase_add_test(tcase, socks5_does_not_wait_for_ever);
}

TEST_MAIN("socks5", add_tests)
