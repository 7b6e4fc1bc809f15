/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_pipe(): two connections of a worker, and the calls forbidden afterwards. */
#include "sdk/scripted_conn.h"

#include <string.h>

struct two {
    fb_test *test;
    struct scripted_conn a, b;
    fb_test_peer *client, *server;
};

static void set_up(struct two *two)
{
    memset(two, 0, sizeof(*two));
    two->test = scripted_start();
    two->client = scripted_conn_open(two->test, &two->a);
    two->server = scripted_conn_connect(two->test, &two->a, &two->b);
}

START_TEST(a_client_and_its_server)
{
    struct two two;

    set_up(&two);
    fb_pipe(two.a.conn, two.b.conn, NULL);
    scripted_settle(two.test);
    fb_test_says(two.client, "question");
    ck_assert_str_eq(peer_heard(two.server), "question");
    fb_test_says(two.server, "answer");
    ck_assert_str_eq(peer_heard(two.client), "answer");
    fb_test_shut(two.client);
    ck_assert(fb_test_has_ended(two.server) && !fb_test_is_closed(two.server));
    fb_test_shut(two.server);
    ck_assert(fb_test_is_closed(two.server) && fb_test_is_closed(two.client));
    ck_assert_int_eq(two.a.reason, FB_FINISHED);
    ck_assert_int_eq(two.b.reason, FB_FINISHED);
    ck_assert_uint_eq(two.a.datas + two.b.datas + two.a.eofs + two.b.eofs, 0);
    scripted_finish(&two.test);
}
END_TEST

START_TEST(calls_that_a_pipe_does_not_heed)
{
    struct two two;
    struct scripted_conn sender = { 0 };

    set_up(&two);
    scripted_conn_open(two.test, &sender);
    fb_timer(two.a.conn, 1, 1000);
    fb_set_timeout(two.a.conn, 2000);
    fb_pipe(two.a.conn, two.b.conn, NULL);
    fb_pipe(two.a.conn, two.b.conn, NULL);
    fb_pipe(two.b.conn, two.a.conn, NULL);
    fb_pipe(two.a.conn, sender.conn, NULL);
    fb_pipe(sender.conn, sender.conn, NULL);
    fb_stop(two.a.conn);
    fb_shutdown(two.b.conn);
    fb_set_timeout(two.b.conn, 2000);
    fb_send_message(sender.conn, fb_ref_of(two.a.conn), "x", 1);
    scripted_settle(two.test);
    fb_test_pass(two.test, 5000);
    ck_assert_uint_eq(two.a.timers + two.a.messages, 0);
    ck_assert_int_eq(sender.outcome, FB_MESSAGE_DECLINED);
    ck_assert_uint_eq(two.a.closings + two.b.closings + sender.closings, 0);
    fb_test_says(two.client, "question");
    ck_assert_str_eq(peer_heard(two.server), "question");
    scripted_finish(&two.test);
}
END_TEST

START_TEST(its_timeout)
{
    const fb_pipe_options options = { .size = sizeof(options), .timeout = 3000 };
    struct two two;

    set_up(&two);
    fb_set_timeout(two.a.conn, 1000); /* over by now */
    fb_pipe(two.a.conn, two.b.conn, &options);
    scripted_settle(two.test);
    fb_test_pass(two.test, 2999);
    ck_assert_uint_eq(two.a.closings + two.b.closings, 0);
    fb_test_pass(two.test, 1);
    ck_assert_int_eq(two.a.reason, FB_TIMED_OUT);
    ck_assert_int_eq(two.b.reason, FB_TIMED_OUT);
    scripted_finish(&two.test);
}
END_TEST

static void note_first(fb_conn *b, void *state)
{
    struct scripted_conn *script = state;

    ck_assert_ptr_eq(script->conn, b);
    script->n += fb_received(b);
}

