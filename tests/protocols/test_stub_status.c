/* SPDX-License-Identifier: BSD-2-Clause */
/* The stub_status protocol, as a client sees it. */
#include "support/test.h"

#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_stub_status;

START_TEST(sends_the_statistics_and_closes)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT("Active connections: 1\nserver accepts handled requests\n 1 1 1\n"
                       "Reading: 0 Writing: 0 Waiting: 1\n"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT("Active connections: 1\nserver accepts handled requests\n 2 2 2\n"
                       "Reading: 0 Writing: 0 Waiting: 1\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(
        fb_test_converse(&fb_protocol_stub_status, "stub_status;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, sends_the_statistics_and_closes);
}

TEST_MAIN("stub_status", add_tests)
