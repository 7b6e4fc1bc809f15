// SPDX-License-Identifier: BSD-2-Clause
// The test kit in C++17: conversations with cxx_upper.cc, of one worker and of two.
#include <forkbeard/test.h>

extern "C" const fb_protocol fb_protocol_cxx_upper;

int main()
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("hello\n"),
        FB_TEST_EXPECT("HELLO\n"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_step workers[] = {
        FB_TEST_LINK(FB_TEST_EVERY, 0, FB_TEST_LATE),
        FB_TEST_CLIENT(0, 0),
        FB_TEST_SAY("hello\n"),
        FB_TEST_EXPECT_WITHIN("HELLO\n", 10),
        FB_TEST_CLIENT_OF(1, 1, 0),
        FB_TEST_SAY("hello\n"),
        FB_TEST_EXPECT("HELLO\n"),
        FB_TEST_KILL(0),
        FB_TEST_REPLACE(0),
        FB_TEST_DRAIN_WORKER(1, 1000),
        FB_TEST_EXPECT_CLOSED_WITHIN(2000),
    };
    fb_test_options options = {};
    int failures = fb_test_converse(&fb_protocol_cxx_upper, "cxx_upper;", FB_TEST_SCRIPT(script));

    options.size = sizeof(options);
    options.server = "cxx_upper;";
    options.workers = 2;
    failures += fb_test_converse_with(&fb_protocol_cxx_upper, &options, FB_TEST_SCRIPT(workers));
    return failures != 0;
}
