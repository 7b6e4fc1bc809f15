/* SPDX-License-Identifier: BSD-2-Clause */
/* The proxy with TLS to servers, of which a certificate is the name of its file: sessions, tries of
 * the next server, and health checks. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <stdio.h>
#include <string.h>

extern const fb_protocol fb_protocol_proxy;

#define SERVER "10.0.0.1:443"
#define OTHER "10.0.0.2:443"
#define TLS                                                                                        \
    "proxy_ssl on; proxy_ssl_name one.test; proxy_ssl_verify on; "                                 \
    "proxy_ssl_trusted_certificate one.test.crt; "
#define LOG_FORMAT                                                                                 \
    "$status $session_end $bytes_received $bytes_sent $upstream_addr $upstream_bytes_received "    \
    "$upstream_bytes_sent"

static fb_test *start(const char *server, const char *stream)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = server,
        .stream = stream,
        .log_format = LOG_FORMAT,
    };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

static void expect_logged(fb_test *test, const char *text)
{
    ck_assert_msg(strstr(fb_test_logged(test), text) != NULL, "%s", fb_test_logged(test));
}

static void expect_heard(fb_test_peer *peer, const char *text)
{
    fb_bytes heard = fb_test_heard(peer);

    ck_assert_uint_eq(heard.n, strlen(text));
    ck_assert_mem_eq(heard.p, text, heard.n);
    fb_test_forget(peer);
}

static void shut(fb_test *test, fb_test_peer *peer)
{
    fb_test_shut(peer);
    fb_test_run(test);
}

/* ---- Sessions ---- */

/* Accepts at the server, and shakes hands as one.test. */
static fb_test_peer *accept_secured(fb_test_server *server)
{
    fb_test_peer *peer = fb_test_accept(server);

    ck_assert_ptr_nonnull(peer);
    ck_assert_int_eq(fb_test_tls(peer, "cert=one.test.crt"), 0);
    return peer;
}

