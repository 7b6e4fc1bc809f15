/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversations with several workers in one simulated machine, in all variants of the kit. */
#include "support/test.h"

#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_council, fb_protocol_watcher;

/* Steps of two clients at three workers, in all variants: cut, slow, with trouble, with deaths,
 * lost messages, and allocations that fail, those of the start included. */
START_TEST(conversations_are_of_several_workers)
{
    static const fb_test_step orders[] = {
        FB_TEST_CLIENT(0, 0),
        FB_TEST_SAY("all nobody listens\n"),
        FB_TEST_EXPECT_WITHIN("all 0 handled, 2 declined, 0 unknown, 0 busy\n", 100),
        FB_TEST_CLIENT(1, 2),
        FB_TEST_SAY("all hello\n"),
        FB_TEST_EXPECT_WITHIN("all 2 handled, 0 declined, 0 unknown, 0 busy\n", 100),
        FB_TEST_CLIENT(0, 0),
        FB_TEST_EXPECT_ANY(29), /* "got hello from 8020000000000\n" */
        FB_TEST_LINK(0, FB_TEST_EVERY, FB_TEST_BUSY),
        FB_TEST_SAY("all hello\n"),
        FB_TEST_EXPECT_WITHIN("all 0 handled, 0 declined, 0 unknown, 2 busy\n", 100),
    };
    const fb_test_options options = { .size = sizeof(options), .server = "council;", .workers = 3 };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_council, &options, FB_TEST_SCRIPT(orders)), 0);
}
END_TEST

START_TEST(conversations_share_a_map)
{
    static const fb_test_step changes[] = {
        FB_TEST_CLIENT(0, 0),
        FB_TEST_SAY("watch\n"),
        FB_TEST_EXPECT("watching\n"),
        FB_TEST_CLIENT(1, 1),
        FB_TEST_SAY("set a\n"),
        FB_TEST_EXPECT("done\n"),
        FB_TEST_KILL(1),
        FB_TEST_EXPECT_RESET(),
        FB_TEST_CLIENT(0, 0),
        FB_TEST_EXPECT_WITHIN("+a\n", 200),
        FB_TEST_REPLACE(1),
        FB_TEST_CLIENT(2, 1),
        FB_TEST_SAY("delete a\n"),
        FB_TEST_EXPECT("done\n"),
        FB_TEST_DRAIN_WORKER(1, 1000),
        FB_TEST_EXPECT_CLOSED_WITHIN(1000),
        FB_TEST_CLIENT(0, 0),
        FB_TEST_EXPECT_WITHIN("-a\n", 200),
    };
    const fb_test_options options = { .size = sizeof(options), .server = "watcher;", .workers = 2 };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_watcher, &options, FB_TEST_SCRIPT(changes)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, conversations_are_of_several_workers);
    tcase_add_test(tcase, conversations_share_a_map);
}

TEST_MAIN("worker_scripts", add_tests)
