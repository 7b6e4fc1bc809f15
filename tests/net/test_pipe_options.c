/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes with options: rates, bytes at once, ends that end together, and the first byte. */
#include "support/owner.h"

#include <string.h>

struct two {
    struct fixture *fixture;
    struct owner *a, *b;
};

static struct two open_two(int i)
{
    struct two two = { .fixture = fixture_start_net(i % FIXTURE_EVENTS, 4) };

    two.a = owner_open(two.fixture);
    two.b = owner_open(two.fixture);
    return two;
}

static void settle_both(struct fixture *fixture)
{
    fixture_settle(fixture);
    fixture_run(fixture);
}

static void pipe_both(struct two *two, const struct conn_pipe_options *options)
{
    ck_assert_int_eq(conn_pipe(two->a->conn, two->b->conn, options), 0);
    settle_both(two->fixture);
}

#define PIPE_BOTH(two, ...) pipe_both(two, &(const struct conn_pipe_options) { __VA_ARGS__ })

static void say_bytes(struct owner *owner, size_t n)
{
    static const uint8_t bytes[10000];

    ck_assert_uint_le(n, sizeof(bytes));
    sim_say(owner->socket, bytes, n);
}

static void end_two(struct two *two)
{
    fixture_end_all(two->fixture);
    owner_free(&two->a);
    owner_free(&two->b);
    fixture_stop(two->fixture);
}

/* Passes the received bytes, then `ms` milliseconds of time in steps of 1 ms. */
static void pass_slowly(const struct two *two, unsigned ms)
{
    fixture_run(two->fixture);
    while (ms-- > 0)
        fixture_pass(two->fixture, 1);
}

/* ---- Rates ---- */

START_TEST(a_rate_is_that_of_one_direction)
{
    struct two two = open_two(_i);
    unsigned recvs;

    PIPE_BOTH(&two, .rates = { 1000, 0 });
    say_bytes(two.a, 3500);
    say_bytes(two.b, 10000);
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.a->socket->sent_n, 10000);
    for (size_t second = 1; second <= 3; second++) {
        ck_assert_uint_eq(two.b->socket->sent_n, second * 1000);
        recvs = two.a->socket->recvs;
        pass_slowly(&two, 999);
        ck_assert_uint_eq(two.b->socket->sent_n, second * 1000);
        ck_assert_uint_eq(two.a->socket->recvs, recvs);
        fixture_pass(two.fixture, 1);
    }
    ck_assert_uint_eq(two.b->socket->sent_n, 3500);
    end_two(&two);
}
END_TEST

/* An unused rate may be used later; received bytes count against the rate. */
START_TEST(a_rate_is_spread_over_its_second)
{
    struct two two = open_two(_i);

    PIPE_BOTH(&two, .rates = { 0, 1000 });
    say_bytes(two.b, 200);
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.a->socket->sent_n, 200);
    say_bytes(two.b, 100);
    fixture_pass(two.fixture, 199);
    ck_assert_uint_eq(two.a->socket->sent_n, 200);
    fixture_pass(two.fixture, 1);
    ck_assert_uint_eq(two.a->socket->sent_n, 300);
    fixture_pass(two.fixture, 3000);
    say_bytes(two.b, 5000);
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.a->socket->sent_n, 4000);
    end_two(&two);
}
END_TEST

START_TEST(input_from_before_the_pipe_counts)
{
    struct two two = open_two(_i);

    two.a->data = owner_leave_input;
    say_bytes(two.a, 2500);
    fixture_run(two.fixture);
    PIPE_BOTH(&two, .rates = { 1000, 0 });
    say_bytes(two.a, 1000);
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.b->socket->sent_n, 2500);
    fixture_pass(two.fixture, 2499);
    ck_assert_uint_eq(two.b->socket->sent_n, 2500);
    fixture_pass(two.fixture, 1);
    ck_assert_uint_eq(two.b->socket->sent_n, 3000);
    end_two(&two);
}
END_TEST

