/* SPDX-License-Identifier: BSD-2-Clause */
/* The timeout of a silent peer, and timeouts of any length. */
#include "sdk/scripted_conn.h"

#include <string.h>

static struct scripted_conn script;
static fb_test_peer *peer;

static fb_test *start_with(const char *directives)
{
    return scripted_start_client(directives, &script, &peer);
}

/* Passes the timeout while only we send, and finds the connection open. */
static void pass_talking(fb_test *test, uint64_t ms)
{
    for (; ms > 0; ms--) {
        fb_write(script.conn, "x", 1);
        scripted_settle(test);
        fb_test_pass(test, 1);
        if (ms > 1)
            ck_assert_uint_eq(script.closings, 0);
    }
}

static void check_timed_out(fb_test *test)
{
    ck_assert_uint_eq(script.closings, 1);
    ck_assert_int_eq(script.reason, FB_TIMED_OUT);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "nothing was received for too long"));
}

START_TEST(output_does_not_defer_it)
{
    fb_test *test = start_with("");

    fb_set_receive_timeout(script.conn, 1000);
    pass_talking(test, 1000);
    check_timed_out(test);
    scripted_finish(&test);
}
END_TEST

START_TEST(input_defers_it)
{
    fb_test *test = start_with(_i == 0 ? "receive_timeout 1s;" : "");

    if (_i == 1)
        fb_set_receive_timeout(script.conn, 1000);
    for (int i = 0; i < 3; i++) {
        pass_talking(test, 700);
        fb_test_says(peer, "here");
        fb_test_run(test);
    }
    ck_assert_uint_eq(script.closings, 0);
    pass_talking(test, 1000);
    check_timed_out(test);
    scripted_finish(&test);
}
END_TEST

START_TEST(it_can_be_changed_and_ended)
{
    fb_test *test = start_with("receive_timeout 1s;");

    pass_talking(test, 900);
    fb_set_receive_timeout(script.conn, 5000);
    pass_talking(test, 4900);
    fb_set_receive_timeout(script.conn, 0);
    fb_set_receive_timeout(script.conn, 0);
    pass_talking(test, 9000);
    fb_set_receive_timeout(script.conn, 1);
    pass_talking(test, 1);
    check_timed_out(test);
    scripted_finish(&test);
}
END_TEST

START_TEST(who_is_not_read_is_not_waited_for)
{
    static char bytes[128 * 1024];
    fb_test *test = start_with("receive_timeout 1s;");

    if (_i == 0) {
        fb_stop(script.conn);
    } else {
        fb_test_take(peer, 0);
        fb_write(script.conn, bytes, sizeof(bytes));
    }
    scripted_settle(test);
    fb_test_pass(test, 10500);
    ck_assert_uint_eq(script.closings, 0);
    if (_i == 0)
        fb_resume(script.conn);
    fb_test_take(peer, SIZE_MAX);
    scripted_settle(test);
    pass_talking(test, 500);
    fb_test_pass(test, 500);
    check_timed_out(test);
    scripted_finish(&test);
}
END_TEST

START_TEST(behind_the_end_of_input_there_is_none)
{
    fb_test *test = start_with("receive_timeout 1s;");

    fb_test_shut(peer);
    fb_test_run(test);
    pass_talking(test, 3000);
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_pipe_has_its_own_time)
{
    fb_test *test = start_with("receive_timeout 1s;");
    struct scripted_conn to = { 0 };
    fb_test_peer *server = scripted_conn_connect(test, &script, &to);

    fb_set_receive_timeout(to.conn, 1000);
    fb_pipe(script.conn, to.conn, NULL);
    fb_set_receive_timeout(to.conn, 10);
    scripted_settle(test);
    fb_test_pass(test, 5000);
    fb_test_says(peer, "still here");
    fb_test_run(test);
    ck_assert_str_eq(peer_heard(server), "still here");
    fb_test_reset(peer);
    fb_test_run(test);
    ck_assert_uint_eq(script.closings + to.closings, 2);
    scripted_finish(&test);
}
END_TEST

