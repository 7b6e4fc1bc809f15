/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes and time: the timeout, and ends not connected yet. */
#include "support/owner.h"

#include <errno.h>
#include <string.h>

static void settle_both(struct fixture *fixture)
{
    fixture_settle(fixture);
    fixture_run(fixture);
}

static void end_all(struct fixture *fixture, struct owner **a, struct owner **b)
{
    fixture_end_all(fixture);
    owner_free(a);
    owner_free(b);
    fixture_stop(fixture);
}

static const uint64_t timeouts[] = { 50, 200, 1000, 60000 };

START_TEST(when_nothing_moves_both_time_out)
{
    uint64_t ms = timeouts[_i / FIXTURE_EVENTS];
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);

    owner_pipe(a, b, ms);
    settle_both(fixture);
    fixture_pass(fixture, ms - 1);
    ck_assert_uint_eq(a->closings + b->closings, 0);
    fixture_pass(fixture, 1);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    end_all(fixture, &a, &b);
}
END_TEST

/* In either direction, and with any timeout. */
START_TEST(what_moves_does_not_time_out)
{
    uint64_t ms = timeouts[_i / FIXTURE_EVENTS];
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);

    owner_pipe(a, b, ms);
    settle_both(fixture);
    for (int i = 0; i < 10; i++) {
        fixture_pass(fixture, ms * 9 / 10);
        ck_assert_uint_eq(a->closings + b->closings, 0);
        sim_says((i % 2 ? a : b)->socket, "x");
        fixture_run(fixture);
    }
    ck_assert_str_eq(owner_sent(a), "xxxxx");
    ck_assert_str_eq(owner_sent(b), "xxxxx");
    end_all(fixture, &a, &b);
}
END_TEST

START_TEST(what_a_slow_reader_takes_moves)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);

    owner_pipe(a, b, 1000);
    sim_set_room(b->socket, 0);
    sim_says(a->socket, "0123456789");
    settle_both(fixture);
    for (int i = 0; i < 9; i++) {
        fixture_pass(fixture, 900);
        sim_set_room(b->socket, 1);
        fixture_run(fixture);
    }
    ck_assert_str_eq(owner_sent(b), "012345678");
    fixture_pass(fixture, 1000);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    end_all(fixture, &a, &b);
}
END_TEST

START_TEST(without_a_timeout_it_waits)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);

    conn_deadline_set(a->conn, 1000); /* the session's, which is over */
    owner_pipe(a, b, 0);
    settle_both(fixture);
    fixture_pass(fixture, 100000000);
    ck_assert_uint_eq(a->closings + a->expirations, 0);
    end_all(fixture, &a, &b);
}
END_TEST

/* The remaining end keeps a deadline for the output left. */
START_TEST(the_time_runs_on_when_an_end_has_gone)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);
    bool swapped = _i / FIXTURE_EVENTS;

    owner_pipe(swapped ? b : a, swapped ? a : b, 1000);
    sim_set_room(b->socket, 0);
    sim_says(a->socket, "the last words");
    settle_both(fixture);
    fixture_pass(fixture, 600);
    conn_fail(a->conn, FB_PEER_GONE);
    settle_both(fixture);
    ck_assert_uint_eq(a->closings, 1);
    fixture_pass(fixture, 399);
    ck_assert_uint_eq(b->closings, 0);
    fixture_pass(fixture, 1);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    end_all(fixture, &a, &b);
}
END_TEST

/* ---- Before it is connected ---- */

START_TEST(the_other_is_still_connecting)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 3);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = owner_open(fixture), *b, *noise = owner_open(fixture);
    bool has_ended = _i / FIXTURE_EVENTS;

    sim_server_answer(server, SIM_SILENT, 0);
    b = owner_connect(fixture, NULL);
    conn_write(b->conn, "header, ", 8);
    owner_pipe(a, b, 0);
    sim_says(a->socket, "request, ");
    settle_both(fixture);
    sim_says(a->socket, "more");
    if (has_ended)
        sim_end(a->socket);
    sim_says(noise->socket, "################");
    fixture_run(fixture);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    fixture_run(fixture);
    owner_accept(server, b);
    ck_assert_str_eq(owner_sent(b), "header, request, more");
    ck_assert(b->socket->shut == has_ended);
    ck_assert_uint_eq(b->openings, 0); /* after fb_pipe() only `closed` comes */
    sim_says(b->socket, "reply");
    sim_end(b->socket);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(a), "reply");
    ck_assert_uint_eq(a->closings, has_ended);
    fixture_end_all(fixture);
    owner_free(&noise);
    end_all(fixture, &a, &b);
}
END_TEST