START_TEST(to_wait_for_a_rate_is_no_time_out)
{
    struct two two = open_two(_i);

    PIPE_BOTH(&two, .timeout = 300, .rates = { 10, 0 });
    say_bytes(two.a, 50);
    pass_slowly(&two, 4999);
    ck_assert_uint_eq(two.b->socket->sent_n, 50);
    pass_slowly(&two, 300);
    ck_assert_uint_eq(two.a->closings + two.b->closings, 0);
    pass_slowly(&two, 1); /* the rate's wait is over since 5 s */
    ck_assert_int_eq(two.a->reason, FB_TIMED_OUT);
    ck_assert_int_eq(two.b->reason, FB_TIMED_OUT);
    end_two(&two);
}
END_TEST

START_TEST(a_slow_reader_and_a_rate)
{
    struct two two = open_two(_i);

    PIPE_BOTH(&two, .rates = { 1000, 0 });
    sim_set_room(two.b->socket, 100);
    say_bytes(two.a, 4000);
    pass_slowly(&two, 500);
    sim_set_room(two.b->socket, SIZE_MAX); /* to read on has to wait for the rate */
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.b->socket->sent_n, 1000);
    sim_set_room(two.b->socket, 0);
    fixture_pass(two.fixture, 500);
    ck_assert_uint_eq(sim_unread(two.a->socket), 2000);
    fixture_pass(two.fixture, 5000); /* the reader is waited for */
    ck_assert_uint_eq(sim_unread(two.a->socket), 2000);
    sim_set_room(two.b->socket, SIZE_MAX);
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.b->socket->sent_n, 4000);
    end_two(&two);
}
END_TEST

START_TEST(a_rate_beyond_all_numbers)
{
    struct two two = open_two(_i);

    PIPE_BOTH(&two, .rates = { UINT64_MAX, UINT64_MAX / 2 });
    fixture_pass(two.fixture, 5000);
    say_bytes(two.a, 10000);
    say_bytes(two.b, 10000);
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.a->socket->sent_n, 10000);
    ck_assert_uint_eq(two.b->socket->sent_n, 10000);
    end_two(&two);
}
END_TEST

START_TEST(an_end_waits_for_the_rate)
{
    struct two two = open_two(_i);

    PIPE_BOTH(&two, .rates = { 10, 10 });
    say_bytes(two.a, 15);
    sim_end(two.a->socket);
    pass_slowly(&two, 999);
    ck_assert(!two.b->socket->shut);
    pass_slowly(&two, 501);
    ck_assert_uint_eq(two.b->socket->sent_n, 15);
    ck_assert(two.b->socket->shut);
    end_two(&two);
}
END_TEST

/* ---- Bytes at once ---- */

START_TEST(few_bytes_at_once)
{
    struct two two = open_two(_i);

    PIPE_BOTH(&two, .most = 100);
    sim_set_room(two.b->socket, 0);
    say_bytes(two.a, 1000);
    fixture_run(two.fixture);
    ck_assert_uint_eq(sim_unread(two.a->socket), 900);
    sim_set_room(two.b->socket, SIZE_MAX);
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.b->socket->sent_n, 1000);
    ck_assert_uint_ge(two.a->socket->recvs, 10);
    end_two(&two);
}
END_TEST

/* Rates alone take memory beside the pipe's. */
START_TEST(rates_take_memory_where_there_are_any)
{
    struct two two = open_two(_i);

    PIPE_BOTH(&two, .most = 100, .timeout = 1000, .ends_together = true);
    ck_assert_uint_eq(fixture_blocks_held(two.fixture), 1);
    end_two(&two);
    two = open_two(_i);
    PIPE_BOTH(&two, .rates = { 1 });
    ck_assert_uint_eq(fixture_blocks_held(two.fixture), 2);
    end_two(&two);
}
END_TEST

START_TEST(without_memory_for_rates)
{
    const struct conn_pipe_options options = { .rates = { 1, 1 } };
    struct two two = open_two(_i);

    two.fixture->memory.until_failure = 1;
    ck_assert_int_eq(conn_pipe(two.a->conn, two.b->conn, &options), -1);
    two.fixture->memory.until_failure = UINT32_MAX;
    sim_says(two.a->socket, "as ever");
    settle_both(two.fixture);
    ck_assert_str_eq(two.a->last, "as ever");
    end_two(&two);
}
END_TEST

/* ---- Ends ---- */

