/* SPDX-License-Identifier: BSD-2-Clause */
/* The examples that connect to servers of their clients' choice, or share what they have, in
 * conversations. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <stdio.h>
#include <string.h>

extern const fb_protocol fb_protocol_chat;

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

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, chat_reaches_all_or_one);
}

TEST_MAIN("more_examples", add_tests)