START_TEST(the_other_is_refused)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = owner_open(fixture), *b;

    sim_server_answer(server, SIM_SILENT, 0);
    b = owner_connect(fixture, NULL);
    owner_pipe(a, b, 0);
    sim_says(a->socket, "request");
    settle_both(fixture);
    sim_server_answer(server, SIM_REFUSES, 0);
    fixture_run(fixture);
    ck_assert_int_eq(b->reason, FB_REFUSED);
    ck_assert_int_eq(a->reason, FB_PIPE_BROKEN);
    ck_assert(a->socket->reset);
    fixture_logged(fixture);
    end_all(fixture, &a, &b);
}
END_TEST

/* A connection piped with `a` without an answer, a millisecond before the owner's timer. */
static struct owner *connect_unanswered(
    struct fixture *fixture, struct sim_server *server, struct owner *a)
{
    struct owner *b;

    sim_server_answer(server, SIM_SILENT, 0);
    b = owner_connect(fixture, NULL);
    conn_deadline_set(b->conn, 60000);
    owner_pipe(a, b, 0);
    settle_both(fixture);
    fixture_pass(fixture, 59999);
    return b;
}

/* The owner's timeout for the connect still counts. */
START_TEST(the_other_never_answers)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = owner_open(fixture), *b;

    b = connect_unanswered(fixture, server, a);
    ck_assert_uint_eq(b->closings, 0);
    fixture_pass(fixture, 1);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "[error] "));
    end_all(fixture, &a, &b);
}
END_TEST

/* The worker is stopped: the byte and the timeout are found in the same turn. */
START_TEST(what_has_come_is_in_time)
{
    uint64_t ms = timeouts[_i / FIXTURE_EVENTS];
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);

    owner_pipe(a, b, ms);
    settle_both(fixture);
    for (int i = 0; i < 4; i++) {
        sim_says((i % 2 ? a : b)->socket, "x");
        fixture_pass(fixture, ms * 2);
        ck_assert_uint_eq(a->closings + b->closings, 0);
    }
    ck_assert_str_eq(owner_sent(a), "xx");
    ck_assert_str_eq(owner_sent(b), "xx");
    fixture_pass(fixture, ms);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    end_all(fixture, &a, &b);
}
END_TEST

static const uint64_t connect_times[] = { 500, 60000, 0 };

/* The two times run, with either end waiting for the connect(). */
START_TEST(two_that_never_answer)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    uint64_t ms = connect_times[_i / FIXTURE_EVENTS];
    struct sim_server *server = owner_server(fixture);
    struct owner *a, *b;

    sim_server_answer(server, SIM_SILENT, 0);
    a = owner_connect(fixture, NULL);
    b = owner_connect(fixture, NULL);
    if (ms > 0) {
        conn_deadline_set(a->conn, ms);
        conn_deadline_set(b->conn, ms);
    }
    owner_pipe(a, b, 1000);
    settle_both(fixture);
    fixture_pass(fixture, ms == 500 ? 499 : 999);
    ck_assert_uint_eq(a->closings + b->closings, 0);
    fixture_pass(fixture, 1);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    if (ms == 500)
        ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "connect() failed"));
    end_all(fixture, &a, &b);
}
END_TEST

/* The time without a byte begins with the pipe, and goes on when the connect() is answered. */
START_TEST(one_that_answers_late)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    bool swapped = _i / FIXTURE_EVENTS;
    struct sim_server *server = owner_server(fixture);
    struct owner *a = owner_open(fixture), *b;

    sim_server_answer(server, SIM_SILENT, 0);
    b = owner_connect(fixture, NULL);
    conn_deadline_set(b->conn, 800);
    owner_pipe(swapped ? b : a, swapped ? a : b, 1000);
    settle_both(fixture);
    fixture_pass(fixture, 700);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    fixture_run(fixture);
    owner_accept(server, b);
    fixture_pass(fixture, 299);
    ck_assert_uint_eq(a->closings + b->closings, 0);
    fixture_pass(fixture, 1);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    end_all(fixture, &a, &b);
}
END_TEST