/* The peer of `first` ends its half: all bytes are delivered, and both ends close. */
START_TEST(they_end_together)
{
    struct two two = open_two(_i);
    bool swapped = _i / FIXTURE_EVENTS;
    struct owner *first = swapped ? two.b : two.a, *other = swapped ? two.a : two.b;

    PIPE_BOTH(&two, .ends_together = true);
    sim_set_room(other->socket, 0);
    sim_says(first->socket, "the last words");
    sim_end(first->socket);
    sim_says(other->socket, "an answer");
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(first), "an answer");
    ck_assert_uint_eq(first->closings + other->closings, 0);
    sim_set_room(other->socket, 4);
    fixture_run(two.fixture);
    ck_assert_uint_eq(first->closings + other->closings, 0);
    sim_set_room(other->socket, SIZE_MAX);
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(other), "the last words");
    ck_assert_int_eq(first->reason, FB_PEER_GONE);
    ck_assert_int_eq(other->reason, FB_FINISHED);
    ck_assert(first->socket->closed && !first->socket->reset);
    ck_assert(other->socket->closed && !other->socket->reset);
    end_two(&two);
}
END_TEST

static size_t have_other_say(struct owner *owner, fb_bytes in)
{
    sim_says(owner->other->socket, "more");
    return in.n;
}

/* Bytes sent by a peer after the wait that has reported the end of the opposite half are no reason
 * to reset its connection: a reset would lose bytes still to be received. */
START_TEST(bytes_come_behind_the_report_of_the_end)
{
    struct fixture *fixture = fixture_start_net(_i, 4);
    struct owner *first = owner_open(fixture);
    struct two two = { .fixture = fixture, .a = owner_open(fixture), .b = owner_open(fixture) };

    PIPE_BOTH(&two, .ends_together = true);
    sim_says(two.a->socket, "request");
    sim_says(two.b->socket, "reply");
    fixture_run(fixture);
    first->data = have_other_say;
    first->other = two.a;
    sim_says(first->socket, "now");
    sim_end(two.b->socket);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(two.a), "reply");
    ck_assert_int_eq(two.a->reason, FB_FINISHED);
    ck_assert_int_eq(two.b->reason, FB_PEER_GONE);
    ck_assert(two.a->socket->shut && !two.a->socket->closed);
    sim_end(two.a->socket);
    fixture_run(fixture);
    ck_assert(two.a->socket->closed && !two.a->socket->reset);
    owner_abort(first);
    fixture_settle(fixture);
    owner_free(&first);
    end_two(&two);
}
END_TEST

START_TEST(one_had_ended_before)
{
    struct two two = open_two(_i);

    two.a->eof = owner_ignore_eof;
    sim_end(two.a->socket);
    fixture_run(two.fixture);
    PIPE_BOTH(&two, .ends_together = true);
    ck_assert_int_eq(two.a->reason, FB_PEER_GONE);
    ck_assert_int_eq(two.b->reason, FB_FINISHED);
    end_two(&two);
}
END_TEST

/* Our half of the opposite end had ended before: there is nothing to deliver. */
START_TEST(the_others_half_had_ended_before)
{
    struct two two = open_two(_i);

    conn_shutdown(two.b->conn);
    settle_both(two.fixture);
    PIPE_BOTH(&two, .ends_together = true);
    sim_end(two.a->socket);
    fixture_run(two.fixture);
    ck_assert_int_eq(two.a->reason, FB_PEER_GONE);
    ck_assert_int_eq(two.b->reason, FB_FINISHED);
    end_two(&two);
}
END_TEST

START_TEST(both_end_at_once)
{
    struct two two = open_two(_i);

    PIPE_BOTH(&two, .ends_together = true);
    sim_says(two.a->socket, "to b");
    sim_end(two.a->socket);
    sim_says(two.b->socket, "to a");
    sim_end(two.b->socket);
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.b), "to b");
    ck_assert_int_eq(two.a->closings + two.b->closings, 2);
    ck_assert(two.a->reason == FB_PEER_GONE || two.b->reason == FB_PEER_GONE);
    end_two(&two);
}
END_TEST

START_TEST(it_ends_before_the_other_is_connected)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct sim_server *server = owner_server(fixture);
    struct two two = { .fixture = fixture, .a = owner_open(fixture) };

    sim_server_answer(server, SIM_SILENT, 0);
    two.b = owner_connect(fixture, NULL);
    PIPE_BOTH(&two, .ends_together = true, .rates = { 4, 0 });
    sim_says(two.a->socket, "request");
    sim_end(two.a->socket);
    fixture_pass(fixture, 5000);
    ck_assert_uint_eq(two.a->closings + two.b->closings, 0);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    fixture_run(fixture);
    owner_accept(server, two.b);
    fixture_pass(fixture, 2000);
    ck_assert_str_eq(owner_sent(two.b), "request");
    ck_assert_int_eq(two.a->reason, FB_PEER_GONE);
    ck_assert_int_eq(two.b->reason, FB_FINISHED);
    end_two(&two);
}
END_TEST

