/* SPDX-License-Identifier: BSD-2-Clause */
/* The examples in conversations: a protocol of lines, a client of servers, and a protocol with
 * lengths, memory shared by all workers and much state. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

extern const fb_protocol fb_protocol_badge, fb_protocol_upper, fb_protocol_relay, fb_protocol_resp;

/* Upper */

START_TEST(upper_answers_lines)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("hello\n"),
        FB_TEST_EXPECT("HELLO\n"),
        FB_TEST_SAY("one\n\ntwo\nthr"),
        FB_TEST_EXPECT("ONE\n\nTWO\n"),
        FB_TEST_PEER(1),
        FB_TEST_SAY("another\n"),
        FB_TEST_EXPECT("ANOTHER\n"),
        FB_TEST_PEER(0),
        FB_TEST_SAY("ee\n"),
        FB_TEST_EXPECT("THREE\n"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_upper, "upper;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(upper_limits_lines)
{
    static char much[1025];
    static const fb_test_step script[] = {
        FB_TEST_SAY("begun"),
        FB_TEST_PASS(30000),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_SAY_BYTES(much, sizeof(much)),
        FB_TEST_EXPECT_CLOSED(),
    };

    memset(much, 'x', sizeof(much));
    ck_assert_int_eq(fb_test_converse(&fb_protocol_upper, "upper;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Refused clients, and slow clients, are in the access log. */
START_TEST(upper_is_logged_with_a_status)
{
    static const fb_test_options refusing = {
        .size = sizeof(fb_test_options),
        .server = "upper; deny 192.0.2.1;",
        .log_format = "$remote_addr $status $bytes_received",
        .excuse = "access forbidden by rule",
    };
    static const fb_test_options hasty = {
        .size = sizeof(fb_test_options),
        .server = "upper; receive_min_rate 100 grace=2s;",
        .log_format = "$remote_addr $status $bytes_received",
        .excuse = "client sends too slowly",
    };
    static const fb_test_step refused[] = {
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_EXPECT_LOG("192.0.2.1 403 0"),
    };
    static const fb_test_step slow[] = {
        FB_TEST_SAY("whole\nbeg"),
        FB_TEST_EXPECT("WHOLE\n"),
        FB_TEST_PASS(2000),
        FB_TEST_SAY("un"),
        FB_TEST_PASS(51),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_EXPECT_LOG("192.0.2.1 408 11"),
    };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_upper, &refusing, FB_TEST_SCRIPT(refused)), 0);
    ck_assert_int_eq(fb_test_converse_with(&fb_protocol_upper, &hasty, FB_TEST_SCRIPT(slow)), 0);
}
END_TEST

/* Badge */

static const fb_test_options badge_options = {
    .size = sizeof(fb_test_options),
    .server = "badge $badge_name; badge_welcome \"$badge_name of $remote_addr\";",
    .excuse = "",
    .log_format = "\"$badge_name\" $status $badge_lines",
};

START_TEST(badge_asks_the_configuration)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("ann\nhel"),
        FB_TEST_EXPECT("ann of 192.0.2.1\n"),
        FB_TEST_SAY("lo\n\n"),
        FB_TEST_EXPECT("hello\n\n"),
        FB_TEST_PEER(1),
        FB_TEST_SAY("0\nhello\n"),
        FB_TEST_EXPECT("no entry for \"0\"\n"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_EXPECT_LOG("\"0\" 403 0"),
        FB_TEST_PEER(2),
        FB_TEST_SAY("\n"),
        FB_TEST_EXPECT("no entry for \"\"\n"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_EXPECT_LOG("\"\" 403 0"),
        FB_TEST_PEER(0),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_EXPECT_LOG("\"ann\" 200 2"),
    };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_badge, &badge_options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Relay */

#define ADDRESS "10.0.0.1:80"

static const char relay[] = "relay " ADDRESS "; relay_connect_timeout 5s;";

START_TEST(relay_moves_bytes)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("what the client says"),
        FB_TEST_SERVER(1, ADDRESS),
        FB_TEST_EXPECT("what the client says"),
        FB_TEST_SAY("an answer"),
        FB_TEST_SAY(", and more"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("an answer, and more"),
        FB_TEST_SHUT(),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT_END(),
        FB_TEST_SAY("the last word"),
        FB_TEST_SHUT(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("the last word"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_relay, relay, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(relay_without_a_server)
{
    static const fb_test_step script[] = {
        FB_TEST_REPLY(ADDRESS, FB_TEST_REFUSES),
        FB_TEST_SAY("is there anybody?"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_REPLY(ADDRESS, FB_TEST_SILENT),
        FB_TEST_PEER(1),
        FB_TEST_PASS(4999),
        FB_TEST_SAY("hello?"),
        FB_TEST_PASS(1),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_relay, relay, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(relay_passes_on_breaks)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("hello"),
        FB_TEST_SERVER(1, ADDRESS),
        FB_TEST_EXPECT("hello"),
        FB_TEST_RESET(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT_RESET(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_relay, relay, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Resp */

START_TEST(resp_sets_and_gets)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("*1\r\n$4\r\nPING\r\n"),
        FB_TEST_EXPECT("+PONG\r\n"),
        FB_TEST_SAY("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nv\r\nxy\r\nGET key\r\n"),
        FB_TEST_EXPECT("+OK\r\n$5\r\nv\r\nxy\r\n"),
        FB_TEST_PEER(1),
        FB_TEST_SAY("*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n*2\r\n$3\r\nGET\r\n$4\r\nkeys\r\n"),
        FB_TEST_EXPECT("$5\r\nv\r\nxy\r\n$-1\r\n"),
        FB_TEST_SAY("*2\r\n$3\r\nDEL\r\n$3\r\nkey\r\n"),
        FB_TEST_EXPECT(":1\r\n"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_resp, "resp;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A command of single bytes ends in time; a silent client waits. */
START_TEST(resp_waits_for_no_command_for_ever)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("PING\r\n"),
        FB_TEST_EXPECT("+PONG\r\n"),
        FB_TEST_PASS(30000),
        FB_TEST_SAY("PI"),
        FB_TEST_PASS(9000),
        FB_TEST_SAY("NG\r\nP"),
        FB_TEST_EXPECT("+PONG\r\n"),
        FB_TEST_PASS(9000),
        FB_TEST_SAY("I"),
        FB_TEST_PASS(999),
        FB_TEST_SAY("N"),
        FB_TEST_PASS(1),
        FB_TEST_EXPECT("-ERR the command took too long to arrive\r\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_resp, "resp;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A value set by a worker is visible to the rest, also after the worker's death. */
START_TEST(resp_is_shared)
{
    static const fb_test_step script[] = {
        FB_TEST_CLIENT(0, 0),
        FB_TEST_SAY("SET a one\r\n"),
        FB_TEST_EXPECT("+OK\r\n"),
        FB_TEST_CLIENT(1, 1),
        FB_TEST_SAY("GET a\r\n"),
        FB_TEST_EXPECT("$3\r\none\r\n"),
        FB_TEST_KILL(0),
        FB_TEST_SAY("SET a two\r\nGET a\r\n"),
        FB_TEST_EXPECT("+OK\r\n$3\r\ntwo\r\n"),
        FB_TEST_REPLACE(0),
        FB_TEST_CLIENT(2, 0),
        FB_TEST_SAY("GET a\r\n"),
        FB_TEST_EXPECT("$3\r\ntwo\r\n"),
    };
    const fb_test_options options = {
        .size = sizeof(options), .server = "resp;", .workers = 2, .excuse = "-ERR"
    };

    ck_assert_int_eq(fb_test_converse_with(&fb_protocol_resp, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Servers of three protocols in one configuration. */
START_TEST(examples_live_together)
{
    static const fb_protocol *const others[] = { &fb_protocol_relay, &fb_protocol_resp, NULL };
    static const char *const servers[] = { relay, "resp;", NULL };
    static const fb_test_step script[] = {
        FB_TEST_CLIENT_OF(0, 0, 0),
        FB_TEST_SAY("hello\n"),
        FB_TEST_EXPECT("HELLO\n"),
        FB_TEST_CLIENT_OF(1, 0, 1),
        FB_TEST_SAY("hello\n"),
        FB_TEST_SERVER(2, ADDRESS),
        FB_TEST_EXPECT("hello\n"),
        FB_TEST_CLIENT_OF(3, 0, 2),
        FB_TEST_SAY("SET a one\r\n"),
        FB_TEST_EXPECT("+OK\r\n"),
    };
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "upper;",
        .protocols = others,
        .servers = servers,
        .excuse = "-ERR",
        .thorough = 1,
    };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_upper, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, upper_answers_lines);
    tcase_add_test(tcase, upper_limits_lines);
    tcase_add_test(tcase, upper_is_logged_with_a_status);
    tcase_add_test(tcase, badge_asks_the_configuration);
    tcase_add_test(tcase, relay_moves_bytes);
    tcase_add_test(tcase, relay_without_a_server);
    tcase_add_test(tcase, relay_passes_on_breaks);
    tcase_add_test(tcase, resp_sets_and_gets);
    tcase_add_test(tcase, resp_waits_for_no_command_for_ever);
    tcase_add_test(tcase, resp_is_shared);
    tcase_add_test(tcase, examples_live_together);
}

TEST_MAIN("examples", add_tests)
