/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls about TLS, and other calls while a handshake is under way. */
#include "sdk/scripted_conn.h"

#include <string.h>

#define OTHERS "ssl_certificate a.crt; ssl_certificate_key a.key;"

static struct scripted_conn script;
static fb_test_peer *peer;
static fb_test *test;

static bool begin(void)
{
    if (!fb_test_has_tls())
        return false;
    script = (struct scripted_conn) { .n = 0 };
    test = scripted_start_client(OTHERS, &script, &peer);
    return true;
}

static void begin_handshake(void)
{
    ck_assert_int_eq(fb_can_start_tls(script.conn), 1);
    ck_assert_int_eq(fb_start_tls(script.conn, NULL), 0);
    ck_assert_int_eq(fb_can_start_tls(script.conn), 0);
    scripted_settle(test);
}

START_TEST(tls_starts_once)
{
    const fb_tls_options options = { .size = sizeof(options), .reply = { (uint8_t *)"go", 2 } };

    if (!begin())
        return;
    ck_assert_int_eq(fb_start_tls(script.conn, &options), 0);
    ck_assert_int_eq(fb_start_tls(script.conn, &options), -1);
    ck_assert_str_eq(peer_heard(peer), "go");
    ck_assert_int_eq(fb_test_tls(peer, ""), 0);
    ck_assert_int_eq(fb_start_tls(script.conn, &options), -1);
    fb_write(script.conn, "!", 1);
    scripted_settle(test);
    ck_assert_str_eq(peer_heard(peer), "go!");
    scripted_finish(&test);
}
END_TEST

/* The name in the ClientHello decides, which comes behind the call. */
START_TEST(a_certificate_may_have_variables)
{
    if (!fb_test_has_tls())
        return;
    script = (struct scripted_conn) { .n = 0 };
    test = scripted_start_client("ssl_certificate $ssl_server_name.crt; "
                                 "ssl_certificate_key $ssl_server_name.key;",
        &script, &peer);
    begin_handshake();
    ck_assert_int_eq(fb_test_tls(peer, "sni=one.tests"), 0);
    fb_write(script.conn, "!", 1);
    scripted_settle(test);
    ck_assert_str_eq(peer_heard(peer), "!");
    scripted_finish(&test);
}
END_TEST

START_TEST(a_half_may_have_ended)
{
    if (!begin())
        return;
    if (_i == 0) {
        fb_shutdown(script.conn);
    } else {
        fb_test_shut(peer);
        fb_test_run(test);
    }
    ck_assert_int_eq(fb_can_start_tls(script.conn), 0);
    ck_assert_int_eq(fb_start_tls(script.conn, NULL), -1);
    fb_close(script.conn);
    scripted_settle(test);
    scripted_finish(&test);
}
END_TEST

/* A time of the call's own, longer or shorter than the server's of 60 s. */
START_TEST(the_time_may_be_given)
{
    const fb_tls_options options = { .size = sizeof(options), .timeout = _i == 0 ? 500 : 70000 };

    if (!begin())
        return;
    ck_assert_int_eq(fb_start_tls(script.conn, &options), 0);
    scripted_settle(test);
    fb_test_pass(test, options.timeout - 1);
    ck_assert_uint_eq(script.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(script.reason, FB_TLS_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

/* No connection to a server has plain bytes before its TLS: a pipe ends both. */
START_TEST(a_pipe_is_none_within_a_handshake)
{
    struct scripted_conn server = { .n = 0 };
    fb_test_peer *other;

    if (!begin())
        return;
    other = scripted_conn_connect(test, &script, &server);
    ck_assert_int_eq(fb_can_start_tls(server.conn), 0);
    ck_assert_int_eq(fb_start_tls(server.conn, NULL), -1);
    begin_handshake();
    fb_pipe(script.conn, server.conn, NULL);
    scripted_settle(test);
    ck_assert_uint_eq(script.closings, 1);
    ck_assert_uint_eq(server.closings, 1);
    ck_assert(fb_test_is_closed(other));
    scripted_finish(&test);
}
END_TEST

/* Facts are for protocols with FB_KEEPS_TLS. */
START_TEST(facts_are_not_kept_unasked)
{
    fb_tls tls = { .size = sizeof(tls), .version = 7 };

    if (!begin())
        return;
    ck_assert_int_eq(fb_tls_info(script.conn, &tls), -1);
    begin_handshake();
    ck_assert_int_eq(fb_test_tls(peer, ""), 0);
    ck_assert_int_eq(fb_tls_info(script.conn, &tls), -1);
    ck_assert_uint_eq(tls.version, 7);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, tls_starts_once);
    tcase_add_test(tcase, a_certificate_may_have_variables);
    tcase_add_loop_test(tcase, a_half_may_have_ended, 0, 2);
    tcase_add_loop_test(tcase, the_time_may_be_given, 0, 2);
    tcase_add_test(tcase, a_pipe_is_none_within_a_handshake);
    tcase_add_test(tcase, facts_are_not_kept_unasked);
}

TEST_MAIN("sdk_tls", add_tests)