START_TEST(its_other_options)
{
    const fb_pipe_options options = { .size = sizeof(options),
        .timeout = 3000,
        .rate_from_a = 4,
        .rate_from_b = 8,
        .flags = FB_PIPE_ENDS_TOGETHER,
        .buffer = 2,
        .first_byte = note_first };
    struct two two;

    set_up(&two);
    fb_pipe(two.a.conn, two.b.conn, &options);
    scripted_settle(two.test);
    fb_test_says(two.client, "question");
    fb_test_run(two.test);
    ck_assert_str_eq(peer_heard(two.server), "qu"); /* for half a second */
    fb_test_pass(two.test, 500);
    ck_assert_str_eq(peer_heard(two.server), "ques");
    fb_test_says(two.server, "answer");
    fb_test_run(two.test);
    ck_assert_uint_eq(two.b.n, 2);
    for (int i = 0; i < 8; i++)
        fb_test_pass(two.test, 250);
    ck_assert_str_eq(peer_heard(two.server), "question");
    ck_assert_str_eq(peer_heard(two.client), "answer");
    ck_assert_uint_eq(two.b.n, 2);
    fb_test_shut(two.server);
    scripted_settle(two.test);
    ck_assert_int_eq(two.b.reason, FB_PEER_GONE);
    ck_assert_int_eq(two.a.reason, FB_FINISHED);
    scripted_finish(&two.test);
}
END_TEST

/* The older header knows of nothing behind the timeout. */
START_TEST(options_of_an_older_header)
{
    fb_pipe_options options = { .size = offsetof(fb_pipe_options, rate_from_a), .timeout = 3000 };
    struct two two;

    memset((char *)&options + options.size, 1, sizeof(options) - options.size);
    set_up(&two);
    fb_pipe(two.a.conn, two.b.conn, &options);
    scripted_settle(two.test);
    fb_test_says(two.client, "question");
    ck_assert_str_eq(peer_heard(two.server), "question");
    fb_test_says(two.server, "answer");
    ck_assert_str_eq(peer_heard(two.client), "answer");
    fb_test_shut(two.client);
    ck_assert(fb_test_has_ended(two.server) && !fb_test_is_closed(two.server));
    fb_test_pass(two.test, 3000);
    ck_assert_int_eq(two.a.reason, FB_TIMED_OUT);
    scripted_finish(&two.test);
}
END_TEST

/* A silent client is closed while its output waits: the pipe's time alone runs. */
START_TEST(a_silent_client_is_closed)
{
    const fb_pipe_options options = { .size = sizeof(options), .timeout = 20000 };
    struct two two = { .test = fb_test_start(&fb_protocol_scripted,
                           "scripted; first_byte_timeout 5s; idle_timeout 10s;") };

    two.client = scripted_conn_open(two.test, &two.a);
    two.server = scripted_conn_connect(two.test, &two.a, &two.b);
    fb_pipe(two.a.conn, two.b.conn, &options);
    scripted_settle(two.test);
    fb_test_take(two.client, 0);
    fb_test_says(two.server, "greeting");
    fb_test_run(two.test);
    fb_close(two.a.conn);
    scripted_settle(two.test);
    fb_test_pass(two.test, 19999);
    ck_assert_uint_eq(two.a.closings + two.b.closings, 0);
    fb_test_pass(two.test, 1);
    ck_assert_int_eq(two.a.reason, FB_TIMED_OUT);
    ck_assert_int_eq(two.b.reason, FB_TIMED_OUT);
    scripted_finish(&two.test);
}
END_TEST

START_TEST(without_memory_both_end)
{
    struct two two;

    set_up(&two);
    fb_test_refuse_memory(two.test, 0, 1);
    fb_pipe(two.a.conn, two.b.conn, NULL);
    scripted_settle(two.test);
    ck_assert_int_eq(two.a.reason, FB_NO_MEMORY);
    ck_assert_int_eq(two.b.reason, FB_NO_MEMORY);
    scripted_finish(&two.test);
}
END_TEST

static void close_b(struct two *two)
{
    fb_write(two->b.conn, "last words", 10);
    fb_close(two->b.conn);
}

static void abort_b(struct two *two)
{
    fb_abort(two->b.conn);
}

static const struct {
    void (*ends)(struct two *two);
    fb_reason a, b;
} endings[] = {
    { close_b, FB_FINISHED, FB_FINISHED },
    { abort_b, FB_ABORTED, FB_ABORTED },
};

START_TEST(one_of_them_ends_already)
{
    struct two two;

    set_up(&two);
    endings[_i / 2].ends(&two);
    if (_i % 2)
        fb_pipe(two.a.conn, two.b.conn, NULL);
    else
        fb_pipe(two.b.conn, two.a.conn, NULL);
    scripted_settle(two.test);
    ck_assert_int_eq(two.a.reason, endings[_i / 2].a);
    ck_assert_int_eq(two.b.reason, endings[_i / 2].b);
    ck_assert_str_eq(peer_heard(two.server), _i / 2 == 0 ? "last words" : "");
    scripted_finish(&two.test);
}
END_TEST

