/* SPDX-License-Identifier: BSD-2-Clause */
/* first_byte_timeout and idle_timeout. A timer that is moved by less than 300 ms stays, so that a
 * session may end so much early, but never late. */
#include "stream/stage.h"

#include <string.h>

#define LAZY TIMER_LAZY_MS

#define TIMED_OUT                                                                                  \
    "t: [info] *1 client timed out (110: Connection timed out), client: 192.0.2.1, server: "       \
    "192.0.2.7:77\nt: [info] *1 session ended: timed out, client: 192.0.2.1, server: "             \
    "192.0.2.7:77\n"

static struct stage *start(int64_t first_byte_timeout, int64_t idle_timeout)
{
    struct stage *stage = stage_set_up(2);

    stage->server.settings.first_byte_timeout = first_byte_timeout;
    stage->server.settings.idle_timeout = idle_timeout;
    return stage;
}

/* The session is still there until `ms` from now, less what the timers may be early, and then not. */
static void check_ends_after(struct stage *stage, uint64_t ms)
{
    stage_pass(stage, ms - LAZY);
    ck_assert_uint_eq(stage->record.closings, 0);
    stage_pass(stage, LAZY);
    ck_assert_uint_eq(stage->record.closings, 1);
    ck_assert_int_eq(stage->record.reason, FB_TIMED_OUT);
    ck_assert_str_eq(stage_logged(stage), TIMED_OUT);
    stage_tear_down(stage);
}

static size_t echo(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, in.p, in.n);
    return in.n;
}

START_TEST(who_says_nothing_ends_with_the_first_timeout)
{
    static const struct {
        int64_t first_byte_timeout, idle_timeout;
        uint64_t ends;
    } cases[] = { { 5000, 60000, 5000 }, { 60000, 5000, 60000 }, { 5000, 0, 5000 },
        { 0, 7000, 7000 } };

    for (size_t i = 0; i < countof(cases); i++) {
        struct stage *stage = start(cases[i].first_byte_timeout, cases[i].idle_timeout);

        stage_connect(stage);
        check_ends_after(stage, cases[i].ends);
    }
}
END_TEST

START_TEST(the_first_byte_starts_the_idle_timeout)
{
    static const struct {
        int64_t first_byte_timeout, idle_timeout;
    } cases[] = { { 5000, 60000 }, { 60000, 5000 }, { 5000, 5000 }, { 1000, 1100 }, { 0, 5000 } };

    for (size_t i = 0; i < countof(cases); i++) {
        struct stage *stage = start(cases[i].first_byte_timeout, cases[i].idle_timeout);
        struct fake_socket *client = stage_connect(stage);

        stage_pass(stage, 900);
        fake_says(client, "hello");
        stage_run(stage);
        check_ends_after(stage, (uint64_t)cases[i].idle_timeout);
    }
}
END_TEST

START_TEST(without_timeouts_it_stays)
{
    struct stage *stage = start(0, 0);
    struct fake_socket *client = stage_connect(stage);

    stage_pass(stage, 1000u * 3600 * 24 * 30);
    ck_assert_uint_eq(stage->record.closings, 0);
    fake_says(client, "still here");
    stage_run(stage);
    ck_assert_str_eq(stage->record.last, "still here");
    ck_assert_int_eq(timers_distance(&stage->worker.stream.net.loop), -1);
    stage_end(stage);
    stage_tear_down(stage);
}
END_TEST

START_TEST(input_defers_the_idle_timeout)
{
    struct stage *stage = start(1000, 1000);
    struct fake_socket *client = stage_connect(stage);

    for (int i = 0; i < 20; i++) {
        stage_pass(stage, 600);
        fake_says(client, "more");
        stage_run(stage);
    }
    check_ends_after(stage, 1000);
}
END_TEST

/* A reply is no reason to wait twice as long. */
START_TEST(it_is_the_last_move_that_counts)
{
    struct stage *stage = start(60000, 10000);
    struct fake_socket *client = stage_connect(stage);

    stage->script.data = echo;
    fake_says(client, "request");
    stage_run(stage);
    ck_assert_str_eq(stage_sent(client), "request");
    check_ends_after(stage, 10000);
}
END_TEST

/* The client takes ten bytes at a time, twenty times. */
static void take_slowly(struct stage *stage, struct fake_socket *client)
{
    for (size_t i = 1; i <= 20; i++) {
        stage_pass(stage, 600);
        fake_take(client, 10);
        stage_run(stage);
        ck_assert_uint_eq(client->sent_n, 10 * i);
    }
}

START_TEST(output_that_moves_defers_the_idle_timeout)
{
    struct stage *stage = start(60000, 1000);
    struct fake_socket *client = stage_connect(stage);
    static const char bytes[10000];

    stage->script.data = echo;
    fake_take(client, 0);
    fake_say(client, bytes, sizeof(bytes));
    stage_run(stage);
    take_slowly(stage, client);
    check_ends_after(stage, 1000); /* and then it does not */
}
END_TEST

static int write_much(fb_conn *conn, void *state)
{
    static const char bytes[10000];

    (void)state;
    fb_write(conn, bytes, sizeof(bytes));
    return 0;
}

START_TEST(output_is_no_first_byte)
{
    struct stage *stage = start(5000, 60000);
    struct fake_socket *client;

    stage->script.opened = write_much;
    client = stage_connect_slow(stage, 0);
    stage_pass(stage, 2000);
    fake_take(client, 100);
    stage_run(stage);
    ck_assert_uint_eq(client->sent_n, 100);
    check_ends_after(stage, 3000);
}
END_TEST

START_TEST(without_a_first_byte_timeout_output_defers_the_idle_one)
{
    struct stage *stage = start(0, 1000);

    stage->script.opened = write_much;
    take_slowly(stage, stage_connect_slow(stage, 0));
    check_ends_after(stage, 1000);
}
END_TEST

static int write_much_and_close(fb_conn *conn, void *state)
{
    write_much(conn, state);
    fb_close(conn);
    return 0;
}

START_TEST(closing_waits_for_who_takes_output)
{
    struct stage *stage = start(5000, 1000);

    stage->script.opened = write_much_and_close;
    take_slowly(stage, stage_connect_slow(stage, 0));
    check_ends_after(stage, 1000);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, who_says_nothing_ends_with_the_first_timeout);
    tcase_add_test(tcase, the_first_byte_starts_the_idle_timeout);
    tcase_add_test(tcase, without_timeouts_it_stays);
    tcase_add_test(tcase, input_defers_the_idle_timeout);
    tcase_add_test(tcase, it_is_the_last_move_that_counts);
    tcase_add_test(tcase, output_that_moves_defers_the_idle_timeout);
    tcase_add_test(tcase, output_is_no_first_byte);
    tcase_add_test(tcase, without_a_first_byte_timeout_output_defers_the_idle_one);
    tcase_add_test(tcase, closing_waits_for_who_takes_output);
}

TEST_MAIN("timeouts", add_tests)
