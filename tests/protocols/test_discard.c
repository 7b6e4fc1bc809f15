/* SPDX-License-Identifier: BSD-2-Clause */
/* The discard protocol, from a client's side. */
#include "support/test.h"

#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_discard;

START_TEST(takes_everything_and_says_nothing)
{
    static const uint8_t much[70000];
    static const fb_test_step script[] = {
        FB_TEST_SAY("one"),
        FB_TEST_SAY("two"),
        FB_TEST_SAY_BYTES(much, sizeof(much)),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };

    fb_test *test = fb_test_start(&fb_protocol_discard, "discard;");
    fb_test_peer *peer = fb_test_connect(test);

    fb_test_say(peer, much, sizeof(much));
    ck_assert_uint_eq(fb_test_heard(peer).n, 0);
    ck_assert(!fb_test_has_ended(peer));
    ck_assert_int_eq(fb_test_end(&test), 0);
    ck_assert_int_eq(fb_test_converse(&fb_protocol_discard, "discard;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, takes_everything_and_says_nothing);
}

TEST_MAIN("discard", add_tests)
