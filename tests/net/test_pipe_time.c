/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes and time: their timeout, and ends that are not connected yet. */
#include "net/bed.h"

#include <errno.h>
#include <string.h>

static void settle(struct bed *bed)
{
    net_flush(&bed->net);
    bed_run(bed);
}

static void end(struct bed *bed, struct owner **a, struct owner **b)
{
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(a);
    bed_free(b);
    bed_tear_down(bed);
}

static const uint64_t timeouts[] = { 50, 200, 1000, 60000 };

START_TEST(when_nothing_moves_both_time_out)
{
    uint64_t ms = timeouts[_i / BED_MECHANISMS];
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 2);
    struct owner *a = bed_open(bed), *b = bed_open(bed);

    conn_pipe(a->conn, b->conn, ms);
    settle(bed);
    bed_pass(bed, ms - 1);
    ck_assert_uint_eq(a->closings + b->closings, 0);
    bed_pass(bed, 1);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    end(bed, &a, &b);
}
END_TEST

/* In either direction, and however short it is. */
START_TEST(what_moves_does_not_time_out)
{
    uint64_t ms = timeouts[_i / BED_MECHANISMS];
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 2);
    struct owner *a = bed_open(bed), *b = bed_open(bed);

    conn_pipe(a->conn, b->conn, ms);
    settle(bed);
    for (int i = 0; i < 10; i++) {
        bed_pass(bed, ms * 9 / 10);
        ck_assert_uint_eq(a->closings + b->closings, 0);
        fake_says((i % 2 ? a : b)->socket, "x");
        bed_run(bed);
    }
    ck_assert_str_eq(bed_sent(a), "xxxxx");
    ck_assert_str_eq(bed_sent(b), "xxxxx");
    end(bed, &a, &b);
}
END_TEST

START_TEST(what_a_slow_reader_takes_moves)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *a = bed_open(bed), *b = bed_open(bed);

    conn_pipe(a->conn, b->conn, 1000);
    fake_take(b->socket, 0);
    fake_says(a->socket, "0123456789");
    settle(bed);
    for (int i = 0; i < 9; i++) {
        bed_pass(bed, 900);
        fake_take(b->socket, 1);
        bed_run(bed);
    }
    ck_assert_str_eq(bed_sent(b), "012345678");
    bed_pass(bed, 1000);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    end(bed, &a, &b);
}
END_TEST

START_TEST(without_a_timeout_it_waits)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *a = bed_open(bed), *b = bed_open(bed);

    timer_set(&bed->net.loop, &a->conn->timer, 1000); /* the session's, which is over */
    conn_pipe(a->conn, b->conn, 0);
    settle(bed);
    bed_pass(bed, 100000000);
    ck_assert_uint_eq(a->closings + a->expirations, 0);
    end(bed, &a, &b);
}
END_TEST

/* ---- Before it is connected ---- */

START_TEST(the_other_is_still_connecting)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 3);
    struct sim_server *server = bed_server();
    struct owner *a = bed_open(bed), *b, *noise = bed_open(bed);
    bool has_ended = _i / BED_MECHANISMS;

    sim_server_answer(server, SIM_SILENT, 0);
    b = bed_connect(bed, NULL);
    conn_write(b->conn, "header, ", 8);
    conn_pipe(a->conn, b->conn, 0);
    fake_says(a->socket, "request, ");
    settle(bed);
    fake_says(a->socket, "more");
    if (has_ended)
        fake_end(a->socket);
    fake_says(noise->socket, "################");
    bed_run(bed);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    bed_run(bed);
    bed_accept(server, b);
    ck_assert_str_eq(bed_sent(b), "header, request, more");
    ck_assert(b->socket->shut == has_ended);
    ck_assert_uint_eq(b->openings, 0); /* after fb_pipe() only `closed` comes */
    fake_says(b->socket, "reply");
    fake_end(b->socket);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(a), "reply");
    ck_assert_uint_eq(a->closings, has_ended);
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(&noise);
    end(bed, &a, &b);
}
END_TEST

START_TEST(the_other_is_refused)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct sim_server *server = bed_server();
    struct owner *a = bed_open(bed), *b;

    sim_server_answer(server, SIM_SILENT, 0);
    b = bed_connect(bed, NULL);
    conn_pipe(a->conn, b->conn, 0);
    fake_says(a->socket, "request");
    settle(bed);
    sim_server_answer(server, SIM_REFUSES, 0);
    bed_run(bed);
    ck_assert_int_eq(b->reason, FB_REFUSED);
    ck_assert_int_eq(a->reason, FB_ABORTED);
    ck_assert(a->socket->reset);
    bed_logged(bed);
    end(bed, &a, &b);
}
END_TEST

