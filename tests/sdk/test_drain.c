/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of an ending worker: notices and ends. */
#include "sdk/scripted_conn.h"

#include <string.h>

#define SPREAD_MS 1000

static void turn_idle(struct scripted_conn *script, uint64_t deadline)
{
    (void)deadline;
    fb_set_idle(script->conn, 1);
}

START_TEST(sessions_are_told_their_deadline)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 };
    fb_test_peer *peer = scripted_conn_open(test, &a);
    uint64_t deadline = _i == 0 ? 0 : 30000;

    scripted_conn_connect(test, &a, &b);
    fb_test_drain(test, deadline);
    ck_assert_uint_eq(a.drainings, 1);
    ck_assert_uint_eq(b.drainings, 1);
    ck_assert_uint_eq(a.deadline, deadline);
    fb_test_says(peer, "still here");
    fb_test_pass(test, deadline == 0 ? 500000 : deadline - 1);
    ck_assert_uint_eq(a.datas, 1);
    ck_assert_uint_eq(a.drainings, 1);
    ck_assert_uint_eq(a.closings + b.closings, 0);
    if (deadline > 0) {
        fb_test_pass(test, 1);
        ck_assert_int_eq(a.reason, FB_DRAINED);
        ck_assert_int_eq(b.reason, FB_DRAINED);
    }
    scripted_finish(&test);
}
END_TEST

START_TEST(those_that_open_later_are_told_what_is_left)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 };

    scripted_conn_open(test, &a);
    fb_test_serve(test, SERVER, FB_TEST_SILENT);
    scripted_conn_begin(&a, &b, SERVER);
    scripted_settle(test);
    fb_test_drain(test, 30000);
    ck_assert_uint_eq(b.drainings, 0); /* never opened */
    fb_test_pass(test, 10000);
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_run(test);
    ck_assert_uint_eq(b.openings, 1);
    ck_assert_uint_eq(b.drainings, 1);
    ck_assert_uint_eq(b.deadline, 20000);
    scripted_conn_connect(test, &a, &c);
    ck_assert_uint_eq(c.drainings, 1);
    ck_assert_uint_eq(c.deadline, 20000);
    scripted_finish(&test);
}
END_TEST

static int pipe_when_opened(struct scripted_conn *script)
{
    fb_pipe(script->conn, script->other->conn, NULL);
    return 0;
}

static int close_when_opened(struct scripted_conn *script)
{
    fb_write(script->conn, "bye", 3);
    fb_close(script->conn);
    return 0;
}

/* Piped connections and closing connections learn of the end alone. */
START_TEST(who_is_not_told)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 },
                         b = { .opened = _i == 0 ? pipe_when_opened : close_when_opened };
    struct scripted_conn c = { 0 };
    fb_test_peer *peer = scripted_conn_open(test, &a);

    scripted_conn_open(test, &c);
    fb_test_drain(test, 30000);
    b.other = &c;
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    scripted_conn_begin(&a, &b, SERVER);
    scripted_settle(test);
    ck_assert_uint_eq(b.openings, 1);
    ck_assert_uint_eq(b.drainings, 0);
    fb_test_says(peer, "x");
    scripted_finish(&test);
}
END_TEST

