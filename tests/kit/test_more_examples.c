/* SPDX-License-Identifier: BSD-2-Clause */
/* The examples that connect to servers of their clients' choice, or share what they have, in
 * conversations. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <stdio.h>
#include <string.h>

extern const fb_protocol fb_protocol_balance, fb_protocol_chat, fb_protocol_knock;

/* Balance */

#define ONE "10.0.0.1:80"
#define OTHER "10.0.0.2:80"

START_TEST(balance_goes_on_with_the_next)
{
    static const fb_test_step script[] = {
        FB_TEST_REPLY(ONE, FB_TEST_REFUSES),
        FB_TEST_SAY("hello"),
        FB_TEST_SERVER(1, OTHER),
        FB_TEST_EXPECT("hello"),
        FB_TEST_SAY("answer"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("answer"),
        FB_TEST_REPLY(OTHER, FB_TEST_REFUSES),
        FB_TEST_PEER(2),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_balance,
                         "balance " ONE " " OTHER "; balance_check 1h; balance_sticky on;",
                         FB_TEST_SCRIPT(script)),
        0);
}
END_TEST

/* Connects twenty clients, and counts those that each server gets. */
static void balance_count(fb_test *test, fb_test_server *const servers[], unsigned got[2])
{
    for (int i = 0; i < 20; i++) {
        fb_test_peer *client = fb_test_connect(test), *peer;

        fb_test_run(test);
        for (int k = 0; k < 2; k++) {
            while ((peer = fb_test_accept(servers[k])) != NULL) {
                if (fb_test_is_closed(peer))
                    continue; /* a check */
                got[k]++;
                fb_test_reset(peer);
            }
        }
        fb_test_reset(client);
    }
}

START_TEST(balance_leaves_out_who_does_not_answer)
{
    fb_test *test =
        fb_test_start(&fb_protocol_balance, "balance " ONE " " OTHER "; balance_check 5s;");
    fb_test_server *const servers[] = {
        fb_test_serve(test, ONE, FB_TEST_SILENT),
        fb_test_serve(test, OTHER, FB_TEST_ACCEPTS),
    };
    unsigned got[2] = { 0, 0 };

    ck_assert_ptr_nonnull(
        strstr(fb_test_logged(test), "2 servers are balanced, the first is " ONE));
    fb_test_pass(test, 2001); /* the first check, and its time-out */
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "does not answer: Connection timed out"));
    balance_count(test, servers, got);
    ck_assert_uint_eq(got[1], 20);
    fb_test_serve(test, ONE, FB_TEST_ACCEPTS);
    fb_test_pass(test, 5000);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "the server answers again"));
    balance_count(test, servers, got);
    ck_assert_uint_gt(got[0], 0);
    ck_assert_uint_gt(got[1], 20);
    ck_assert_uint_eq(got[0] + got[1], 40);
    fb_test_drain(test, 0);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Chat */

START_TEST(chat_reaches_all_or_one)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("ann\n"),
        FB_TEST_PASS(50),
        FB_TEST_PEER(1),
        FB_TEST_SAY("ann\n"),
        FB_TEST_EXPECT("- choose another name\n"),
        FB_TEST_PASS(50),
        FB_TEST_SAY("bob\n"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("bob comes\n"),
        FB_TEST_PEER(2),
        FB_TEST_SAY("cat\n"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("cat comes\n"),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT("cat comes\n"),
        FB_TEST_PASS(50),
        FB_TEST_SAY("hello\033all\r\n@ann but not\n@dan nobody\n"),
        FB_TEST_PASS(150),
        FB_TEST_EXPECT("- not told\n"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("bob: hello?all\nbob to you: but not\n"),
        FB_TEST_PEER(3),
        FB_TEST_PASS(30000), /* without a name */
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(2),
        FB_TEST_EXPECT("bob: hello?all\n"),
        FB_TEST_SAY("/who\n"),
        FB_TEST_EXPECT_ANY(18),
        FB_TEST_EXPECT("- worker 1 of 1, which knows of 0 others\n"),
        FB_TEST_SHUT(),
        FB_TEST_PASS(50),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("cat goes\n"),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT("cat goes\n"),
        FB_TEST_DRAIN(0),
        FB_TEST_EXPECT("- come again\n"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("- come again\n"),
        FB_TEST_EXPECT_CLOSED(),
    };
    const fb_test_options options = { .size = sizeof(options), .server = "chat;", .excuse = "" };

    ck_assert_int_eq(fb_test_converse_with(&fb_protocol_chat, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Knock */

/* Names that are known, that are not, and that take the place of one that nobody answers. */
START_TEST(knock_tells_who_answers)
{
    static const fb_test_step script[] = {
        FB_TEST_NAME("one.test 60 A 10.0.0.1"),
        FB_TEST_NAME("other.test 60 A 10.0.0.2"),
        FB_TEST_REPLY(OTHER, FB_TEST_REFUSES),
        FB_TEST_SAY("\10one.test"),
        FB_TEST_SERVER(1, ONE),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("\224\0"
                       "10.0.0.1:80: answers"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(2),
        FB_TEST_NAMES(FB_TEST_SILENT),
        FB_TEST_SAY("\11none.test\12other.test"),
        FB_TEST_NAMES(FB_TEST_ACCEPTS),
        FB_TEST_EXPECT("\237\0"
                       "10.0.0.2:80: Connection refused"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(3),
        FB_TEST_SAY("\3a\0b"),
        FB_TEST_EXPECT("\237\0"
                       "error: no name can be looked up"),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_options options = {
        .size = sizeof(options), .server = "knock 80;", .excuse = ""
    };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_knock, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, balance_goes_on_with_the_next);
    tcase_add_test(tcase, balance_leaves_out_who_does_not_answer);
    tcase_add_test(tcase, chat_reaches_all_or_one);
    tcase_add_test(tcase, knock_tells_who_answers);
}

TEST_MAIN("more_examples", add_tests)
