/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest lifetime of a session, and the lowest rate of its messages. */
#include "sdk/scripted_conn.h"

#include <string.h>

#define LIFETIME "session_lifetime 10s jitter=0 grace=5s; idle_timeout off;"
#define RATE "receive_min_rate 100 grace=2s; idle_timeout off;"
#define CROWD 20

static struct scripted_conn script;
static fb_test_peer *peer;

static fb_test *start_with(const char *directives)
{
    return scripted_start_client(directives, &script, &peer);
}

static void check_over(fb_test *test, fb_reason reason)
{
    ck_assert_uint_eq(script.closings, 1);
    ck_assert_int_eq(script.reason, reason);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "reason: its lifetime is over"));
}

START_TEST(a_session_is_asked_and_then_ended)
{
    fb_test *test = start_with(LIFETIME);

    for (int i = 0; i < 9; i++) { /* no traffic extends it */
        fb_test_pass(test, 1000);
        fb_test_says(peer, "here");
        fb_test_run(test);
    }
    fb_test_pass(test, 999);
    ck_assert_uint_eq(script.drainings, 0);
    fb_test_pass(test, 1);
    ck_assert_uint_eq(script.drainings, 1);
    ck_assert_uint_eq(script.deadline, 5000);
    fb_test_pass(test, 4999);
    ck_assert_uint_eq(script.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_uint_eq(script.drainings, 1);
    check_over(test, FB_DRAINED);
    scripted_finish(&test);
}
END_TEST

START_TEST(an_idle_session_is_closed)
{
    fb_test *test = start_with(LIFETIME);

    if (_i == 0)
        fb_set_idle(script.conn, 1);
    fb_test_pass(test, 10000);
    ck_assert_uint_eq(script.drainings, _i == 1);
    if (_i == 1) { /* once it has become idle */
        fb_set_idle(script.conn, 1);
        fb_test_pass(test, 500);
    }
    fb_test_shut(peer);
    fb_test_run(test);
    check_over(test, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_protocol_that_ends_has_its_own_reason)
{
    fb_test *test = start_with(LIFETIME);

    fb_test_pass(test, 10000);
    fb_close(script.conn);
    scripted_settle(test);
    fb_test_shut(peer);
    fb_test_run(test);
    ck_assert_int_eq(script.reason, FB_FINISHED);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "reason: finished"));
    scripted_finish(&test);
}
END_TEST

START_TEST(a_pipe_ends_too)
{
    fb_test *test = start_with(LIFETIME);
    struct scripted_conn to = { 0 };

    scripted_conn_connect(test, &script, &to);
    fb_pipe(script.conn, to.conn, NULL);
    scripted_settle(test);
    fb_test_pass(test, 14999);
    ck_assert_uint_eq(script.closings + script.drainings, 0);
    fb_test_pass(test, 1);
    ck_assert_uint_eq(script.closings + to.closings, 2);
    check_over(test, FB_DRAINED);
    scripted_finish(&test);
}
END_TEST

/* A client that does not take the last output has no longer than the grace. */
START_TEST(a_session_that_closes_ends_too)
{
    fb_test *test = start_with(LIFETIME);

    fb_test_take(peer, 0);
    fb_write(script.conn, "bye", 3);
    if (_i == 0)
        fb_close(script.conn);
    else
        fb_set_idle(script.conn, 1);
    scripted_settle(test);
    fb_test_pass(test, 14999);
    ck_assert_uint_eq(script.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_uint_eq(script.drainings, 0);
    check_over(test, FB_DRAINED);
    scripted_finish(&test);
}
END_TEST

/* Sessions begun together end at different times, none after the lifetime. */
START_TEST(jitter_spreads_the_ends)
{
    fb_test *test = scripted_start_with("session_lifetime 10s jitter=4s grace=1s;");
    static struct scripted_conn all[CROWD];
    unsigned told, most = 0, before = 0;

    for (unsigned i = 0; i < CROWD; i++)
        scripted_conn_open(test, &all[i]);
    for (unsigned ms = 0; ms < 10000; ms += 500) {
        fb_test_pass(test, 500);
        told = 0;
        for (unsigned i = 0; i < CROWD; i++)
            told += all[i].drainings;
        ck_assert(ms >= 5500 || told == 0);
        most = told - before > most ? told - before : most;
        before = told;
    }
    ck_assert_uint_eq(before, CROWD);
    ck_assert_uint_lt(most, CROWD / 4);
    fb_test_pass(test, 1000);
    scripted_finish(&test);
}
END_TEST

/* Says the first byte of a message, which the protocol leaves until there is more. */
static void begin_message(fb_test *test)
{
    script.data = scripted_leave_input;
    fb_test_says(peer, "x");
    fb_test_run(test);
}

START_TEST(a_slow_message_ends_the_session)
{
    fb_test *test = start_with(RATE);

    begin_message(test);
    for (int i = 0; i < 4; i++) { /* five bytes are worth 50 ms */
        fb_test_pass(test, 500);
        ck_assert_uint_eq(script.closings, 0);
        fb_test_says(peer, "x");
        fb_test_run(test);
    }
    fb_test_pass(test, 50);
    ck_assert_uint_eq(script.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(script.reason, FB_TIMED_OUT);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "client sends too slowly: 5 bytes of a "));
    scripted_finish(&test);
}
END_TEST