START_TEST(idle_ones_close_bit_by_bit)
{
    enum { N = 100 };
    fb_test *test = scripted_start();
    struct scripted_conn scripts[N], busy = { 0 };
    unsigned left = N, steps = 0;

    scripted_conn_open(test, &busy);
    for (int i = 0; i < N; i++) {
        scripts[i] = (struct scripted_conn) { .draining = i % 2 ? turn_idle : NULL };
        scripted_conn_open(test, &scripts[i]);
        if (i % 2 == 0)
            fb_set_idle(scripts[i].conn, 1);
    }
    fb_test_pass(test, 100000); /* while nothing ends they stay */
    fb_test_drain(test, 30000);
    for (unsigned ms = 0; ms <= SPREAD_MS; ms += 50) {
        unsigned now = 0;

        for (int i = 0; i < N; i++)
            now += scripts[i].closings == 0;
        ck_assert_uint_le(left - now, N / 8); /* never many at once */
        steps += now < left;
        left = now;
        fb_test_pass(test, 50);
    }
    ck_assert_uint_ge(steps, 10);
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(scripts[i].closings, 1);
        ck_assert_int_eq(scripts[i].reason, FB_FINISHED);
    }
    ck_assert_uint_eq(busy.closings, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(with_little_time_they_close_sooner)
{
    enum { N = 20 };
    fb_test *test = scripted_start();
    struct scripted_conn scripts[N];

    for (int i = 0; i < N; i++) {
        scripts[i] = (struct scripted_conn) { .draining = turn_idle };
        scripted_conn_open(test, &scripts[i]);
    }
    fb_test_drain(test, 200);
    fb_test_pass(test, 100);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(scripts[i].reason, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

static size_t answer_idle(struct scripted_conn *script, fb_bytes in)
{
    fb_set_idle(script->conn, 0);
    fb_write(script->conn, "answer", 6);
    fb_set_idle(script->conn, 1);
    return in.n;
}

/* A request is answered before the session ends. */
START_TEST(who_turns_idle_later_closes_then)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { .data = answer_idle };
    fb_test_peer *peer = scripted_conn_open(test, &a);

    fb_test_drain(test, 30000);
    fb_test_pass(test, 5000);
    ck_assert_uint_eq(a.closings, 0);
    fb_test_says(peer, "question");
    ck_assert_str_eq(peer_heard(peer), "answer");
    fb_test_pass(test, 20);
    ck_assert_int_eq(a.reason, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

static int idle_when_opened(struct scripted_conn *script)
{
    fb_set_idle(script->conn, 1);
    return 0;
}

/* A client accepted just before the drain, whose first request is on its way, is answered. */
START_TEST(a_fresh_client_may_ask_once)
{
    fb_test *test = _i == 0
                        ? scripted_start()
                        : fb_test_start(&fb_protocol_scripted, "scripted; first_byte_timeout 1m;");
    struct scripted_conn asks = { .opened = idle_when_opened, .data = answer_idle },
                         silent = { .opened = idle_when_opened };
    fb_test_peer *peer;

    fb_test_pass(test, 100000);
    peer = scripted_conn_open(test, &asks);
    scripted_conn_open(test, &silent);
    fb_test_pass(test, 10);
    fb_test_drain(test, 30000);
    fb_test_pass(test, SPREAD_MS - 20);
    ck_assert_uint_eq(asks.closings + silent.closings, 0);
    fb_test_says(peer, "question");
    ck_assert_str_eq(peer_heard(peer), "answer");
    fb_test_pass(test, 40);
    ck_assert_int_eq(asks.reason, FB_FINISHED);
    ck_assert_int_eq(silent.reason, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

START_TEST(who_is_busy_again_stays)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 };

    scripted_conn_open(test, &a);
    fb_set_idle(a.conn, 1);
    fb_set_idle(a.conn, 0);
    fb_test_drain(test, 30000);
    fb_test_pass(test, 29999);
    ck_assert_uint_eq(a.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(a.reason, FB_DRAINED);
    scripted_finish(&test);
}
END_TEST

START_TEST(an_idle_one_sends_what_it_has)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { .draining = turn_idle };
    fb_test_peer *peer = scripted_conn_open(test, &a);

    fb_test_take(peer, 0);
    fb_write(a.conn, "rest", 4);
    scripted_settle(test);
    fb_test_drain(test, 30000);
    fb_test_pass(test, 5000);
    ck_assert_uint_eq(a.closings, 0);
    fb_test_take(peer, SIZE_MAX);
    ck_assert_str_eq(peer_heard(peer), "rest");
    ck_assert_int_eq(a.reason, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

static void end_at_once(struct scripted_conn *script, uint64_t deadline)
{
    (void)deadline;
    fb_abort(script->conn);
    if (script->other != NULL && script->other->conn != NULL)
        fb_abort(script->other->conn);
}

START_TEST(one_may_end_others_when_it_is_told)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { .draining = end_at_once }, b = { .draining = end_at_once };

    a.other = &b;
    b.other = &a;
    scripted_conn_open(test, &a);
    scripted_conn_open(test, &b);
    fb_test_drain(test, 30000);
    ck_assert_uint_eq(a.drainings + b.drainings, 1);
    ck_assert_int_eq(a.reason, FB_ABORTED);
    ck_assert_int_eq(b.reason, FB_ABORTED);
    scripted_finish(&test);
}
END_TEST

/* Piped connections go on until the deadline. */
START_TEST(a_pipe_is_let_go_on)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 };
    fb_test_peer *peer = scripted_conn_open(test, &a),
                 *server = scripted_conn_connect(test, &a, &b);

    fb_set_idle(a.conn, 1);
    fb_pipe(a.conn, b.conn, NULL);
    scripted_settle(test);
    fb_test_drain(test, 30000);
    fb_test_pass(test, 20000);
    ck_assert_uint_eq(a.drainings + b.drainings, 0);
    fb_test_says(peer, "still here");
    ck_assert_str_eq(peer_heard(server), "still here");
    fb_test_pass(test, 10000);
    ck_assert_int_eq(a.reason, FB_DRAINED);
    ck_assert_int_eq(b.reason, FB_DRAINED);
    scripted_finish(&test);
}
END_TEST

/* Sessions open at the end have the same reason, in any order of creation. */
START_TEST(all_are_drained_at_the_end)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

    scripted_conn_open(test, &d); /* a slot below that of its owner */
    scripted_conn_open(test, &a);
    scripted_conn_connect(test, &a, &b);
    fb_abort(d.conn);
    scripted_settle(test);
    scripted_conn_connect(test, &a, &c);
    net_fail_all(&test->workers->worker.stream.net, FB_DRAINED);
    ck_assert_int_eq(a.reason, FB_DRAINED);
    ck_assert_int_eq(b.reason, FB_DRAINED);
    ck_assert_int_eq(c.reason, FB_DRAINED);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, sessions_are_told_their_deadline, 0, 2);
    tcase_add_test(tcase, those_that_open_later_are_told_what_is_left);
    tcase_add_loop_test(tcase, who_is_not_told, 0, 2);
    tcase_add_test(tcase, idle_ones_close_bit_by_bit);
    tcase_add_test(tcase, with_little_time_they_close_sooner);
    tcase_add_test(tcase, who_turns_idle_later_closes_then);
    tcase_add_loop_test(tcase, a_fresh_client_may_ask_once, 0, 2);
    tcase_add_test(tcase, who_is_busy_again_stays);
    tcase_add_test(tcase, an_idle_one_sends_what_it_has);
    tcase_add_test(tcase, one_may_end_others_when_it_is_told);
    tcase_add_test(tcase, a_pipe_is_let_go_on);
    tcase_add_test(tcase, all_are_drained_at_the_end);
}

TEST_MAIN("sdk_drain", add_tests)
