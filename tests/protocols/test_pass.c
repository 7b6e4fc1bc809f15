/* SPDX-License-Identifier: BSD-2-Clause */
/* The pass protocol, as seen by a client: the protocol of the second server serves it. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

extern const fb_protocol fb_protocol_pass, fb_protocol_echo, fb_protocol_return;

static const fb_protocol *const others[] = { &fb_protocol_echo, &fb_protocol_return, NULL };
static const char *const servers[] = { "echo;", "return \"$server_addr:$server_port\";",
    "pass 192.0.2.80:82;", NULL };

START_TEST(the_other_server_serves_the_client)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("hello"),
        FB_TEST_EXPECT("hello"),
        FB_TEST_SAY(" again"),
        FB_TEST_EXPECT(" again"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_EXPECT_LOG("192.0.2.80:81 200 11"),
    };
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "pass 192.0.2.80:81;",
        .protocols = others,
        .servers = servers,
        .excuse = "",
        .log_format = "$server_addr:$server_port $status $bytes_sent",
    };

    ck_assert_int_eq(fb_test_converse_with(&fb_protocol_pass, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* By way of a second server that passes the client on, or by variables. */
START_TEST(the_address_is_the_last_ones)
{
    static const char *const passing[] = { "pass 192.0.2.80:83;", "pass $server_addr:82;" };
    static const fb_test_step script[] = {
        FB_TEST_EXPECT("192.0.2.80:82"),
        FB_TEST_EXPECT_CLOSED(),
    };
    const fb_test_options options = {
        .size = sizeof(options),
        .server = passing[_i],
        .protocols = others,
        .servers = servers,
        .excuse = "",
    };

    ck_assert_int_eq(fb_test_converse_with(&fb_protocol_pass, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A server wants a second header if the parameter stands in its `listen`. */
START_TEST(every_server_reads_a_header)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("PROXY TCP4 10.0.0.1 10.0.0.9 1000 80\r\n"
                    "PROXY TCP4 10.0.0.2 10.0.0.9 1000 80\r\nhello"),
        FB_TEST_EXPECT("hello"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_EXPECT_LOG("10.0.0.2 10.0.0.2 81 200 5 5"),
    };
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "pass 192.0.2.80:81;",
        .stream = "set_real_ip_from 192.0.2.1; set_real_ip_from 10.0.0.1;",
        .listen = "proxy_protocol",
        .protocols = others,
        .servers = servers,
        .excuse = "",
        .log_format = "$proxy_protocol_addr $remote_addr $server_port $status $bytes_received "
                      "$bytes_sent",
    };

    ck_assert_int_eq(fb_test_converse_with(&fb_protocol_pass, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Clients without a target are closed, after a line. */
START_TEST(who_cannot_be_passed_is_closed)
{
    static const struct {
        const char *server, *line;
    } cases[] = {
        { "pass 192.0.2.80:$remote_port;",
            "no server listens on \"192.0.2.80:40001\", the address to pass a client to, client" },
        { "pass 192.0.2.80:80;", "a client was passed 10 times, and is to be passed to "
                                 "192.0.2.80:80: servers pass the client in a circle, client" },
        { "pass \"$pid x\";", " x\" to pass a client to: expected a port, client" },
        { "pass unix:/a$remote_addr;", "no server listens on \"unix:/a192.0.2.1\", the address" },
    };
    const fb_test_options options = {
        .size = sizeof(options), .server = cases[_i].server, .log_format = "$status $server_port"
    };
    fb_test *test = fb_test_start_with(&fb_protocol_pass, &options);
    fb_test_peer *peer = fb_test_connect(test);

    ck_assert_int_eq((int)fb_test_heard(peer).n, 0);
    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_int_eq(fb_test_was_reset(peer), 0);
    ck_assert_str_eq(fb_test_access_log(test), "500 80\n");
    ck_assert_msg(strstr(fb_test_logged(test), cases[_i].line) != NULL, "%s", fb_test_logged(test));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_other_server_serves_the_client);
    tcase_add_loop_test(tcase, the_address_is_the_last_ones, 0, 2);
    tcase_add_test(tcase, every_server_reads_a_header);
    tcase_add_loop_test(tcase, who_cannot_be_passed_is_closed, 0, 4);
}

TEST_MAIN("pass", add_tests)
