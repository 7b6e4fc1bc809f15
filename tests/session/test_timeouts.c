/* SPDX-License-Identifier: BSD-2-Clause */
/* first_byte_timeout and idle_timeout, both to the millisecond: a timer stays where it is when
 * bytes move, and is set for the rest of the time when it expires. */
#include "support/fixture.h"

#include <string.h>

#define CONTEXT ", client: 192.0.2.1, server: 192.0.2.7:77\n"
#define TIMED_OUT                                                                                  \
    "t: [info] *1 client timed out (110: Connection timed out)" CONTEXT                            \
    "t: [info] *1 client disconnected, bytes from/to client:"

static struct fixture *start_timed(int64_t first_byte_timeout, int64_t idle_timeout)
{
    struct fixture *fixture = fixture_start_stream(2);

    fixture->server.server.settings.first_byte_timeout = first_byte_timeout;
    fixture->server.server.settings.idle_timeout = idle_timeout;
    return fixture;
}

/* The session is still there a millisecond before `ms` from now, and then not. */
static void check_ends_after(struct fixture *fixture, uint64_t ms)
{
    const char *logged;

    fixture_pass(fixture, ms - 1);
    ck_assert_uint_eq(fixture->server.record.closings, 0);
    fixture_pass(fixture, 1);
    ck_assert_uint_eq(fixture->server.record.closings, 1);
    ck_assert_int_eq(fixture->server.record.reason, FB_TIMED_OUT);
    logged = fixture_logged(fixture);
    ck_assert_int_eq(strncmp(logged, TIMED_OUT, strlen(TIMED_OUT)), 0);
    ck_assert_str_eq(strstr(logged, ", reason: "), ", reason: timed out" CONTEXT);
    fixture_stop(fixture);
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
        struct fixture *fixture = start_timed(cases[i].first_byte_timeout, cases[i].idle_timeout);

        scripted_connect(fixture);
        check_ends_after(fixture, cases[i].ends);
    }
}
END_TEST

START_TEST(the_first_byte_starts_the_idle_timeout)
{
    static const struct {
        int64_t first_byte_timeout, idle_timeout;
    } cases[] = { { 5000, 60000 }, { 60000, 5000 }, { 5000, 5000 }, { 1000, 1100 }, { 0, 5000 } };

    for (size_t i = 0; i < countof(cases); i++) {
        struct fixture *fixture = start_timed(cases[i].first_byte_timeout, cases[i].idle_timeout);
        struct sim_socket *client = scripted_connect(fixture);

        fixture_pass(fixture, 900);
        sim_says(client, "hello");
        fixture_run(fixture);
        check_ends_after(fixture, (uint64_t)cases[i].idle_timeout);
    }
}
END_TEST

/* The worker is stopped: the bytes and the timeout are found in the same turn. */
START_TEST(what_has_come_is_in_time)
{
    struct fixture *fixture = start_timed(5000, 3000);
    struct sim_socket *client = scripted_connect(fixture);

    for (int i = 0; i < 3; i++) {
        sim_says(client, "hello");
        fixture_pass(fixture, 6000);
        ck_assert_uint_eq(fixture->server.record.closings, 0);
    }
    check_ends_after(fixture, 3000);
}
END_TEST

/* Longer than the deadline of a connection can be. */
START_TEST(thirty_days_are_thirty_days)
{
    static const uint64_t day = 1000u * 3600 * 24;
    struct fixture *fixture = start_timed(0, (int64_t)(30 * day));

    fixture_pass(fixture, 40 * day); /* since the machine's start */
    scripted_connect(fixture);
    fixture_pass(fixture, 25 * day);
    check_ends_after(fixture, 5 * day);
}
END_TEST

START_TEST(without_timeouts_it_stays)
{
    struct fixture *fixture = start_timed(0, 0);
    struct sim_socket *client = scripted_connect(fixture);

    fixture_pass(fixture, 1000u * 3600 * 24 * 30);
    ck_assert_uint_eq(fixture->server.record.closings, 0);
    sim_says(client, "still here");
    fixture_run(fixture);
    ck_assert_str_eq(fixture->server.record.last, "still here");
    ck_assert_int_eq(timers_wait(&fixture->loop->timers), -1);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

START_TEST(input_defers_the_idle_timeout)
{
    struct fixture *fixture = start_timed(1000, 1000);
    struct sim_socket *client = scripted_connect(fixture);

    for (int i = 0; i < 20; i++) {
        fixture_pass(fixture, 600);
        sim_says(client, "more");
        fixture_run(fixture);
    }
    check_ends_after(fixture, 1000);
}
END_TEST

/* A reply is no reason to wait twice as long. */
START_TEST(it_is_the_last_move_that_counts)
{
    struct fixture *fixture = start_timed(60000, 10000);
    struct sim_socket *client = scripted_connect(fixture);

    fixture->server.script.data = echo;
    sim_says(client, "request");
    fixture_run(fixture);
    ck_assert_str_eq(sim_sent(client), "request");
    check_ends_after(fixture, 10000);
}
END_TEST

/* The client takes ten bytes at a time, twenty times. */
static void take_slowly(struct fixture *fixture, struct sim_socket *client)
{
    for (size_t i = 1; i <= 20; i++) {
        fixture_pass(fixture, 600);
        sim_set_room(client, 10);
        fixture_run(fixture);
        ck_assert_uint_eq(client->sent_n, 10 * i);
    }
}

START_TEST(output_that_moves_defers_the_idle_timeout)
{
    struct fixture *fixture = start_timed(60000, 1000);
    struct sim_socket *client = scripted_connect(fixture);
    static const char bytes[10000];

    fixture->server.script.data = echo;
    sim_set_room(client, 0);
    sim_say(client, bytes, sizeof(bytes));
    fixture_run(fixture);
    take_slowly(fixture, client);
    check_ends_after(fixture, 1000); /* the client stops reading */
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
    struct fixture *fixture = start_timed(5000, 60000);
    struct sim_socket *client;

    fixture->server.script.opened = write_much;
    client = scripted_connect_slow(fixture, 0);
    fixture_pass(fixture, 2000);
    sim_set_room(client, 100);
    fixture_run(fixture);
    ck_assert_uint_eq(client->sent_n, 100);
    check_ends_after(fixture, 3000);
}
END_TEST

START_TEST(without_a_first_byte_timeout_output_defers_the_idle_one)
{
    struct fixture *fixture = start_timed(0, 1000);

    fixture->server.script.opened = write_much;
    take_slowly(fixture, scripted_connect_slow(fixture, 0));
    check_ends_after(fixture, 1000);
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
    struct fixture *fixture = start_timed(5000, 1000);

    fixture->server.script.opened = write_much_and_close;
    take_slowly(fixture, scripted_connect_slow(fixture, 0));
    check_ends_after(fixture, 1000);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, who_says_nothing_ends_with_the_first_timeout);
    tcase_add_test(tcase, the_first_byte_starts_the_idle_timeout);
    tcase_add_test(tcase, what_has_come_is_in_time);
    tcase_add_test(tcase, thirty_days_are_thirty_days);
    tcase_add_test(tcase, without_timeouts_it_stays);
    tcase_add_test(tcase, input_defers_the_idle_timeout);
    tcase_add_test(tcase, it_is_the_last_move_that_counts);
    tcase_add_test(tcase, output_that_moves_defers_the_idle_timeout);
    tcase_add_test(tcase, output_is_no_first_byte);
    tcase_add_test(tcase, without_a_first_byte_timeout_output_defers_the_idle_one);
    tcase_add_test(tcase, closing_waits_for_who_takes_output);
}

TEST_MAIN("timeouts", add_tests)
