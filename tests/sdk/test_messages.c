/* SPDX-License-Identifier: BSD-2-Clause */
/* References, and messages within a worker. */
#include "sdk/scripted_conn.h"

#include <string.h>

struct two {
    fb_test *test;
    struct scripted_conn a, b;
};

static void set_up(struct two *two)
{
    memset(two, 0, sizeof(*two));
    two->test = scripted_start();
    scripted_conn_open(two->test, &two->a);
    scripted_conn_open(two->test, &two->b);
}

static uint64_t send_to(struct two *two, fb_ref to)
{
    return fb_send_message(two->a.conn, to, "hello", 5);
}

START_TEST(a_reference_is_found)
{
    struct two two;
    fb_worker *worker;
    fb_ref a, b;

    set_up(&two);
    worker = fb_test_worker(two.test);
    a = fb_ref_of(two.a.conn);
    b = fb_ref_of(two.b.conn);
    ck_assert_uint_ne(a, 0);
    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(fb_ref_of(two.a.conn), a); /* with an answer */
    ck_assert_ptr_eq(fb_find(worker, a), two.a.conn);
    ck_assert_ptr_eq(fb_find(worker, b), two.b.conn);
    ck_assert_ptr_null(fb_find(worker, 0));
    ck_assert_ptr_null(fb_find(worker, b + 1));
    ck_assert_ptr_null(fb_find(worker, UINT64_MAX));
    ck_assert_ptr_null(fb_find(worker, a & UINT32_MAX)); /* another worker's */
    fb_abort(two.a.conn);
    ck_assert_ptr_eq(fb_find(worker, a), two.a.conn); /* valid until `closed` returns */
    scripted_settle(two.test);
    ck_assert_ptr_null(fb_find(worker, a));
    scripted_finish(&two.test);
}
END_TEST

START_TEST(it_never_means_another)
{
    enum { N = 300 };
    fb_test *test = scripted_start();
    struct scripted_conn scripts[N];
    fb_ref refs[N];

    for (int i = 0; i < N; i++) {
        scripts[i] = (struct scripted_conn) { 0 };
        scripted_conn_open(test, &scripts[i]);
        refs[i] = fb_ref_of(scripts[i].conn);
        for (int k = 0; k < i; k++) {
            ck_assert_uint_ne(refs[k], refs[i]);
            ck_assert_ptr_eq(fb_find(fb_test_worker(test), refs[k]), scripts[k].conn);
        }
        if (i % 3 == 0)
            fb_abort(scripts[i / 2].conn != NULL ? scripts[i / 2].conn : scripts[i].conn);
        scripted_settle(test);
    }
    scripted_finish(&test);
}
END_TEST

static int decline_message(struct scripted_conn *script, fb_ref from, fb_bytes message)
{
    (void)script;
    (void)from;
    (void)message;
    return -1;
}

START_TEST(it_is_handled_or_declined)
{
    struct two two;
    uint64_t number;

    set_up(&two);
    two.b.message = _i == 0 ? NULL : decline_message;
    number = send_to(&two, fb_ref_of(two.b.conn));
    ck_assert_uint_ne(number, 0);
    ck_assert_uint_eq(two.b.messages + two.a.answers, 0); /* no callback within the call */
    scripted_settle(two.test);
    ck_assert_uint_eq(two.b.messages, 1);
    ck_assert_str_eq(two.b.last, "hello");
    ck_assert_uint_eq(two.b.from, fb_ref_of(two.a.conn));
    ck_assert_uint_eq(two.a.answers, 1);
    ck_assert_uint_eq(two.a.number, number);
    ck_assert_int_eq(two.a.outcome, _i == 0 ? FB_MESSAGE_HANDLED : FB_MESSAGE_DECLINED);
    scripted_finish(&two.test);
}
END_TEST

static void pipe_both(struct two *two)
{
    static struct scripted_conn third;

    scripted_conn_open(two->test, &third);
    fb_pipe(two->b.conn, third.conn, NULL);
}

static void close_slowly(struct two *two)
{
    struct fb_test_peer *peer;

    STAILQ_FOREACH (peer, &two->test->peers, link)
        fb_test_take(peer, 0);
    fb_write(two->b.conn, "unsent", 6);
    fb_close(two->b.conn);
}

