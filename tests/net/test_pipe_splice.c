/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes with bytes moved by the kernel, in great number. */
#include "net/splicing.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

START_TEST(it_begins_after_much)
{
    struct splicing *splicing = splicing_start(_i);
    struct pipe_end ends[2];
    unsigned before;

    splicing_open_pipe(splicing, ends);
    splicing_move(splicing, &ends[0], &ends[1], MUCH - 1);
    ck_assert_uint_eq(splices_in, 0);
    splicing_move(splicing, &ends[0], &ends[1], 1);
    before = recvs;
    splicing_move(splicing, &ends[0], &ends[1], 4 * MUCH);
    ck_assert_uint_gt(splices_in, 0);
    ck_assert_uint_gt(splices_out, 0);
    ck_assert_uint_eq(recvs, before);

    /* directions count by themselves */
    splices_in = 0;
    splicing_move(splicing, &ends[1], &ends[0], MUCH / 2);
    ck_assert_uint_eq(splices_in, 0);
    ck_assert_uint_eq(ends[0].conn->received, 5 * MUCH);
    ck_assert_uint_eq(ends[1].conn->sent, 5 * MUCH);
    ck_assert_uint_eq(ends[0].conn->sent, MUCH / 2);
    splicing_close_far(ends);
    splicing_stop(splicing);
}
END_TEST

static void exchange_bytes(struct pipe_end ends[2], size_t total, unsigned round)
{
    pipe_end_say(&ends[0], total);
    pipe_end_say(&ends[1], total);
    pipe_end_hear(&ends[round % 2], 100000 + round % 3 * 70000);
}

START_TEST(all_arrives_in_both_directions_at_slow_readers)
{
    const size_t total = 24 * 1024 * 1024;
    struct splicing *splicing = splicing_start(_i);
    struct pipe_end ends[2];
    unsigned round = 0;

    splicing_open_pipe(splicing, ends);
    splicing_turn_until(splicing, ends[0].heard == total && ends[1].heard == total,
        exchange_bytes(ends, total, round++));
    ck_assert_uint_gt(splices_out, 10);
    splicing_close_far(ends);
    splicing_stop(splicing);
}
END_TEST

START_TEST(kernel_pipes_are_held_for_bytes_alone)
{
    enum { PAIRS = 12 };
    struct splicing *splicing = splicing_start(_i);
    struct pipe_end ends[PAIRS][2];
    unsigned before = count_descriptors("pipe:");

    for (int i = 0; i < PAIRS; i++) {
        splicing_open_pipe(splicing, ends[i]);
        splicing_move(splicing, &ends[i][0], &ends[i][1], 4 * MUCH);
    }
    ck_assert_uint_le(count_descriptors("pipe:") - before, 2);
    for (int i = 0; i < PAIRS; i++)
        splicing_fill(splicing, &ends[i][0]);
    ck_assert_uint_eq(count_descriptors("pipe:") - before, 2 * PAIRS);
    for (int i = 0; i < PAIRS; i++)
        splicing_turn_until(
            splicing, ends[i][1].heard == ends[i][0].said, pipe_end_hear(&ends[i][1], SIZE_MAX));
    ck_assert_uint_eq(splicing->net.spare_pipe_n, NET_SPARE_PIPES);
    ck_assert_uint_eq(count_descriptors("pipe:") - before, 2 * NET_SPARE_PIPES);
    for (int i = 0; i < PAIRS; i++)
        splicing_close_far(ends[i]);
    splicing_stop(splicing);
}
END_TEST

START_TEST(little_at_a_time_is_copied_again)
{
    struct splicing *splicing = splicing_start(_i);
    struct pipe_end ends[2];

    splicing_open_pipe(splicing, ends);
    splicing_move(splicing, &ends[0], &ends[1], 2 * MUCH);
    for (int i = 0; i < 9; i++)
        splicing_move(splicing, &ends[0], &ends[1], 100);
    recvs = splices_in = 0;
    for (int i = 0; i < 20; i++)
        splicing_move(splicing, &ends[0], &ends[1], 100);
    ck_assert_uint_eq(splices_in, 0);
    ck_assert_uint_ge(recvs, 20);
    splicing_move(splicing, &ends[0], &ends[1], 4 * MUCH); /* the way back */
    ck_assert_uint_gt(splices_in, 0);
    splicing_close_far(ends);
    splicing_stop(splicing);
}
END_TEST

