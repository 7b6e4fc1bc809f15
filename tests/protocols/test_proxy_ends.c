/* SPDX-License-Identifier: BSD-2-Clause */
/* How proxied sessions end: what reaches whom, and what the access log says of it. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

extern const fb_protocol fb_protocol_proxy;

#define LOG_FORMAT "$status $bytes_received $bytes_sent"
#define SERVER "10.0.0.1:80"

static fb_test *start(const char *server)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = server, .log_format = LOG_FORMAT
    };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

static void expect_heard(fb_test_peer *peer, const char *text)
{
    fb_bytes heard = fb_test_heard(peer);

    ck_assert_uint_eq(heard.n, strlen(text));
    ck_assert_mem_eq(heard.p, text, heard.n);
    fb_test_forget(peer);
}

START_TEST(a_reset_takes_nothing_that_had_come_before)
{
    bool resets = _i == 1;
    fb_test *test =
        start(resets ? "proxy_pass " SERVER "; proxy_reset on;" : "proxy_pass " SERVER ";");
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_says(client, "GET");
    peer = fb_test_accept(server);
    expect_heard(peer, "GET");
    fb_test_take(client, 0);
    fb_test_says(peer, "a reply ");
    fb_test_run(test); /* the client does not take it: the server is not read now */
    fb_test_says(peer, "of two pieces");
    fb_test_reset(peer);
    fb_test_says(client, "QUIT"); /* sending finds the reset */
    fb_test_run(test);
    fb_test_take(client, SIZE_MAX);
    expect_heard(client, "a reply of two pieces");
    ck_assert_int_eq(fb_test_was_reset(client), resets);
    ck_assert_str_eq(fb_test_access_log(test), "200 7 21\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_reset_takes_nothing_that_had_come_before, 0, 2);
}

TEST_MAIN("proxy ends", add_tests)