static const fb_reason broken[] = { FB_PIPE_BROKEN, FB_ABORTED };

/* A peer breaks its connection: the second connection gets the notice, and is reset. */
START_TEST(one_of_them_breaks)
{
    fb_protocol old;
    struct two two;
    struct server *server;

    set_up(&two);
    server = (struct server *)session_server_of(two.a.conn);
    old = *server->protocol;
    old.api = 3;
    if (_i / 2 != 0) /* a module built before API 4 */
        server->protocol = &old;
    fb_pipe(two.a.conn, two.b.conn, NULL);
    scripted_settle(two.test);
    fb_test_says(two.client, "question");
    ck_assert_str_eq(peer_heard(two.server), "question");
    fb_test_reset(_i % 2 == 0 ? two.server : two.client);
    scripted_settle(two.test);
    ck_assert_int_eq(two.b.reason, _i % 2 == 0 ? FB_RESET : broken[_i / 2]);
    ck_assert_int_eq(two.a.reason, _i % 2 == 0 ? broken[_i / 2] : FB_RESET);
    ck_assert(fb_test_was_reset(_i % 2 == 0 ? two.client : two.server));
    server->protocol = &fb_protocol_scripted;
    scripted_finish(&two.test);
}
END_TEST

static size_t pipe_behind_header(struct scripted_conn *script, fb_bytes in)
{
    static const fb_frame_limit limit = { .most = 100, .timeout = 1000 };
    fb_bytes rest = in, line;

    if (fb_frame_until(script->conn, &rest, "\n", 1, &limit, &line)) {
        scripted_conn_begin(script, script->other, SERVER);
        fb_write(script->other->conn, "header ", 7);
        fb_pipe(script->conn, script->other->conn, NULL);
    }
    return in.n - rest.n;
}

/* Pipes at once, like a proxy, and the server may take its time. */
START_TEST(piped_before_the_server_has_answered)
{
    fb_test *test = scripted_start();
    struct scripted_conn b = { 0 }, a = { .data = pipe_behind_header, .other = &b };
    fb_test_peer *client = scripted_conn_open(test, &a), *server;
    fb_test_server *there = fb_test_serve(test, SERVER, FB_TEST_SILENT);

    fb_test_says(client, "li");
    fb_test_run(test);
    fb_test_says(client, "ne\nbody");
    fb_test_run(test);
    fb_test_says(client, " and more");
    fb_test_pass(test, 50000);
    ck_assert_uint_eq(a.closings, 0);
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    server = fb_test_accept(there);
    ck_assert_str_eq(peer_heard(server), "header body and more");
    ck_assert_uint_eq(b.openings, 0);
    fb_test_pass(test, 500000);
    ck_assert_uint_eq(a.closings, 0);
    fb_abort(a.conn);
    scripted_settle(test);
    ck_assert_int_eq(b.reason, FB_ABORTED);
    scripted_finish(&test);
}
END_TEST

START_TEST(the_server_never_answers)
{
    fb_test *test = scripted_start();
    struct scripted_conn b = { 0 }, a = { .data = pipe_behind_header, .other = &b };
    fb_test_peer *client = scripted_conn_open(test, &a);

    fb_test_serve(test, SERVER, FB_TEST_SILENT);
    fb_test_says(client, "line\n");
    fb_test_pass(test, 59999);
    ck_assert_uint_eq(a.closings + b.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(a.reason, FB_TIMED_OUT);
    ck_assert_int_eq(b.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_client_and_its_server);
    tcase_add_test(tcase, calls_that_a_pipe_does_not_heed);
    tcase_add_test(tcase, its_timeout);
    tcase_add_test(tcase, its_other_options);
    tcase_add_test(tcase, options_of_an_older_header);
    tcase_add_test(tcase, a_silent_client_is_closed);
    tcase_add_test(tcase, without_memory_both_end);
    tcase_add_loop_test(tcase, one_of_them_ends_already, 0, 4);
    tcase_add_loop_test(tcase, one_of_them_breaks, 0, 4);
    tcase_add_test(tcase, piped_before_the_server_has_answered);
    tcase_add_test(tcase, the_server_never_answers);
}

TEST_MAIN("sdk_pipes", add_tests)
