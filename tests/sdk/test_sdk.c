/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls, as protocols use them. */
#include "support/fixture.h"

#include <string.h>

#define CONTEXT ", client: 192.0.2.1, server: 192.0.2.7:77\n"

static size_t echo_and_close(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, "you said: ", 10);
    fb_write(conn, in.p, in.n);
    fb_close(conn);
    fb_write(conn, "nothing more", 12);
    return in.n;
}

START_TEST(write_and_close)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client = scripted_connect(fixture);

    fixture->server.script.data = echo_and_close;
    sim_says(client, "hello");
    fixture_run(fixture);
    ck_assert_str_eq(sim_sent(client), "you said: hello");
    ck_assert_uint_eq(client->sends, 1);
    ck_assert_int_eq(fixture->server.record.reason, FB_FINISHED);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

static size_t write_and_abort(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, in.p, in.n);
    fb_abort(conn);
    fb_abort(conn);
    return in.n;
}

START_TEST(abort_drops_and_resets)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client = scripted_connect(fixture);

    fixture->server.script.data = write_and_abort;
    sim_says(client, "hello");
    fixture_run(fixture);
    ck_assert_str_eq(sim_sent(client), "");
    ck_assert(client->closed && client->reset);
    ck_assert_int_eq(fixture->server.record.reason, FB_ABORTED);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

static size_t stop_in_the_middle(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_stop(conn);
    return in.n / 2;
}

START_TEST(stop_and_resume)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client = scripted_connect(fixture);

    fixture->server.script.data = stop_in_the_middle;
    sim_says(client, "onetwo");
    fixture_run(fixture);
    sim_says(client, "three");
    fixture_run(fixture);
    ck_assert_uint_eq(fixture->server.record.datas, 1);
    fixture->server.script.data = NULL;
    fb_resume(fixture->server.record.conn);
    fixture_run(fixture);
    ck_assert_uint_eq(fixture->server.record.datas, 3);
    ck_assert_str_eq(fixture->server.record.last, "three");
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

static int fill_up(fb_conn *conn, void *state)
{
    static const char bytes[70000];

    (void)state;
    fb_write(conn, bytes, sizeof(bytes));
    return 0;
}

static void say_done(fb_conn *conn, void *state)
{
    (void)state;
    fb_write(conn, "done", 4);
    fb_close(conn);
}

START_TEST(writable_follows_a_flood)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client;

    fixture->server.script.opened = fill_up;
    fixture->server.script.writable = say_done;
    client = scripted_connect_slow(fixture, 10);
    sim_says(client, "not heard meanwhile");
    fixture_run(fixture);
    ck_assert_uint_eq(fixture->server.record.datas + fixture->server.record.writables, 0);
    sim_set_room(client, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_uint_eq(fixture->server.record.writables, 1);
    ck_assert_uint_eq(client->sent_n, 70004);
    sim_end(client);
    fixture_run(fixture);
    ck_assert(client->closed);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_clock_is_the_loops)
{
    struct fixture *fixture = fixture_start_stream(1);
    int64_t before;

    scripted_connect(fixture);
    before = fb_wall_ms(fb_worker_of(fixture->server.record.conn));
    sim_pass(fixture->sim, 5);
    ck_assert_int_eq(fb_wall_ms(fb_worker_of(fixture->server.record.conn)), before);
    fixture_run(fixture);
    ck_assert_int_eq(fb_wall_ms(fb_worker_of(fixture->server.record.conn)),
        before + 5); /* the simulated one's */
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

START_TEST(lines_end_with_client_and_server)
{
    struct fixture *fixture = fixture_start_stream(1);
    fb_conn *conn;

    scripted_connect(fixture);
    conn = fixture->server.record.conn;
    fb_conn_logf(conn, FB_LOG_ALERT, "%d %s", 1, "alert");
    fb_conn_logf(conn, FB_LOG_ERROR, "error");
    fb_conn_logf(conn, FB_LOG_WARN, "warning");
    fb_conn_logf(conn, FB_LOG_NOTICE, "notice");
    fb_conn_logf(conn, FB_LOG_INFO, "info");
    fb_conn_logf(conn, FB_LOG_DEBUG, "not at this level");
    ck_assert_str_eq(fixture_logged(fixture),
        "t: [alert] *1 1 alert" CONTEXT "t: [error] *1 error" CONTEXT "t: [warn] *1 warning" CONTEXT
        "t: [notice] *1 notice" CONTEXT "t: [info] *1 info" CONTEXT);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

START_TEST(statistics_are_those_of_all_workers)
{
    struct fixture *fixture = fixture_start_stream(4);
    struct counters *others;
    struct slot_id other, dead;
    fb_statistics s = { .size = sizeof(s) };
    struct sim_socket *client;

    ck_assert(slot_acquire(fixture->shared, &other));
    ck_assert(slot_acquire(fixture->shared, &dead));
    others = &shared_slot(fixture->shared, other)->counters;
    counters_add(others, COUNTER_ACCEPTS, 100);
    counters_add(others, COUNTER_ACTIVE, 10);
    counters_add(others, COUNTER_WRITING, 3);
    counters_add(&shared_slot(fixture->shared, dead)->counters, COUNTER_REQUESTS, 1000);
    counters_add(&shared_slot(fixture->shared, dead)->counters, COUNTER_ACTIVE, 1000);
    slot_release(fixture->shared, dead);

    fixture->server.script.data = stop_in_the_middle; /* keeps some of it: it is reading */
    client = scripted_connect(fixture);
    sim_says(client, "request");
    scripted_connect(fixture);
    fixture_run(fixture);
    fb_count_request(fixture->server.record.conn);
    fb_count_request(fixture->server.record.conn);
    fb_get_statistics(fb_worker_of(fixture->server.record.conn), &s);
    ck_assert_uint_eq(s.size, sizeof(s));
    ck_assert_uint_eq(s.accepts, 100); /* the worker counts those */
    ck_assert_uint_eq(s.handled, 2);
    ck_assert_uint_eq(s.requests, 1002);
    ck_assert_uint_eq(s.active, 12);
    ck_assert_uint_eq(s.reading, 1);
    ck_assert_uint_eq(s.writing, 3);
    ck_assert_uint_eq(s.waiting, 8);
    slot_release(fixture->shared, other);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

/* A module built with an older header gets fewer fields. */
START_TEST(statistics_fill_what_the_caller_has)
{
    struct fixture *fixture = fixture_start_stream(1);
    fb_statistics s;

    scripted_connect(fixture);
    memset(&s, 0x55, sizeof(s));
    s.size = offsetof(fb_statistics, requests);
    fb_get_statistics(fb_worker_of(fixture->server.record.conn), &s);
    ck_assert_uint_eq(s.size, offsetof(fb_statistics, requests));
    ck_assert_uint_eq(s.handled, 1);
    ck_assert_uint_eq(s.requests, 0x5555555555555555u);
    ck_assert_uint_eq(s.waiting, 0x5555555555555555u);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, write_and_close);
    tcase_add_test(tcase, abort_drops_and_resets);
    tcase_add_test(tcase, stop_and_resume);
    tcase_add_test(tcase, writable_follows_a_flood);
    tcase_add_test(tcase, the_clock_is_the_loops);
    tcase_add_test(tcase, lines_end_with_client_and_server);
    tcase_add_test(tcase, statistics_are_those_of_all_workers);
    tcase_add_test(tcase, statistics_fill_what_the_caller_has);
}

TEST_MAIN("sdk", add_tests)