static void abort_b(struct two *two)
{
    fb_abort(two->b.conn);
}

static void stop_b(struct two *two)
{
    fb_stop(two->b.conn);
}

static void shut_b(struct two *two)
{
    fb_shutdown(two->b.conn);
}

static void end_peer_of_b(struct two *two)
{
    struct fb_test_peer *peer;

    two->b.eof = scripted_ignore_eof;
    STAILQ_FOREACH (peer, &two->test->peers, link)
        fb_test_shut(peer);
    scripted_settle(two->test);
    ck_assert_uint_eq(two->b.eofs, 1);
}

static void drain_b(struct two *two)
{
    fb_test_drain(two->test, 0);
    ck_assert_uint_eq(two->b.drainings, 1);
}

static void pass_b_on(struct two *two)
{
    ck_assert_int_eq(fb_become(two->b.conn, &scripted_conn_ops, &two->b), 0);
}

static const struct {
    void (*happens)(struct two *two);
    unsigned heard;
    fb_outcome outcome;
} states[] = {
    { stop_b, 1, FB_MESSAGE_HANDLED },
    { shut_b, 1, FB_MESSAGE_HANDLED },
    { end_peer_of_b, 1, FB_MESSAGE_HANDLED },
    { drain_b, 1, FB_MESSAGE_HANDLED },
    { pass_b_on, 1, FB_MESSAGE_HANDLED },
    { pipe_both, 0, FB_MESSAGE_DECLINED }, /* only `closed` is called for it */
    { close_slowly, 0, FB_MESSAGE_UNKNOWN },
    { abort_b, 0, FB_MESSAGE_UNKNOWN },
};

START_TEST(to_a_connection_in_each_state)
{
    struct two two;
    fb_ref b;

    set_up(&two);
    two.a.eof = scripted_ignore_eof;
    b = fb_ref_of(two.b.conn);
    states[_i].happens(&two);
    send_to(&two, b);
    scripted_settle(two.test);
    ck_assert_uint_eq(two.b.messages, states[_i].heard);
    ck_assert_uint_eq(two.a.answers, 1);
    ck_assert_int_eq(two.a.outcome, states[_i].outcome);
    scripted_finish(&two.test);
}
END_TEST

/* A connection to a server is sent messages before it is established. */
START_TEST(to_a_connection_that_has_not_opened)
{
    struct two two;
    struct scripted_conn server = { 0 };

    set_up(&two);
    fb_test_serve(two.test, SERVER, FB_TEST_SILENT);
    server.conn = scripted_conn_begin(&two.b, &server, SERVER);
    send_to(&two, fb_ref_of(server.conn));
    scripted_settle(two.test);
    ck_assert_uint_eq(server.openings, 0);
    ck_assert_uint_eq(server.messages, 1);
    ck_assert_int_eq(two.a.outcome, FB_MESSAGE_HANDLED);
    scripted_finish(&two.test);
}
END_TEST

static void send_and_end(struct scripted_conn *script, fb_reason reason)
{
    (void)reason;
    script->from = fb_ref_of(script->conn);
    ck_assert_ptr_eq(fb_find(fb_worker_of(script->conn), script->from), script->conn);
    ck_assert_uint_ne(fb_send_message(script->conn, script->n, "last", 4), 0);
    ck_assert_uint_ne(fb_send_message(script->conn, script->from, "to itself", 9), 0);
}

/* Messages of a last callback arrive, and no outcome does. The sender's reference, possibly its
 * first, names nothing on arrival. */
START_TEST(from_a_connection_that_ends)
{
    struct two two;

    set_up(&two);
    two.a.n = fb_ref_of(two.b.conn);
    two.a.closed = send_and_end;
    fb_abort(two.a.conn);
    scripted_settle(two.test);
    ck_assert_uint_eq(two.b.messages, 1);
    ck_assert_str_eq(two.b.last, "last");
    ck_assert_uint_eq(two.b.from, two.a.from);
    ck_assert_ptr_null(fb_find(fb_test_worker(two.test), two.b.from));
    ck_assert_uint_eq(two.a.answers, 0);
    ck_assert_uint_eq(two.a.messages, 0);
    ck_assert_uint_ne(fb_send_message(two.b.conn, two.b.from, "late", 4), 0);
    scripted_settle(two.test);
    ck_assert_int_eq(two.b.outcome, FB_MESSAGE_UNKNOWN);
    scripted_finish(&two.test);
}
END_TEST