START_TEST(an_end_behind_much)
{
    struct splicing *splicing = splicing_start(_i);
    struct pipe_end ends[2];
    const size_t there = 5000001, back = 3000001;

    splicing_open_pipe(splicing, ends);
    splicing_turn_until(splicing, ends[0].said == there,
        (pipe_end_say(&ends[0], there), pipe_end_hear(&ends[1], 300000)));
    shutdown(ends[0].far, SHUT_WR);
    splicing_turn_until(splicing, ends[1].heard_end, pipe_end_hear(&ends[1], 300000));
    ck_assert_uint_eq(ends[1].heard, there);
    ck_assert_uint_eq(ends[0].closings + ends[1].closings, 0);
    splicing_turn_until(splicing, ends[1].said == back,
        (pipe_end_say(&ends[1], back), pipe_end_hear(&ends[0], 300000)));
    shutdown(ends[1].far, SHUT_WR);
    splicing_turn_until(splicing, ends[0].heard_end, pipe_end_hear(&ends[0], 300000));
    ck_assert_uint_eq(ends[0].heard, back);
    splicing_turn_until(splicing, ends[0].closings + ends[1].closings == 2, (void)0);
    ck_assert_int_eq(ends[0].reason, FB_FINISHED);
    ck_assert_int_eq(ends[1].reason, FB_FINISHED);
    splicing_close_far(ends);
    splicing_stop(splicing);
}
END_TEST

/* Bytes arrived at an end and not received. */
static size_t held_by_system(const struct pipe_end *end)
{
    int n;

    ck_assert_int_eq(ioctl(end->conn->source.fd, FIONREAD, &n), 0);
    return (size_t)n;
}

