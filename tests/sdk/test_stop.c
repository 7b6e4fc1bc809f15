/* SPDX-License-Identifier: BSD-2-Clause */
/* Stopped connections: the events noticed of the peers. */
#include "sdk/scripted_conn.h"

#include <string.h>

static struct scripted_conn script;
static fb_test_peer *peer;

static size_t stop_and_leave(struct scripted_conn *a, fb_bytes in)
{
    fb_stop(a->conn);
    return in.n / 2;
}

/* A stopped client: between messages, or within `data`, with input left. */
static fb_test *start_stopped(bool with_input)
{
    fb_test *test = scripted_start();

    script = (struct scripted_conn) { .data = stop_and_leave, .eof = scripted_ignore_eof };
    peer = scripted_conn_open(test, &script);
    if (with_input)
        fb_test_says(peer, "a request");
    else
        fb_stop(script.conn);
    scripted_settle(test);
    return test;
}

START_TEST(a_broken_connection_ends_at_once)
{
    fb_test *test = start_stopped(_i % 2 == 1);

    if (_i / 2 == 1)
        fb_test_says(peer, "input that nobody reads");
    fb_test_run(test);
    ck_assert_uint_eq(script.closings, 0);
    fb_test_reset(peer);
    fb_test_run(test);
    ck_assert_uint_eq(script.closings, 1);
    ck_assert_int_eq(script.reason, FB_RESET);
    ck_assert_uint_eq(script.eofs, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(the_end_of_a_half_waits)
{
    fb_test *test = start_stopped(_i == 1);

    fb_test_says(peer, "more");
    fb_test_shut(peer);
    fb_test_pass(test, 1000);
    ck_assert_uint_eq(script.closings + script.eofs, 0);
    script.data = NULL;
    fb_resume(script.conn);
    scripted_settle(test);
    ck_assert_uint_eq(script.eofs, 1);
    fb_close(script.conn);
    scripted_settle(test);
    ck_assert_int_eq(script.reason, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

/* A half that has ended, and then a reset: output would not arrive any more. */
START_TEST(a_reset_behind_the_end_of_a_half)
{
    fb_test *test = start_stopped(false);

    fb_resume(script.conn);
    fb_test_shut(peer);
    fb_test_run(test);
    fb_write(script.conn, "reply", 5);
    fb_test_reset(peer);
    scripted_settle(test);
    ck_assert_int_eq(script.reason, FB_RESET);
    scripted_finish(&test);
}
END_TEST

START_TEST(so_does_one_to_a_server)
{
    fb_test *test = start_stopped(false);
    struct scripted_conn to = { 0 };
    fb_test_peer *server = scripted_conn_connect(test, &script, &to);

    fb_stop(to.conn);
    fb_test_reset(server);
    fb_test_run(test);
    ck_assert_int_eq(to.reason, FB_RESET);
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

static int stop_when_opened(struct scripted_conn *a)
{
    fb_stop(a->conn);
    return 0;
}

/* A client stopped before the loop has watched the connection. */
START_TEST(so_does_one_stopped_when_opened)
{
    fb_test *test = scripted_start();

    script = (struct scripted_conn) { .opened = stop_when_opened };
    peer = scripted_conn_open(test, &script);
    fb_test_says(peer, "input");
    fb_test_run(test);
    ck_assert_uint_eq(script.datas, 0);
    if (_i == 0) {
        fb_test_reset(peer);
        fb_test_run(test);
        ck_assert_int_eq(script.reason, FB_RESET);
    } else {
        fb_resume(script.conn);
        scripted_settle(test);
        ck_assert_str_eq(script.last, "input");
    }
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_broken_connection_ends_at_once, 0, 4);
    tcase_add_loop_test(tcase, the_end_of_a_half_waits, 0, 2);
    tcase_add_test(tcase, a_reset_behind_the_end_of_a_half);
    tcase_add_test(tcase, so_does_one_to_a_server);
    tcase_add_loop_test(tcase, so_does_one_stopped_when_opened, 0, 2);
}

TEST_MAIN("sdk_stop", add_tests)