static const fb_ref nobodies[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 40 };

START_TEST(there_is_no_such_connection)
{
    struct two two;
    uint64_t number;

    set_up(&two);
    number = send_to(&two, nobodies[_i]);
    ck_assert_uint_ne(number, 0);
    ck_assert_uint_eq(two.a.answers, 0);
    scripted_settle(two.test);
    ck_assert_uint_eq(two.a.answers, 1);
    ck_assert_uint_eq(two.a.number, number);
    ck_assert_int_eq(two.a.outcome, FB_MESSAGE_UNKNOWN);
    scripted_finish(&two.test);
}
END_TEST

START_TEST(to_oneself_and_to_a_server)
{
    struct two two;
    struct scripted_conn server = { 0 };

    set_up(&two);
    scripted_conn_connect(two.test, &two.b, &server);
    send_to(&two, fb_ref_of(two.a.conn));
    send_to(&two, fb_ref_of(server.conn));
    scripted_settle(two.test);
    ck_assert_uint_eq(two.a.messages, 1);
    ck_assert_uint_eq(server.messages, 1);
    ck_assert_uint_eq(two.a.answers, 2);

    /* a server's connection is answered through an operation missing in its table */
    fb_send_message(server.conn, fb_ref_of(two.b.conn), "x", 1);
    scripted_settle(two.test);
    ck_assert_uint_eq(two.b.messages, 1);
    scripted_finish(&two.test);
}
END_TEST

START_TEST(how_long_it_may_be)
{
    static uint8_t bytes[FB_MESSAGE_MAX + 1];
    struct two two;
    fb_ref b;

    set_up(&two);
    b = fb_ref_of(two.b.conn);
    ck_assert_uint_eq(fb_send_message(two.a.conn, b, bytes, FB_MESSAGE_MAX + 1), 0);
    ck_assert_uint_ne(fb_send_message(two.a.conn, b, bytes, FB_MESSAGE_MAX), 0);
    scripted_settle(two.test);
    ck_assert_uint_eq(two.b.last_n, FB_MESSAGE_MAX);
    ck_assert_uint_ne(fb_send_message(two.a.conn, b, NULL, 0), 0);
    scripted_settle(two.test);
    ck_assert_uint_eq(two.b.last_n, 0);
    ck_assert_uint_eq(two.b.messages, 2);
    scripted_finish(&two.test);
}
END_TEST

static void count_up(struct scripted_conn *script, uint64_t number, fb_outcome outcome)
{
    (void)outcome;
    ck_assert_uint_eq(number, ++script->n); /* in the order of sending */
}

START_TEST(a_thousand_may_be_under_way)
{
    struct two two;
    fb_ref b;

    set_up(&two);
    b = fb_ref_of(two.b.conn);
    two.a.answered = count_up;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1024; i++)
            ck_assert_uint_ne(send_to(&two, b), 0);
        ck_assert_uint_eq(send_to(&two, b), 0);
        ck_assert_uint_ne(fb_send_message(two.b.conn, b, "x", 1), 0); /* two numbers */
        scripted_settle(two.test);
        two.a.n++; /* the other's number */
    }
    ck_assert_uint_eq(two.a.answers, 3 * 1024);
    scripted_finish(&two.test);
}
END_TEST

START_TEST(the_sender_has_gone)
{
    struct two two;
    struct scripted_conn c = { 0 };

    set_up(&two);
    for (int i = 0; i < 10; i++)
        send_to(&two, i % 2 ? fb_ref_of(two.b.conn) : 0);
    fb_abort(two.a.conn);
    scripted_settle(two.test);
    ck_assert_uint_eq(two.a.answers, 0);
    ck_assert_uint_eq(two.b.messages, 5);
    scripted_conn_open(two.test, &c); /* perhaps in its place */
    scripted_settle(two.test);
    ck_assert_uint_eq(c.answers, 0);
    scripted_finish(&two.test);
}
END_TEST

static int answer_by_message(struct scripted_conn *script, fb_ref from, fb_bytes message)
{
    if (script->n-- > 0)
        fb_send_message(script->conn, from, message.p, message.n);
    return 0;
}

