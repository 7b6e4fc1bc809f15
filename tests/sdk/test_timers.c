/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers of protocols, and fb_set_timeout(). */
#include "sdk/scripted_conn.h"

#include <string.h>

/* When which timer was called, as "id@ms ". */
static char calls[1024];
static uint64_t began;
static fb_test *current;

static void note_timer(struct scripted_conn *script, uint32_t id)
{
    size_t n = strlen(calls);

    (void)script;
    snprintf(calls + n, sizeof(calls) - n, "%u@%u ", id, (unsigned)(mono_ms(current) - began));
}

static fb_test *start_with(struct scripted_conn *script)
{
    current = scripted_start();
    script->timer = note_timer;
    scripted_conn_open(current, script);
    began = mono_ms(current);
    calls[0] = '\0';
    return current;
}

START_TEST(they_are_called_in_time)
{
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);

    fb_timer(a.conn, 7, 3000);
    fb_timer(a.conn, 0, 1);
    fb_timer(a.conn, UINT32_MAX, 2000);
    fb_timer(a.conn, 8, 3000);
    fb_test_pass(test, 1999);
    ck_assert_str_eq(calls, "0@1 ");
    fb_test_pass(test, 100000);
    ck_assert_uint_eq(a.timers, 4);
    ck_assert_ptr_eq(strstr(calls, "4294967295@2000 "), calls + 4);
    ck_assert_ptr_nonnull(strstr(calls, "7@3000 "));
    ck_assert_ptr_nonnull(strstr(calls, "8@3000 "));
    scripted_finish(&test);
}
END_TEST

static const struct move {
    uint64_t first, then; /* the second time is set after `after` */
    uint64_t after;
    const char *calls;
} moves[] = {
    { 1000, 1000, 100, "1@1100 " }, /* later by less than the loop cares for */
    { 1000, 1000, 999, "1@1999 " },
    { 1000, 50000, 0, "1@50000 " },
    { 1000, 900, 0, "1@900 " }, /* earlier, likewise */
    { 50000, 10, 500, "1@510 " },
    { 100, 0, 50, "1@51 " }, /* at least 1 ms */
    { 10, 10, 9, "1@19 " },
};

START_TEST(a_timer_is_moved_exactly)
{
    const struct move *move = &moves[_i];
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);

    fb_timer(a.conn, 1, move->first);
    fb_test_pass(test, move->after);
    fb_timer(a.conn, 1, move->then);
    fb_test_pass(test, 100000);
    ck_assert_str_eq(calls, move->calls);
    scripted_finish(&test);
}
END_TEST

START_TEST(moved_often_it_is_called_once)
{
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);

    for (int i = 0; i < 100; i++) {
        fb_timer(a.conn, 1, i % 2 == 0 ? 5000 : 100);
        fb_timer(a.conn, 1, 100);
        fb_test_pass(test, 99);
    }
    ck_assert_uint_eq(a.timers, 0);
    fb_test_pass(test, 100000);
    ck_assert_str_eq(calls, "1@9901 ");
    scripted_finish(&test);
}
END_TEST

START_TEST(a_timer_is_cancelled)
{
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);

    fb_timer(a.conn, 1, 1000);
    fb_timer(a.conn, 2, 1000);
    fb_timer_cancel(a.conn, 1);
    fb_timer_cancel(a.conn, 1);
    fb_timer_cancel(a.conn, 3);
    fb_test_pass(test, 5000);
    ck_assert_str_eq(calls, "2@1000 ");
    scripted_finish(&test);
}
END_TEST

static void set_again(struct scripted_conn *script, uint32_t id)
{
    note_timer(script, id);
    if (id == 1 && script->timers < 4)
        fb_timer(script->conn, 1, 1000);
    if (script->timers == 1)
        fb_timer_cancel(script->conn, 2);
}