START_TEST(bytes_move_both_ways)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "ssl_certificate a.crt; ssl_certificate_key a.key; proxy_pass " SERVER "; " TLS,
        .listen = _i == 1 ? "ssl" : NULL,
        .log_format = LOG_FORMAT,
    };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    if (_i == 1)
        ck_assert_int_eq(fb_test_tls(client, "sni=any.test"), 0);
    fb_test_says(client, "early");
    peer = accept_secured(server);
    expect_heard(peer, "early");
    fb_test_key_update(peer, 1);
    fb_test_says(peer, "reply");
    expect_heard(client, "reply");
    fb_test_says(client, " and more");
    expect_heard(peer, " and more");
    shut(test, peer);
    ck_assert_int_eq(fb_test_has_ended(client), 1);
    shut(test, client);
    ck_assert_str_eq(fb_test_access_log(test), "200 upstream_eof 14 5 " SERVER " 5 14\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_half_may_end_first)
{
    fb_test *test = start("proxy_pass " SERVER "; proxy_half_close on; " TLS, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_says(client, "question");
    peer = accept_secured(server);
    shut(test, client);
    expect_heard(peer, "question");
    ck_assert_int_eq(fb_test_has_ended(peer), 1);
    ck_assert_int_eq(fb_test_is_closed(client), 0);
    fb_test_says(peer, "answer");
    shut(test, peer);
    expect_heard(client, "answer");
    ck_assert_int_eq(fb_test_is_closed(client), 1);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_header_goes_in_plain)
{
    fb_test *test = start("proxy_pass " SERVER "; proxy_protocol on; " TLS, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_says(client, "early");
    peer = accept_secured(server);
    ck_assert_uint_gt(fb_test_heard(peer).n, 6 + 5);
    ck_assert_mem_eq(fb_test_heard(peer).p, "PROXY ", 6);
    ck_assert_mem_eq(fb_test_heard(peer).p + fb_test_heard(peer).n - 7, "\r\nearly", 7);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_server_may_be_another)
{
    fb_test *test = start("proxy_pass " SERVER "; " TLS, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_says(client, "secret");
    peer = fb_test_accept(server);
    fb_test_tls(peer, "cert=two.test.crt");
    fb_test_run(test);
    expect_heard(peer, "");
    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_int_eq(fb_test_has_ended(client), 1);
    shut(test, client);
    ck_assert_str_eq(fb_test_access_log(test), "502 upstream_tls_failed 0 0 " SERVER " 0 0\n");
    expect_logged(test, "[error] *1 upstream SSL certificate verify error: (18:self-signed "
                        "certificate) while SSL handshaking to upstream, client: 192.0.2.1, "
                        "server: 192.0.2.80:80, upstream: \"" SERVER "\"");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(the_keeper_may_be_late)
{
    fb_test *test = start("proxy_pass " SERVER "; " TLS, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_keeper(test, FB_TEST_KEEPER_LATE);
    fb_test_says(client, "early");
    fb_test_pass(test, 100);
    if (_i == 1) {
        peer = fb_test_accept(server);
        ck_assert_ptr_nonnull(peer);
        fb_test_reset(client);
        fb_test_pass(test, 1000);
        ck_assert_int_eq(fb_test_is_closed(peer), 1);
        fb_test_keeper(test, FB_TEST_KEEPER_SERVES);
        fb_test_run(test);
        expect_heard(peer, "");
    } else {
        fb_test_keeper(test, FB_TEST_KEEPER_SERVES);
        fb_test_run(test);
        peer = accept_secured(server);
        expect_heard(peer, "early");
    }
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* ---- Tries ---- */

#define GROUP "upstream group { server " SERVER "; server " OTHER "; } "

START_TEST(the_next_server_is_tried)
{
    fb_test *test = start("proxy_pass group; " TLS, GROUP);
    fb_test_server *first = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_server *second = fb_test_serve(test, OTHER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_says(client, "early");
    peer = fb_test_accept(first);
    if (_i == 0) {
        fb_test_tls(peer, "cert=two.test.crt");
    } else if (_i == 1) {
        fb_test_says(peer, "220 plain.test ESMTP\r\n");
        fb_test_shut(peer);
    } else if (_i == 2) {
        fb_test_keeper(test, FB_TEST_KEEPER_LOST);
    } else {
        fb_test_pass(test, 60000);
    }
    fb_test_run(test);
    peer = fb_test_accept(second);
    ck_assert_ptr_nonnull(peer);
    ck_assert_int_eq(fb_test_tls(peer, "cert=one.test.crt"), 0);
    fb_test_run(test);
    ck_assert_uint_eq(fb_test_heard(peer).n, 5);
    fb_test_says(peer, "reply");
    fb_test_shut(peer);
    fb_test_run(test);
    fb_test_shut(client);
    fb_test_run(test);
    ck_assert_str_eq(
        fb_test_access_log(test), "200 upstream_eof 5 5 " SERVER ", " OTHER " 0, 5 0, 5\n");
    expect_logged(test, "while SSL handshaking to upstream, client: 192.0.2.1, server: "
                        "192.0.2.80:80, upstream: \"" SERVER "\"");
    ck_assert_int_eq(
        strstr(fb_test_logged(test), "upstream server temporarily disabled") != NULL, _i != 2);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* ---- Health checks ---- */

#define CHECKED "upstream one.test { zone one 32k; server " SERVER "; } "

START_TEST(checks_shake_hands)
{
    fb_test *test = start("proxy_pass one.test; health_check interval=5s; proxy_ssl on; "
                          "proxy_ssl_verify on; proxy_ssl_trusted_certificate one.test.crt;",
        CHECKED);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *peer;

    fb_test_pass(test, 5000);
    peer = fb_test_accept(server);
    ck_assert_ptr_nonnull(peer);
    ck_assert_int_eq(fb_test_is_closed(peer), 0);
    ck_assert_int_eq(fb_test_tls(peer, _i == 0 ? "cert=one.test.crt" : "cert=two.test.crt"), 0);
    fb_test_run(test);
    fb_test_shut(peer);
    fb_test_run(test);
    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_int_eq(strstr(fb_test_logged(test), "unhealthy") != NULL, _i);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A server that connects late, and then says nothing. */
START_TEST(a_check_has_one_time_for_all)
{
    fb_test *test = start(
        "proxy_pass one.test; health_check interval=5s; health_check_timeout 2s; " TLS, CHECKED);

    fb_test_serve(test, SERVER, FB_TEST_SILENT);
    fb_test_pass(test, 1500);
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_pass(test, 400);
    ck_assert_ptr_nonnull(fb_test_accept(fb_test_serve(test, SERVER, FB_TEST_ACCEPTS)));
    ck_assert_ptr_null(strstr(fb_test_logged(test), "unhealthy"));
    fb_test_pass(test, 200);
    expect_logged(test, "unhealthy");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    if (!HAVE_OPENSSL)
        return;
    tcase_add_loop_test(tcase, bytes_move_both_ways, 0, 2);
    tcase_add_test(tcase, a_half_may_end_first);
    tcase_add_test(tcase, a_header_goes_in_plain);
    tcase_add_test(tcase, a_server_may_be_another);
    tcase_add_loop_test(tcase, the_keeper_may_be_late, 0, 2);
    tcase_add_loop_test(tcase, the_next_server_is_tried, 0, 4);
    tcase_add_loop_test(tcase, checks_shake_hands, 0, 2);
    tcase_add_test(tcase, a_check_has_one_time_for_all);
}

TEST_MAIN("proxy tls", add_tests)