START_TEST(it_goes_to_and_fro)
{
    struct two two;

    set_up(&two);
    two.a.message = two.b.message = answer_by_message;
    two.a.n = two.b.n = 500;
    send_to(&two, fb_ref_of(two.b.conn));
    scripted_settle(two.test);
    ck_assert_uint_eq(two.a.messages, 500);
    ck_assert_uint_eq(two.b.messages, 501);
    ck_assert_uint_eq(two.a.answers, 501);
    ck_assert_str_eq(two.a.last, "hello");
    scripted_finish(&two.test);
}
END_TEST

static int close_both(struct scripted_conn *script, fb_ref from, fb_bytes message)
{
    (void)message;
    fb_write(script->conn, "bye", 3);
    fb_close(script->conn);
    fb_abort(fb_find(fb_worker_of(script->conn), from));
    return 0;
}

START_TEST(a_message_may_end_both)
{
    struct two two;

    set_up(&two);
    two.b.message = close_both;
    send_to(&two, fb_ref_of(two.b.conn));
    send_to(&two, fb_ref_of(two.b.conn));
    scripted_settle(two.test);
    ck_assert_uint_eq(two.b.messages, 1);
    ck_assert_int_eq(two.b.reason, FB_FINISHED);
    ck_assert_int_eq(two.a.reason, FB_ABORTED);
    ck_assert_uint_eq(two.a.answers, 0);
    scripted_finish(&two.test);
}
END_TEST

/* Messages that were not answered when the worker ends are given back. */
START_TEST(the_worker_ends)
{
    struct two two;

    set_up(&two);
    for (int i = 0; i < 100; i++)
        send_to(&two, fb_ref_of(two.b.conn));
    scripted_finish(&two.test);
}
END_TEST

START_TEST(each_allocation_fails)
{
    struct two two;
    uint64_t number;
    fb_ref b;

    set_up(&two);
    fb_test_refuse_memory(two.test, (uint64_t)_i, 1);
    b = fb_ref_of(two.b.conn);
    number = two.a.conn != NULL ? send_to(&two, b) : 0;
    scripted_settle(two.test);
    if (number != 0 && two.a.conn != NULL)
        ck_assert_uint_eq(two.a.answers, 1); /* exactly once, under any lack of memory */
    scripted_finish(&two.test);
}
END_TEST

static void send_again(struct scripted_conn *script, uint64_t number, fb_outcome outcome)
{
    (void)number;
    (void)outcome;
    ck_assert_uint_ne(fb_send_message(script->conn, 0, "x", 1), 0);
}

/* A connection with endless retries does not keep connections from a turn. */
START_TEST(what_is_answered_at_once_is_answered_next_turn)
{
    struct two two;

    set_up(&two);
    two.a.answered = send_again;
    send_to(&two, 0);
    for (unsigned i = 0; i < 10; i++) {
        net_flush(&two.test->workers->worker.stream.net);
        worker_turn(&two.test->workers->worker);
        ck_assert_uint_le(two.a.answers, i + 1);
    }
    ck_assert_uint_ge(two.a.answers, 5);
    two.a.answered = NULL;
    scripted_finish(&two.test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_reference_is_found);
    tcase_add_test(tcase, it_never_means_another);
    tcase_add_loop_test(tcase, it_is_handled_or_declined, 0, 2);
    tcase_add_loop_test(tcase, to_a_connection_in_each_state, 0, countof(states));
    tcase_add_test(tcase, to_a_connection_that_has_not_opened);
    tcase_add_test(tcase, from_a_connection_that_ends);
    tcase_add_loop_test(tcase, there_is_no_such_connection, 0, countof(nobodies));
    tcase_add_test(tcase, to_oneself_and_to_a_server);
    tcase_add_test(tcase, how_long_it_may_be);
    tcase_add_test(tcase, a_thousand_may_be_under_way);
    tcase_add_test(tcase, the_sender_has_gone);
    tcase_add_test(tcase, it_goes_to_and_fro);
    tcase_add_test(tcase, a_message_may_end_both);
    tcase_add_test(tcase, what_is_answered_at_once_is_answered_next_turn);
    tcase_add_test(tcase, the_worker_ends);
    tcase_add_loop_test(tcase, each_allocation_fails, 0, 10);
}

TEST_MAIN("sdk_messages", add_tests)