START_TEST(the_connects_time_ends_with_it)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = owner_open(fixture), *b;

    b = connect_unanswered(fixture, server, a);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    fixture_run(fixture);
    owner_accept(server, b);
    fixture_pass(fixture, 1000000);
    ck_assert_uint_eq(a->closings + b->closings, 0);
    sim_says(a->socket, "still there");
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(b), "still there");
    end_all(fixture, &a, &b);
}
END_TEST

START_TEST(the_client_goes_before_the_other_is_connected)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = owner_open(fixture), *b;

    sim_server_answer(server, SIM_SILENT, 0);
    b = owner_connect(fixture, NULL);
    owner_pipe(a, b, 0);
    sim_says(a->socket, "request");
    settle_both(fixture);
    conn_fail(a->conn, FB_ABORTED);
    settle_both(fixture);
    ck_assert_int_eq(a->reason, FB_ABORTED);
    ck_assert_int_eq(b->reason, FB_ABORTED);
    end_all(fixture, &a, &b);
}
END_TEST

/* ---- Trouble ---- */

static const struct sim_trouble trouble = {
    .partial_send = 500, .partial_recv = 500, .again = 200, .spurious = 100, .late = 200
};

START_TEST(it_gets_through_whatever_the_kernel_does)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);
    uint8_t bytes[4000];
    size_t said[2] = { 0 };
    struct owner *ends[] = { a, b };

    owner_pipe(a, b, 0);
    fixture_settle(fixture);
    sim_trouble(fixture->sim, (uint64_t)_i, &trouble);
    for (int step = 0; step < 100; step++) {
        int i = (int)sim_random(fixture->sim, 2);
        size_t n = 1 + sim_random(fixture->sim, sizeof(bytes));

        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)((said[i] + k) % 251);
        said[i] += n;
        sim_say(ends[i]->socket, bytes, n);
        sim_set_room(ends[sim_random(fixture->sim, 2)]->socket, sim_random(fixture->sim, 5000));
        fixture_turn(fixture);
    }
    sim_end(a->socket);
    sim_end(b->socket);
    sim_set_room(a->socket, SIZE_MAX);
    sim_set_room(b->socket, SIZE_MAX);
    fixture_run(fixture);
    owner_check_pattern(b, said[0]);
    owner_check_pattern(a, said[1]);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert_int_eq(b->reason, FB_FINISHED);
    sim_trouble(fixture->sim, 0, NULL);
    end_all(fixture, &a, &b);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const int n = FIXTURE_EVENTS;

    tcase_add_loop_test(tcase, when_nothing_moves_both_time_out, 0, 4 * n);
    tcase_add_loop_test(tcase, what_moves_does_not_time_out, 0, 4 * n);
    tcase_add_loop_test(tcase, what_has_come_is_in_time, 0, 4 * n);
    tcase_add_loop_test(tcase, what_a_slow_reader_takes_moves, 0, n);
    tcase_add_loop_test(tcase, without_a_timeout_it_waits, 0, n);
    tcase_add_loop_test(tcase, the_time_runs_on_when_an_end_has_gone, 0, 2 * n);
    tcase_add_loop_test(tcase, two_that_never_answer, 0, 3 * n);
    tcase_add_loop_test(tcase, one_that_answers_late, 0, 2 * n);
    tcase_add_loop_test(tcase, the_other_is_still_connecting, 0, 2 * n);
    tcase_add_loop_test(tcase, the_other_is_refused, 0, n);
    tcase_add_loop_test(tcase, the_other_never_answers, 0, n);
    tcase_add_loop_test(tcase, the_connects_time_ends_with_it, 0, n);
    tcase_add_loop_test(tcase, the_client_goes_before_the_other_is_connected, 0, n);
    tcase_add_loop_test(tcase, it_gets_through_whatever_the_kernel_does, 0, 30 * n);
}

TEST_MAIN("pipe_time", add_tests)
