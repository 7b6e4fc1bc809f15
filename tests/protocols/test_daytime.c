/* SPDX-License-Identifier: BSD-2-Clause */
/* The daytime protocol, from a client's side. */
#include "support/test.h"

#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_daytime;

START_TEST(sends_the_time_and_closes)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT("Saturday, November 21, 2026 09:30:00-UTC\r\n"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PASS(14 * 3600 * 1000 + 30 * 60 * 1000),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT("Sunday, November 22, 2026 00:00:00-UTC\r\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_daytime, "daytime;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, sends_the_time_and_closes);
}

TEST_MAIN("daytime", add_tests)