/* A connection to a server has no statistics, and leaves none to its next user. */
START_TEST(connections_to_servers)
{
    fb_test *test = start_with("idle_timeout off;");
    struct scripted_conn to = { 0 }, next = { 0 };
    fb_test_peer *server = scripted_conn_connect(test, &script, &to);

    fb_test_pass(test, 60000);
    ck_assert_uint_eq(to.closings, 0);
    fb_set_receive_timeout(to.conn, 1000);
    fb_keep(to.conn, 100000);
    scripted_settle(test);
    next.conn = scripted_conn_begin(&script, &next, SERVER);
    fb_test_run(test);
    ck_assert_int_eq(fb_is_reused(next.conn), 1);
    fb_test_pass(test, 60000);
    ck_assert_uint_eq(next.closings, 0);
    fb_set_receive_timeout(next.conn, 1000);
    fb_test_pass(test, 999);
    fb_test_says(server, "x");
    fb_test_pass(test, 999);
    ck_assert_uint_eq(next.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(next.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

START_TEST(without_memory)
{
    fb_test *test = start_with("");

    fb_test_refuse_memory(test, (uint64_t)_i, 1);
    fb_set_receive_timeout(script.conn, 1000);
    scripted_settle(test);
    ck_assert_int_eq(script.reason, FB_NO_MEMORY);
    scripted_finish(&test);
}
END_TEST

/* ---- Times of any length ---- */

static const uint64_t times[] = { UINT64_MAX, UINT64_MAX - 1, (uint64_t)INT64_MAX + 1, INT64_MAX,
    UINT64_C(1) << 32, UINT32_MAX, (uint64_t)INT32_MAX + 1, INT32_MAX };

#define DAY (UINT64_C(24) * 60 * 60 * 1000)

static void set_receive(uint64_t ms)
{
    fb_set_receive_timeout(script.conn, ms);
}

static void set_moved(uint64_t ms)
{
    fb_set_timeout(script.conn, ms);
}

static void set_timer(uint64_t ms)
{
    fb_timer(script.conn, 1, ms);
}

static fb_frame_limit limit = { .most = 100 };

static size_t cut_lines(struct scripted_conn *a, fb_bytes in)
{
    fb_bytes rest = in, line;

    while (fb_frame_until(a->conn, &rest, "\n", 1, &limit, &line))
        ;
    return in.n - rest.n;
}

static void set_frame(uint64_t ms)
{
    limit.timeout = ms;
    script.data = cut_lines;
    fb_test_says(peer, "part of a line");
}

static void (*const setters[])(uint64_t ms) = { set_receive, set_moved, set_timer, set_frame };
#define SETTERS ((int)countof(setters))

START_TEST(a_time_may_have_any_length)
{
    uint64_t ms = times[_i / SETTERS];
    fb_test *test = start_with("idle_timeout off;");

    setters[_i % SETTERS](ms);
    scripted_settle(test);
    for (uint64_t days = 0; days < 24; days++)
        fb_test_pass(test, DAY);
    ck_assert_uint_eq(script.closings + script.timers, 0);
    if (ms > 60 * DAY) {
        for (uint64_t days = 0; days < 36; days++)
            fb_test_pass(test, DAY);
        ck_assert_uint_eq(script.closings + script.timers, 0);
        scripted_finish(&test);
        return;
    }
    fb_test_pass(test, ms - 24 * DAY - 1);
    ck_assert_uint_eq(script.closings + script.timers, 0);
    fb_test_pass(test, 1);
    ck_assert_uint_eq(script.closings + script.timers, 1);
    scripted_finish(&test);
}
END_TEST

/* A longer time does not keep a shorter one from being set. */
START_TEST(a_short_time_follows_a_long_one)
{
    fb_test *test = start_with("idle_timeout off;");

    setters[_i](UINT64_MAX);
    scripted_settle(test);
    fb_test_pass(test, DAY);
    setters[_i](1000);
    scripted_settle(test);
    fb_test_pass(test, 999);
    ck_assert_uint_eq(script.closings + script.timers, 0);
    fb_test_pass(test, 1);
    ck_assert_uint_eq(script.closings + script.timers, 1);
    scripted_finish(&test);
}
END_TEST

/* ---- The state ---- */

START_TEST(the_state_of_a_connection)
{
    fb_test *test = start_with("");
    struct scripted_conn to = { 0 };

    scripted_conn_connect(test, &script, &to);
    ck_assert_ptr_eq(*(struct scripted_conn **)fb_state_of(script.conn), &script);
    ck_assert_ptr_eq(fb_state_of(to.conn), &to);
    ck_assert_ptr_eq(fb_state_of(fb_find(fb_test_worker(test), fb_ref_of(to.conn))), &to);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, output_does_not_defer_it);
    tcase_add_loop_test(tcase, input_defers_it, 0, 2);
    tcase_add_test(tcase, it_can_be_changed_and_ended);
    tcase_add_loop_test(tcase, who_is_not_read_is_not_waited_for, 0, 2);
    tcase_add_test(tcase, behind_the_end_of_input_there_is_none);
    tcase_add_test(tcase, a_pipe_has_its_own_time);
    tcase_add_test(tcase, connections_to_servers);
    tcase_add_loop_test(tcase, without_memory, 0, 2);
    tcase_add_loop_test(tcase, a_time_may_have_any_length, 0, SETTERS * (int)countof(times));
    tcase_add_loop_test(tcase, a_short_time_follows_a_long_one, 0, SETTERS - 1);
    tcase_add_test(tcase, the_state_of_a_connection);
}

TEST_MAIN("sdk_receive_timeout", add_tests)