START_TEST(a_timer_may_be_set_when_it_is_called)
{
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);

    a.timer = set_again;
    fb_timer(a.conn, 1, 1000);
    fb_timer(a.conn, 2, 1001); /* cancelled meanwhile */
    fb_test_pass(test, 10000);
    ck_assert_str_eq(calls, "1@1000 1@2000 1@3000 1@4000 ");
    scripted_finish(&test);
}
END_TEST

/* A timer's output leaves, and the end follows. */
static void say_and_close(struct scripted_conn *script, uint32_t id)
{
    fb_write(script->conn, "time", 4);
    if (id == 2)
        fb_close(script->conn);
}

START_TEST(a_timer_is_a_callback_like_others)
{
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);
    fb_test_peer *peer;
    struct scripted_conn b = { .timer = say_and_close };

    peer = scripted_conn_open(test, &b);
    fb_timer(b.conn, 1, 10);
    fb_test_pass(test, 10);
    ck_assert_str_eq(peer_heard(peer), "time");
    fb_timer(b.conn, 2, 10);
    fb_test_pass(test, 10);
    ck_assert_str_eq(peer_heard(peer), "timetime");
    ck_assert_int_eq(b.reason, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

START_TEST(none_is_called_of_one_that_closes)
{
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);
    fb_test_peer *peer;
    struct scripted_conn b = { .timer = note_timer };

    peer = scripted_conn_open(test, &b);
    fb_test_take(peer, 0);
    fb_write(b.conn, "unsent", 6);
    fb_timer(b.conn, 1, 100);
    fb_close(b.conn);
    fb_timer(b.conn, 2, 100);
    scripted_settle(test);
    fb_test_pass(test, 1000);
    ck_assert_uint_eq(b.closings, 0);
    ck_assert_uint_eq(b.timers, 0);
    fb_test_take(peer, SIZE_MAX);
    fb_test_run(test);
    ck_assert_int_eq(b.reason, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

/* A linear search at every call would take minutes. */
START_TEST(hundreds_of_thousands_are_set_moved_and_cancelled)
{
    const uint32_t n = test_trials(200000);
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);

    a.timer = NULL;
    for (uint32_t i = 0; i < n; i++)
        fb_timer(a.conn, i, 1000 + i % 100);
    for (uint32_t i = 0; i < n; i++)
        fb_timer(a.conn, i, 2000 + i % 100);
    for (uint32_t i = 0; i < n; i += 2)
        fb_timer_cancel(a.conn, i);
    fb_test_pass(test, 3000);
    ck_assert_uint_eq(a.timers, n / 2);
    fb_timer(a.conn, 1, 1000); /* the number is free again */
    for (uint32_t i = 0; i < n; i += 3)
        fb_timer(a.conn, i, 1000);
    scripted_finish(&test);
}
END_TEST

static void set_when_closed(struct scripted_conn *script, fb_reason reason)
{
    (void)reason;
    fb_timer(script->conn, 1, 10);
    fb_timer_cancel(script->conn, 2);
}

START_TEST(all_end_with_the_connection)
{
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);

    a.closed = set_when_closed;
    for (uint32_t i = 0; i < 100; i++)
        fb_timer(a.conn, i, 1000 + i);
    fb_abort(a.conn);
    scripted_settle(test);
    ck_assert_uint_eq(a.closings, 1);
    fb_test_pass(test, 5000);
    ck_assert_uint_eq(a.timers, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(without_memory_it_ends)
{
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);

    fb_test_refuse_memory(test, (uint64_t)_i, 1);
    fb_timer(a.conn, 1, 10);
    scripted_settle(test);
    ck_assert_int_eq(a.reason, FB_NO_MEMORY);
    scripted_finish(&test);
}
END_TEST

/* ---- Timeouts ---- */

static const uint64_t timeouts[] = { 1, 50, 299, 300, 1000, 100000 };

START_TEST(a_timeout_ends_it)
{
    uint64_t ms = timeouts[_i];
    struct scripted_conn a = { 0 };
    fb_test *test = start_with(&a);

    fb_set_timeout(a.conn, 5000);
    fb_set_timeout(a.conn, ms);
    fb_test_pass(test, ms - 1);
    ck_assert_uint_eq(a.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(a.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

/* With any timeout, and any mover of the bytes. */
START_TEST(what_moves_does_not_time_out)
{
    uint64_t ms = timeouts[_i];
    struct scripted_conn a = { 0 };
    fb_test *test = scripted_start();
    fb_test_peer *peer = scripted_conn_open(test, &a);

    fb_set_timeout(a.conn, ms);
    for (int i = 0; i < 12; i++) {
        fb_test_pass(test, ms * 9 / 10);
        switch (i % 3) {
        case 0:
            fb_test_says(peer, "x");
            break;
        case 1:
            fb_write(a.conn, "y", 1);
            break;
        default:
            fb_write(a.conn, "z", 1);
            fb_flush(a.conn);
        }
        scripted_settle(test);
        ck_assert_uint_eq(a.closings, 0);
    }
    ck_assert_str_eq(peer_heard(peer), "yzyzyzyz");
    scripted_finish(&test);
}
END_TEST

START_TEST(no_timeout_is_for_ever)
{
    struct scripted_conn a = { 0 };
    fb_test *test =
        fb_test_start(&fb_protocol_scripted, "scripted; idle_timeout 10s; first_byte_timeout 5s;");
    fb_test_peer *peer = scripted_conn_open(test, &a);

    fb_set_timeout(a.conn, _i == 0 ? 0 : (UINT64_C(1) << 60) + 1000);
    fb_test_pass(test, 4999); /* the first byte is still to come */
    fb_test_says(peer, "x");
    fb_test_pass(test, UINT64_C(10000000000));
    ck_assert_uint_eq(a.closings, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_stopped_client_owes_no_byte)
{
    struct scripted_conn a = { 0 };
    fb_test *test =
        fb_test_start(&fb_protocol_scripted, "scripted; idle_timeout 10s; first_byte_timeout 5s;");

    scripted_conn_open(test, &a);
    fb_stop(a.conn);
    fb_test_pass(test, 60000);
    fb_resume(a.conn);
    fb_test_pass(test, 4999);
    ck_assert_uint_eq(a.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(a.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

START_TEST(at_first_it_is_the_servers)
{
    struct scripted_conn a = { 0 };
    fb_test *test =
        fb_test_start(&fb_protocol_scripted, "scripted; idle_timeout 10s; first_byte_timeout off;");

    scripted_conn_open(test, &a);
    fb_test_pass(test, 9999);
    ck_assert_uint_eq(a.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(a.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, they_are_called_in_time);
    tcase_add_loop_test(tcase, a_timer_is_moved_exactly, 0, countof(moves));
    tcase_add_test(tcase, moved_often_it_is_called_once);
    tcase_add_test(tcase, a_timer_is_cancelled);
    tcase_add_test(tcase, a_timer_may_be_set_when_it_is_called);
    tcase_add_test(tcase, a_timer_is_a_callback_like_others);
    tcase_add_test(tcase, hundreds_of_thousands_are_set_moved_and_cancelled);
    tcase_add_test(tcase, none_is_called_of_one_that_closes);
    tcase_add_test(tcase, all_end_with_the_connection);
    tcase_add_loop_test(tcase, without_memory_it_ends, 0, 2);
    tcase_add_loop_test(tcase, a_timeout_ends_it, 0, countof(timeouts));
    tcase_add_loop_test(tcase, what_moves_does_not_time_out, 0, countof(timeouts));
    tcase_add_loop_test(tcase, no_timeout_is_for_ever, 0, 2);
    tcase_add_test(tcase, a_stopped_client_owes_no_byte);
    tcase_add_test(tcase, at_first_it_is_the_servers);
}

TEST_MAIN("sdk_timers", add_tests)
