/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls, as protocols use them. */
#include "stream/stage.h"

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
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client = stage_connect(stage);

    stage->script.data = echo_and_close;
    fake_says(client, "hello");
    stage_run(stage);
    ck_assert_str_eq(stage_sent(client), "you said: hello");
    ck_assert_uint_eq(client->sends, 1);
    ck_assert_int_eq(stage->record.reason, FB_FINISHED);
    stage_end(stage);
    stage_tear_down(stage);
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
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client = stage_connect(stage);

    stage->script.data = write_and_abort;
    fake_says(client, "hello");
    stage_run(stage);
    ck_assert_str_eq(stage_sent(client), "");
    ck_assert(client->closed && client->reset);
    ck_assert_int_eq(stage->record.reason, FB_ABORTED);
    stage_end(stage);
    stage_tear_down(stage);
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
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client = stage_connect(stage);

    stage->script.data = stop_in_the_middle;
    fake_says(client, "onetwo");
    stage_run(stage);
    fake_says(client, "three");
    stage_run(stage);
    ck_assert_uint_eq(stage->record.datas, 1);
    stage->script.data = NULL;
    fb_resume(stage->record.conn);
    stage_run(stage);
    ck_assert_uint_eq(stage->record.datas, 3);
    ck_assert_str_eq(stage->record.last, "three");
    stage_end(stage);
    stage_tear_down(stage);
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
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client;

    stage->script.opened = fill_up;
    stage->script.writable = say_done;
    client = stage_connect_slow(stage, 10);
    fake_says(client, "not heard meanwhile");
    stage_run(stage);
    ck_assert_uint_eq(stage->record.datas + stage->record.writables, 0);
    fake_take(client, SIZE_MAX);
    stage_run(stage);
    ck_assert_uint_eq(stage->record.writables, 1);
    ck_assert_uint_eq(client->sent_n, 70004);
    fake_end(client);
    stage_run(stage);
    ck_assert(client->closed);
    stage_end(stage);
    stage_tear_down(stage);
}
END_TEST

START_TEST(the_clock_is_the_loops)
{
    struct stage *stage = stage_set_up(1);
    int64_t before;

    stage_connect(stage);
    before = fb_wall_ms(fb_worker_of(stage->record.conn));
    fake_pass(5);
    ck_assert_int_eq(fb_wall_ms(fb_worker_of(stage->record.conn)), before);
    stage_run(stage);
    ck_assert_int_eq(
        fb_wall_ms(fb_worker_of(stage->record.conn)), before + 5); /* the simulated one's */
    stage_end(stage);
    stage_tear_down(stage);
}
END_TEST

START_TEST(lines_end_with_client_and_server)
{
    struct stage *stage = stage_set_up(1);
    fb_conn *conn;

    stage_connect(stage);
    conn = stage->record.conn;
    fb_conn_logf(conn, FB_LOG_ALERT, "%d %s", 1, "alert");
    fb_conn_logf(conn, FB_LOG_ERROR, "error");
    fb_conn_logf(conn, FB_LOG_WARN, "warning");
    fb_conn_logf(conn, FB_LOG_NOTICE, "notice");
    fb_conn_logf(conn, FB_LOG_INFO, "info");
    fb_conn_logf(conn, FB_LOG_DEBUG, "not at this level");
    ck_assert_str_eq(stage_logged(stage),
        "t: [alert] *1 1 alert" CONTEXT "t: [error] *1 error" CONTEXT "t: [warn] *1 warning" CONTEXT
        "t: [notice] *1 notice" CONTEXT "t: [info] *1 info" CONTEXT);
    stage_end(stage);
    stage_tear_down(stage);
}
END_TEST

START_TEST(statistics_are_those_of_all_workers)
{
    struct stage *stage = stage_set_up(4);
    struct counters *others;
    struct slot_id other, dead;
    fb_statistics s = { .size = sizeof(s) };
    struct fake_socket *client;

    ck_assert(slot_acquire(stage->shared, &other));
    ck_assert(slot_acquire(stage->shared, &dead));
    others = &stage->shared->slots[other.slot].counters;
    counters_add(others, COUNTER_ACCEPTS, 100);
    counters_add(others, COUNTER_ACTIVE, 10);
    counters_add(others, COUNTER_WRITING, 3);
    counters_add(&stage->shared->slots[dead.slot].counters, COUNTER_REQUESTS, 1000);
    counters_add(&stage->shared->slots[dead.slot].counters, COUNTER_ACTIVE, 1000);
    slot_release(stage->shared, dead);

    stage->script.data = stop_in_the_middle; /* keeps some of it: it is reading */
    client = stage_connect(stage);
    fake_says(client, "request");
    stage_connect(stage);
    stage_run(stage);
    fb_count_request(stage->record.conn);
    fb_count_request(stage->record.conn);
    fb_get_statistics(fb_worker_of(stage->record.conn), &s);
    ck_assert_uint_eq(s.size, sizeof(s));
    ck_assert_uint_eq(s.accepts, 100); /* the worker counts those */
    ck_assert_uint_eq(s.handled, 2);
    ck_assert_uint_eq(s.requests, 1002);
    ck_assert_uint_eq(s.active, 12);
    ck_assert_uint_eq(s.reading, 1);
    ck_assert_uint_eq(s.writing, 3);
    ck_assert_uint_eq(s.waiting, 8);
    slot_release(stage->shared, other);
    stage_end(stage);
    stage_tear_down(stage);
}
END_TEST

/* A module that was built with an older header knows less of it. */
START_TEST(statistics_fill_what_the_caller_has)
{
    struct stage *stage = stage_set_up(1);
    fb_statistics s;

    stage_connect(stage);
    memset(&s, 0x55, sizeof(s));
    s.size = offsetof(fb_statistics, requests);
    fb_get_statistics(fb_worker_of(stage->record.conn), &s);
    ck_assert_uint_eq(s.size, offsetof(fb_statistics, requests));
    ck_assert_uint_eq(s.handled, 1);
    ck_assert_uint_eq(s.requests, 0x5555555555555555u);
    ck_assert_uint_eq(s.waiting, 0x5555555555555555u);
    stage_end(stage);
    stage_tear_down(stage);
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
