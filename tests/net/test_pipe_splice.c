/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes whose bytes the kernel moves, when there are many. */
#include "net/splicing.h"

#include <sys/resource.h>
#include <unistd.h>

START_TEST(it_begins_after_much)
{
    struct rig *rig = set_up(_i);
    struct side sides[2];
    unsigned before;

    open_pipe(rig, sides);
    move(rig, &sides[0], &sides[1], MUCH - 1);
    ck_assert_uint_eq(splices_in, 0);
    move(rig, &sides[0], &sides[1], 1);
    before = recvs;
    move(rig, &sides[0], &sides[1], 4 * MUCH);
    ck_assert_uint_gt(splices_in, 0);
    ck_assert_uint_gt(splices_out, 0);
    ck_assert_uint_eq(recvs, before);

    /* each direction by itself */
    splices_in = 0;
    move(rig, &sides[1], &sides[0], MUCH / 2);
    ck_assert_uint_eq(splices_in, 0);
    ck_assert_uint_eq(sides[0].conn->received, 5 * MUCH);
    ck_assert_uint_eq(sides[1].conn->sent, 5 * MUCH);
    ck_assert_uint_eq(sides[0].conn->sent, MUCH / 2);
    close_far(sides);
    tear_down(rig);
}
END_TEST

static void exchange(struct side sides[2], size_t total, unsigned round)
{
    say(&sides[0], total);
    say(&sides[1], total);
    hear(&sides[round % 2], 100000 + round % 3 * 70000);
}

START_TEST(all_arrives_in_both_directions_at_slow_readers)
{
    const size_t total = 24 * 1024 * 1024;
    struct rig *rig = set_up(_i);
    struct side sides[2];
    unsigned round = 0;

    open_pipe(rig, sides);
    turn_until(
        rig, sides[0].heard == total && sides[1].heard == total, exchange(sides, total, round++));
    ck_assert_uint_gt(splices_out, 10);
    close_far(sides);
    tear_down(rig);
}
END_TEST

START_TEST(kernel_pipes_are_held_for_bytes_alone)
{
    enum { PAIRS = 12 };
    struct rig *rig = set_up(_i);
    struct side sides[PAIRS][2];
    unsigned before = count_descriptors("pipe:");

    for (int i = 0; i < PAIRS; i++) {
        open_pipe(rig, sides[i]);
        move(rig, &sides[i][0], &sides[i][1], 4 * MUCH);
    }
    ck_assert_uint_le(count_descriptors("pipe:") - before, 2);
    for (int i = 0; i < PAIRS; i++)
        stuff(rig, &sides[i][0]);
    ck_assert_uint_eq(count_descriptors("pipe:") - before, 2 * PAIRS);
    for (int i = 0; i < PAIRS; i++)
        turn_until(rig, sides[i][1].heard == sides[i][0].said, hear(&sides[i][1], SIZE_MAX));
    ck_assert_uint_eq(rig->net.spare_pipe_n, NET_SPARE_PIPES);
    ck_assert_uint_eq(count_descriptors("pipe:") - before, 2 * NET_SPARE_PIPES);
    for (int i = 0; i < PAIRS; i++)
        close_far(sides[i]);
    tear_down(rig);
}
END_TEST

START_TEST(little_at_a_time_is_copied_again)
{
    struct rig *rig = set_up(_i);
    struct side sides[2];

    open_pipe(rig, sides);
    move(rig, &sides[0], &sides[1], 2 * MUCH);
    for (int i = 0; i < 9; i++)
        move(rig, &sides[0], &sides[1], 100);
    recvs = splices_in = 0;
    for (int i = 0; i < 20; i++)
        move(rig, &sides[0], &sides[1], 100);
    ck_assert_uint_eq(splices_in, 0);
    ck_assert_uint_ge(recvs, 20);
    move(rig, &sides[0], &sides[1], 4 * MUCH); /* and back */
    ck_assert_uint_gt(splices_in, 0);
    close_far(sides);
    tear_down(rig);
}
END_TEST