START_TEST(a_message_that_goes_on_is_awaited)
{
    static const char hundred[] = "0123456789012345678901234567890123456789012345678901234567890123"
                                  "456789012345678901234567890123456789";
    fb_test *test = start_with(RATE);

    script.data = scripted_leave_input;
    for (int i = 0; i < 10; i++) {
        fb_test_says(peer, hundred);
        fb_test_run(test);
        fb_test_pass(test, 1000);
    }
    ck_assert_uint_eq(script.closings, 0);
    script.data = NULL; /* whole: silence is no fault now */
    fb_test_says(peer, "end");
    fb_test_run(test);
    fb_test_pass(test, 60000);
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_client_that_is_not_read_is_not_slow)
{
    fb_test *test = start_with(RATE);

    begin_message(test);
    fb_stop(script.conn);
    scripted_settle(test);
    fb_test_pass(test, 30000);
    ck_assert_uint_eq(script.closings, 0);
    fb_resume(script.conn);
    scripted_settle(test);
    fb_test_pass(test, 2500);
    ck_assert_int_eq(script.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

/* A part of an awaited message goes to the opposite end, wherever the pipe was made. */
START_TEST(a_client_that_is_piped_is_not_slow)
{
    fb_test *test = start_with(RATE);
    struct scripted_conn to = { 0 };

    script.data = scripted_leave_input;
    fb_test_says(peer, "x");
    fb_test_run(test);
    scripted_conn_connect(test, &script, &to);
    fb_pipe(script.conn, to.conn, NULL);
    scripted_settle(test);
    fb_test_pass(test, 60000);
    ck_assert_uint_eq(script.closings + to.closings, 0);
    fb_test_says(peer, "y");
    fb_test_pass(test, 60000);
    ck_assert_uint_eq(script.closings + to.closings, 0);
    scripted_finish(&test);
}
END_TEST

/* The time of fb_set_receive_timeout() comes and goes, and the rate stays. */
START_TEST(beside_a_receive_timeout)
{
    fb_test *test = start_with(RATE);

    fb_set_receive_timeout(script.conn, 1000);
    fb_set_receive_timeout(script.conn, 0);
    fb_test_pass(test, 5000);
    ck_assert_uint_eq(script.closings, 0);
    begin_message(test);
    fb_set_receive_timeout(script.conn, 60000);
    fb_test_pass(test, 2100);
    ck_assert_int_eq(script.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_session_is_asked_and_then_ended);
    tcase_add_loop_test(tcase, an_idle_session_is_closed, 0, 2);
    tcase_add_test(tcase, a_protocol_that_ends_has_its_own_reason);
    tcase_add_test(tcase, a_pipe_ends_too);
    tcase_add_loop_test(tcase, a_session_that_closes_ends_too, 0, 2);
    tcase_add_test(tcase, jitter_spreads_the_ends);
    tcase_add_test(tcase, a_slow_message_ends_the_session);
    tcase_add_test(tcase, a_message_that_goes_on_is_awaited);
    tcase_add_test(tcase, a_client_that_is_not_read_is_not_slow);
    tcase_add_test(tcase, a_client_that_is_piped_is_not_slow);
    tcase_add_test(tcase, beside_a_receive_timeout);
}

TEST_MAIN("sdk_lifetime", add_tests)