/* ---- The first byte ---- */

static void note_first(struct fb_conn *b, void *state)
{
    const struct owner *owner = state;

    ck_assert_ptr_eq(owner->conn, b);
    ck_assert_uint_gt(b->received, 0);
}

/* The owner is told, with a function to call or without. */
static void check_first_byte(int i, void (*call)(struct fb_conn *b, void *state))
{
    struct two two = open_two(i);

    PIPE_BOTH(&two, .first_byte = call);
    sim_says(two.a->socket, "question");
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.b->first_bytes, 0);
    for (int n = 0; n < 3; n++) {
        sim_says(two.b->socket, "answer");
        fixture_run(two.fixture);
        ck_assert_uint_eq(two.b->first_bytes, 1);
    }
    ck_assert_uint_eq(two.a->first_bytes, 0);
    ck_assert_str_eq(owner_sent(two.a), "answeransweranswer");
    end_two(&two);
}

START_TEST(the_first_byte_is_told_once)
{
    check_first_byte(_i, note_first);
    check_first_byte(_i, NULL);
}
END_TEST

START_TEST(the_first_byte_came_before)
{
    struct two two = open_two(_i);

    two.b->data = owner_leave_input;
    sim_says(two.b->socket, "early, ");
    fixture_run(two.fixture);
    PIPE_BOTH(&two, .first_byte = note_first);
    sim_says(two.b->socket, "late");
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.a), "early, late");
    ck_assert_uint_eq(two.b->first_bytes, 0);
    end_two(&two);
}
END_TEST

static void abort_at_first(struct fb_conn *b, void *state)
{
    (void)state;
    conn_fail(b, FB_ABORTED);
}

START_TEST(the_first_byte_ends_it)
{
    struct two two = open_two(_i);

    PIPE_BOTH(&two, .first_byte = abort_at_first, .rates = { 0, 2 });
    sim_says(two.b->socket, "answer");
    fixture_run(two.fixture);
    ck_assert_int_eq(two.a->reason, FB_ABORTED);
    ck_assert_int_eq(two.b->reason, FB_ABORTED);
    end_two(&two);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const int n = FIXTURE_EVENTS;

    tcase_add_loop_test(tcase, a_rate_is_that_of_one_direction, 0, n);
    tcase_add_loop_test(tcase, a_rate_is_spread_over_its_second, 0, n);
    tcase_add_loop_test(tcase, input_from_before_the_pipe_counts, 0, n);
    tcase_add_loop_test(tcase, to_wait_for_a_rate_is_no_time_out, 0, n);
    tcase_add_loop_test(tcase, a_slow_reader_and_a_rate, 0, n);
    tcase_add_loop_test(tcase, a_rate_beyond_all_numbers, 0, n);
    tcase_add_loop_test(tcase, an_end_waits_for_the_rate, 0, n);
    tcase_add_loop_test(tcase, few_bytes_at_once, 0, n);
    tcase_add_loop_test(tcase, rates_take_memory_where_there_are_any, 0, n);
    tcase_add_loop_test(tcase, without_memory_for_rates, 0, n);
    tcase_add_loop_test(tcase, they_end_together, 0, 2 * n);
    tcase_add_loop_test(tcase, bytes_come_behind_the_report_of_the_end, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, one_had_ended_before, 0, n);
    tcase_add_loop_test(tcase, the_others_half_had_ended_before, 0, n);
    tcase_add_loop_test(tcase, both_end_at_once, 0, n);
    tcase_add_loop_test(tcase, it_ends_before_the_other_is_connected, 0, n);
    tcase_add_loop_test(tcase, the_first_byte_is_told_once, 0, n);
    tcase_add_loop_test(tcase, the_first_byte_came_before, 0, n);
    tcase_add_loop_test(tcase, the_first_byte_ends_it, 0, n);
}

TEST_MAIN("pipe_options", add_tests)