START_TEST(an_end_behind_much)
{
    struct rig *rig = set_up(_i);
    struct side sides[2];
    const size_t there = 5000001, back = 3000001;

    open_pipe(rig, sides);
    turn_until(rig, sides[0].said == there, (say(&sides[0], there), hear(&sides[1], 300000)));
    shutdown(sides[0].far, SHUT_WR);
    turn_until(rig, sides[1].heard_end, hear(&sides[1], 300000));
    ck_assert_uint_eq(sides[1].heard, there);
    ck_assert_uint_eq(sides[0].closings + sides[1].closings, 0);
    turn_until(rig, sides[1].said == back, (say(&sides[1], back), hear(&sides[0], 300000)));
    shutdown(sides[1].far, SHUT_WR);
    turn_until(rig, sides[0].heard_end, hear(&sides[0], 300000));
    ck_assert_uint_eq(sides[0].heard, back);
    turn_until(rig, sides[0].closings + sides[1].closings == 2, (void)0);
    ck_assert_int_eq(sides[0].reason, FB_FINISHED);
    ck_assert_int_eq(sides[1].reason, FB_FINISHED);
    close_far(sides);
    tear_down(rig);
}
END_TEST

/* With bytes in a kernel pipe. */
START_TEST(a_reset_in_the_middle)
{
    static const struct linger now = { .l_onoff = 1 };
    struct rig *rig = set_up(_i % RIGS);
    struct side sides[2];
    int gone = _i / RIGS;
    unsigned before = count_descriptors("pipe:");
    uint8_t bytes[4096];

    open_pipe(rig, sides);
    move(rig, &sides[0], &sides[1], 2 * MUCH);
    stuff(rig, &sides[0]);
    say(&sides[1], 1000); /* what is not read makes a unix socket's end a reset */
    for (int i = 0; i < 5; i++)
        turn(rig);
    ck_assert_uint_gt(count_descriptors("pipe:"), before);
    setsockopt(sides[gone].far, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(sides[gone].far);
    turn_until(rig, sides[0].closings == 1 && sides[1].closings == 1,
        recv(sides[!gone].far, bytes, sizeof(bytes), 0)); /* which may fail */
    ck_assert_int_eq(sides[gone].reason, FB_RESET);
    ck_assert_int_eq(sides[!gone].reason, FB_ABORTED);
    ck_assert_uint_eq(count_descriptors("pipe:") - before, 2 * rig->net.spare_pipe_n);
    close(sides[!gone].far);
    tear_down(rig);
}
END_TEST

START_TEST(an_owner_closes_while_bytes_are_held)
{
    struct rig *rig = set_up(_i);
    struct side sides[2];

    open_pipe(rig, sides);
    move(rig, &sides[0], &sides[1], 2 * MUCH);
    stuff(rig, &sides[0]);
    conn_close(sides[1].conn);
    net_flush(&rig->net);
    ck_assert_uint_eq(sides[1].closings, 0);
    turn_until(rig, sides[0].closings == 1 && sides[1].closings == 1, hear(&sides[1], 100000));
    ck_assert_int_eq(sides[1].reason, FB_FINISHED);
    ck_assert_uint_gt(sides[1].heard, 2 * MUCH);
    close_far(sides);
    tear_down(rig);
}
END_TEST

START_TEST(without_descriptors_it_is_copied)
{
    struct rig *rig = set_up(_i);
    struct rlimit limit, none;
    struct side sides[2];

    open_pipe(rig, sides);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    move(rig, &sides[0], &sides[1], 10 * MUCH);
    ck_assert_uint_eq(splices_in, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    move(rig, &sides[0], &sides[1], 10 * MUCH);
    ck_assert_uint_gt(splices_in, 0);
    close_far(sides);
    tear_down(rig);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, it_begins_after_much, 0, RIGS);
    tcase_add_loop_test(tcase, all_arrives_in_both_directions_at_slow_readers, 0, RIGS);
    tcase_add_loop_test(tcase, kernel_pipes_are_held_for_bytes_alone, 0, RIGS);
    tcase_add_loop_test(tcase, little_at_a_time_is_copied_again, 0, RIGS);
    tcase_add_loop_test(tcase, an_end_behind_much, 0, RIGS);
    tcase_add_loop_test(tcase, a_reset_in_the_middle, 0, 2 * RIGS);
    tcase_add_loop_test(tcase, an_owner_closes_while_bytes_are_held, 0, RIGS);
    tcase_add_loop_test(tcase, without_descriptors_it_is_copied, 0, RIGS);
}

TEST_MAIN("pipe_splice", add_tests)
