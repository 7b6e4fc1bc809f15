/* SPDX-License-Identifier: BSD-2-Clause */
/* The return protocol, from a client's side. */
#include "support/test.h"

#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_return;

START_TEST(sends_its_text_and_closes)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT("gone fishing\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_return, "return \"gone fishing\\n\";",
                         FB_TEST_SCRIPT(script)),
        0);
}
END_TEST

/* A close with unread input would take the text away from a slow client. */
START_TEST(who_speaks_first_gets_it_too)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("GET / HTTP/1.0\r\n\r\n"),
        FB_TEST_EXPECT("no"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(
        fb_test_converse(&fb_protocol_return, "return no;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(variables_are_replaced)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT("you are 192.0.2.1, here is 192.0.2.80:80"),
        FB_TEST_EXPECT_CLOSED(),
    };
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "return \"you are $remote_addr, here is ${server_addr}:$server_port\";",
        .excuse = "",
    };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_return, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(a_text_may_be_empty)
{
    static const fb_test_step script[] = { FB_TEST_EXPECT_CLOSED() };

    ck_assert_int_eq(
        fb_test_converse(&fb_protocol_return, "return \"\";", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, sends_its_text_and_closes);
    tcase_add_test(tcase, who_speaks_first_gets_it_too);
    tcase_add_test(tcase, variables_are_replaced);
    tcase_add_test(tcase, a_text_may_be_empty);
}

TEST_MAIN("return", add_tests)