/* The time that its owner has given the connect still counts. */
START_TEST(the_other_never_answers)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct sim_server *server = bed_server();
    struct owner *a = bed_open(bed), *b;

    sim_server_answer(server, SIM_SILENT, 0);
    b = bed_connect(bed, NULL);
    timer_set(&bed->net.loop, &b->conn->timer, 60000);
    conn_pipe(a->conn, b->conn, 0);
    settle(bed);
    bed_pass(bed, 59999);
    ck_assert_uint_eq(b->closings, 0);
    bed_pass(bed, 1);
    ck_assert_int_eq(b->reason, FB_TIMED_OUT);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    ck_assert_ptr_nonnull(strstr(bed_logged(bed), "[error] "));
    end(bed, &a, &b);
}
END_TEST

START_TEST(the_connects_time_ends_with_it)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct sim_server *server = bed_server();
    struct owner *a = bed_open(bed), *b;

    sim_server_answer(server, SIM_SILENT, 0);
    b = bed_connect(bed, NULL);
    timer_set(&bed->net.loop, &b->conn->timer, 60000);
    conn_pipe(a->conn, b->conn, 0);
    settle(bed);
    bed_pass(bed, 59999);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    bed_run(bed);
    bed_accept(server, b);
    bed_pass(bed, 1000000);
    ck_assert_uint_eq(a->closings + b->closings, 0);
    fake_says(a->socket, "still there");
    bed_run(bed);
    ck_assert_str_eq(bed_sent(b), "still there");
    end(bed, &a, &b);
}
END_TEST

START_TEST(the_client_goes_before_the_other_is_connected)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct sim_server *server = bed_server();
    struct owner *a = bed_open(bed), *b;

    sim_server_answer(server, SIM_SILENT, 0);
    b = bed_connect(bed, NULL);
    conn_pipe(a->conn, b->conn, 0);
    fake_says(a->socket, "request");
    settle(bed);
    conn_fail(a->conn, FB_ABORTED);
    settle(bed);
    ck_assert_int_eq(a->reason, FB_ABORTED);
    ck_assert_int_eq(b->reason, FB_ABORTED);
    end(bed, &a, &b);
}
END_TEST

/* ---- Trouble ---- */

static const struct sim_trouble trouble = {
    .partial_send = 500, .partial_recv = 500, .again = 200, .spurious = 100, .late = 200
};

START_TEST(it_gets_through_whatever_the_kernel_does)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 2);
    struct owner *a = bed_open(bed), *b = bed_open(bed);
    uint8_t bytes[4000];
    size_t said[2] = { 0 };
    struct owner *ends[] = { a, b };

    conn_pipe(a->conn, b->conn, 0);
    net_flush(&bed->net);
    sim_trouble(fake_sim, (uint64_t)_i, &trouble);
    for (int step = 0; step < 100; step++) {
        int i = (int)sim_random(fake_sim, 2);
        size_t n = 1 + sim_random(fake_sim, sizeof(bytes));

        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)((said[i] + k) % 251);
        said[i] += n;
        fake_say(ends[i]->socket, bytes, n);
        fake_take(ends[sim_random(fake_sim, 2)]->socket, sim_random(fake_sim, 5000));
        bed_turn(bed);
    }
    fake_end(a->socket);
    fake_end(b->socket);
    fake_take(a->socket, SIZE_MAX);
    fake_take(b->socket, SIZE_MAX);
    bed_run(bed);
    bed_check_pattern(b, said[0]);
    bed_check_pattern(a, said[1]);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert_int_eq(b->reason, FB_FINISHED);
    sim_trouble(fake_sim, 0, NULL);
    end(bed, &a, &b);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const int n = BED_MECHANISMS;

    tcase_add_loop_test(tcase, when_nothing_moves_both_time_out, 0, 4 * n);
    tcase_add_loop_test(tcase, what_moves_does_not_time_out, 0, 4 * n);
    tcase_add_loop_test(tcase, what_a_slow_reader_takes_moves, 0, n);
    tcase_add_loop_test(tcase, without_a_timeout_it_waits, 0, n);
    tcase_add_loop_test(tcase, the_other_is_still_connecting, 0, 2 * n);
    tcase_add_loop_test(tcase, the_other_is_refused, 0, n);
    tcase_add_loop_test(tcase, the_other_never_answers, 0, n);
    tcase_add_loop_test(tcase, the_connects_time_ends_with_it, 0, n);
    tcase_add_loop_test(tcase, the_client_goes_before_the_other_is_connected, 0, n);
    tcase_add_loop_test(tcase, it_gets_through_whatever_the_kernel_does, 0, 30 * n);
}

TEST_MAIN("pipe_time", add_tests)