/* With bytes in a kernel pipe. */
START_TEST(a_reset_in_the_middle)
{
    static const struct linger now = { .l_onoff = 1 };
    struct splicing *splicing = splicing_start(_i % SPLICING_KINDS);
    struct pipe_end ends[2];
    int gone = _i / SPLICING_KINDS;
    unsigned before = count_descriptors("pipe:");
    uint8_t bytes[4096];

    splicing_open_pipe(splicing, ends);
    splicing_move(splicing, &ends[0], &ends[1], 2 * MUCH);
    splicing_fill(splicing, &ends[0]);
    pipe_end_say(&ends[1], 1000); /* unread bytes make a unix socket's end a reset */
    for (int i = 0; i < 5; i++)
        splicing_turn(splicing);
    ck_assert_uint_gt(count_descriptors("pipe:"), before);
    setsockopt(ends[gone].far, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(ends[gone].far);
    splicing_turn_until(splicing, ends[0].closings == 1 && ends[1].closings == 1,
        recv(ends[!gone].far, bytes, sizeof(bytes), 0)); /* may fail */
    ck_assert_int_eq(ends[gone].reason, FB_RESET);
    ck_assert_int_eq(ends[!gone].reason, FB_PIPE_BROKEN);
    ck_assert_uint_eq(count_descriptors("pipe:") - before, 2 * splicing->net.spare_pipe_n);
    close(ends[!gone].far);
    splicing_stop(splicing);
}
END_TEST

/* Bytes received from a broken server reach a slow client, whose connection then ends or is
 * reset. */
START_TEST(a_slow_client_gets_what_came_before_a_reset)
{
    static const struct linger now = { .l_onoff = 1 };
    struct splicing *splicing = splicing_start(_i % SPLICING_KINDS);
    bool resets = _i / SPLICING_KINDS % 2 == 1, much = _i / SPLICING_KINDS / 2 == 1;
    struct conn_pipe_options options = { .b_break_ends = !resets };
    struct pipe_end ends[2];
    const size_t bytes = much ? 3 * MUCH : MUCH / 2;

    splicing_open_pipe_with(splicing, ends, &options);
    pipe_end_say(&ends[0], 1000); /* unread bytes make a unix socket's end a reset */
    splicing_turn_until(splicing,
        ends[1].said == bytes && ends[1].conn->received + held_by_system(&ends[1]) == bytes,
        (pipe_end_say(&ends[1], bytes), pipe_end_hear(&ends[0], 3000)));
    setsockopt(ends[1].far, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(ends[1].far);
    splicing_turn_until(splicing, ends[0].heard == bytes && ends[0].closings == 1,
        pipe_end_hear(&ends[0], bytes - ends[0].heard < 3000 ? bytes - ends[0].heard : 3000));
    ck_assert_int_eq(ends[1].reason, FB_RESET);
    ck_assert_int_eq(ends[0].reason, resets ? FB_PIPE_BROKEN : FB_FINISHED);
    close(ends[0].far);
    splicing_stop(splicing);
}
END_TEST

START_TEST(an_owner_closes_while_bytes_are_held)
{
    struct splicing *splicing = splicing_start(_i);
    struct pipe_end ends[2];

    splicing_open_pipe(splicing, ends);
    splicing_move(splicing, &ends[0], &ends[1], 2 * MUCH);
    splicing_fill(splicing, &ends[0]);
    conn_close(ends[1].conn);
    net_flush(&splicing->net);
    ck_assert_uint_eq(ends[1].closings, 0);
    splicing_turn_until(
        splicing, ends[0].closings == 1 && ends[1].closings == 1, pipe_end_hear(&ends[1], 100000));
    ck_assert_int_eq(ends[1].reason, FB_FINISHED);
    ck_assert_uint_gt(ends[1].heard, 2 * MUCH);
    splicing_close_far(ends);
    splicing_stop(splicing);
}
END_TEST

START_TEST(without_descriptors_it_is_copied)
{
    struct splicing *splicing = splicing_start(_i);
    struct rlimit limit, none;
    struct pipe_end ends[2];

    splicing_open_pipe(splicing, ends);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    splicing_move(splicing, &ends[0], &ends[1], 10 * MUCH);
    ck_assert_uint_eq(splices_in, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    splicing_move(splicing, &ends[0], &ends[1], 10 * MUCH);
    ck_assert_uint_gt(splices_in, 0);
    splicing_close_far(ends);
    splicing_stop(splicing);
}
END_TEST

/* A peer with endless input, and a peer taking all bytes. */
static struct io_result splice_in_endlessly(struct source *source, int pipe, size_t n)
{
    static const uint8_t zeroes[MUCH];
    ssize_t written = write(pipe, zeroes, n < MUCH ? n : MUCH);

    (void)source;
    splices_in++;
    ck_assert_int_gt(written, 0);
    return (struct io_result) { .status = IO_DONE, .n = (size_t)written };
}

static struct io_result splice_out_endlessly(struct source *source, int pipe, size_t n)
{
    static uint8_t taken[MUCH];
    ssize_t got = read(pipe, taken, n < MUCH ? n : MUCH);

    (void)source;
    splices_out++;
    ck_assert_int_gt(got, 0);
    return (struct io_result) { .status = IO_DONE, .n = (size_t)got };
}

START_TEST(an_endless_stream_leaves_others_their_turn)
{
    enum { MOST = 2 * 1024 * 1024 };
    struct splicing *splicing = splicing_start(_i);
    struct pipe_end ends[2], modest[2];
    uint64_t before;

    splicing_open_pipe(splicing, modest);
    splicing_open_pipe(splicing, ends);
    splicing_move(splicing, &ends[0], &ends[1], 2 * MUCH);
    splicing->io.splice_in = splice_in_endlessly;
    splicing->io.splice_out = splice_out_endlessly;
    pipe_end_say(&ends[0], ends[0].said + 1);
    for (int i = 0; i < 4; i++) {
        splicing_move(splicing, &modest[0], &modest[1], 1);
        splices_in = 0;
        before = ends[0].conn->received;
        splicing_turn(splicing);
        ck_assert_uint_gt(splices_in, 0);
        ck_assert_uint_le(ends[0].conn->received, before + MOST);
    }
    splicing_close_far(ends);
    splicing_close_far(modest);
    splicing_stop(splicing);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, it_begins_after_much, 0, SPLICING_KINDS);
    tcase_add_loop_test(tcase, all_arrives_in_both_directions_at_slow_readers, 0, SPLICING_KINDS);
    tcase_add_loop_test(tcase, kernel_pipes_are_held_for_bytes_alone, 0, SPLICING_KINDS);
    tcase_add_loop_test(tcase, little_at_a_time_is_copied_again, 0, SPLICING_KINDS);
    tcase_add_loop_test(tcase, an_end_behind_much, 0, SPLICING_KINDS);
    tcase_add_loop_test(tcase, a_reset_in_the_middle, 0, 2 * SPLICING_KINDS);
    tcase_add_loop_test(tcase, a_slow_client_gets_what_came_before_a_reset, 0, 4 * SPLICING_KINDS);
    tcase_add_loop_test(tcase, an_owner_closes_while_bytes_are_held, 0, SPLICING_KINDS);
    tcase_add_loop_test(tcase, without_descriptors_it_is_copied, 0, SPLICING_KINDS);
    tcase_add_loop_test(tcase, an_endless_stream_leaves_others_their_turn, 0, SPLICING_KINDS);
}

TEST_MAIN("pipe_splice", add_tests)
