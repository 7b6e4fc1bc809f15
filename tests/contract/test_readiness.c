/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract: what a mechanism reports of a source, and when. */
#include "contract/contract.h"

#include <errno.h>
#include <netinet/in.h>

/* A pair, with the first end watched. */
static struct watched *start(int i, int fds[2])
{
    make_pair(fds);
    return watch(bench_set_up(i, 4), fds[0]);
}

static void end(struct watched *watched)
{
    struct bench *bench = watched->bench;

    watch_no_more(&watched);
    bench_tear_down(bench);
}

START_TEST(input_is_reported)
{
    int fds[2];
    struct watched *watched = start(_i, fds);
    struct bench *bench = watched->bench;

    watched->receives = true;
    arm(watched, EVENT_READ);
    check_quiet(bench);
    for (unsigned i = 1; i <= 3; i++) {
        say(fds[1], "hello");
        turn_until(bench, watched->received == 5 * i);
        ck_assert_uint_eq(watched->runs[EVENT_WRITE], 0);
        check_quiet(bench);
    }
    ck_assert_uint_eq(watched->runs[EVENT_READ], 3);
    hang_up(fds[1]);
    end(watched);
}
END_TEST

START_TEST(room_for_output_is_reported)
{
    int fds[2];
    struct watched *watched = start(_i, fds);
    struct bench *bench = watched->bench;

    arm(watched, EVENT_WRITE);
    turn_until(bench, watched->runs[EVENT_WRITE] == 1);
    fill(fds[0]);
    watched->source.events[EVENT_WRITE].ready = false;
    check_quiet(bench);
    drain(fds[1]);
    turn_until(bench, watched->runs[EVENT_WRITE] == 2);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    hang_up(fds[1]);
    end(watched);
}
END_TEST

START_TEST(edges_come_once_a_change_and_levels_as_long_as_it_lasts)
{
    int fds[2];
    struct watched *watched = start(_i, fds);
    struct bench *bench = watched->bench;
    bool edge = mechanism_at(_i)->edge;

    say(fds[1], "a");
    arm(watched, EVENT_READ);
    turn_until(bench, watched->runs[EVENT_READ] == 1);
    for (int i = 0; i < 3; i++)
        turn(bench, 1);
    ck_assert_uint_eq(watched->runs[EVENT_READ], edge ? 1 : 4);
    say(fds[1], "b");
    turn(bench, 1000);
    ck_assert_uint_eq(watched->runs[EVENT_READ], edge ? 2 : 5);
    turn(bench, 1);
    ck_assert_uint_eq(watched->runs[EVENT_READ], edge ? 2 : 6);
    hang_up(fds[1]);
    end(watched);
}
END_TEST

START_TEST(both_directions_are_reported)
{
    int fds[2];
    struct watched *watched = start(_i, fds);

    say(fds[1], "a");
    watched->receives = true;
    arm(watched, EVENT_READ);
    arm(watched, EVENT_WRITE);
    turn_until(watched->bench, watched->runs[EVENT_READ] > 0 && watched->runs[EVENT_WRITE] > 0);
    disarm(watched, EVENT_WRITE);
    turn_until_quiet(watched->bench);
    /* the other direction goes on alone */
    say(fds[1], "b");
    turn_until(watched->bench, watched->received == 2);
    disarm(watched, EVENT_READ);
    watched->runs[EVENT_WRITE] = 0;
    arm(watched, EVENT_WRITE);
    turn_until(watched->bench, watched->runs[EVENT_WRITE] > 0);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 2);
    hang_up(fds[1]);
    end(watched);
}
END_TEST

START_TEST(arm_both_reports_both)
{
    int fds[2];
    struct watched *watched = start(_i, fds);

    say(fds[1], "a");
    watched->receives = true;
    ck_assert_int_eq(source_arm_both(&watched->bench->loop, &watched->source), 0);
    turn_until(watched->bench, watched->received == 1 && watched->runs[EVENT_WRITE] > 0);
    hang_up(fds[1]);
    end(watched);
}
END_TEST

START_TEST(what_came_while_paused_is_reported_when_armed)
{
    int fds[2];
    struct watched *watched = start(_i, fds);
    struct bench *bench = watched->bench;

    watched->receives = true;
    arm(watched, EVENT_READ);
    for (unsigned i = 1; i <= 3; i++) {
        disarm(watched, EVENT_READ);
        say(fds[1], "hello");
        check_quiet(bench);
        ck_assert_uint_eq(watched->received, 5 * (i - 1));
        arm(watched, EVENT_READ);
        turn_until(bench, watched->received == 5 * i);
    }
    hang_up(fds[1]);
    end(watched);
}
END_TEST

START_TEST(what_is_known_to_be_ready_is_posted_when_armed)
{
    int fds[2];
    struct watched *watched = start(_i, fds);
    struct bench *bench = watched->bench;

    say(fds[1], "hello"); /* and nobody takes it */
    arm(watched, EVENT_READ);
    turn_until(bench, watched->runs[EVENT_READ] == 1);
    disarm(watched, EVENT_READ);
    check_quiet(bench);
    arm(watched, EVENT_READ);
    loop_run(&bench->loop, QUEUE_NORMAL); /* without a wait */
    ck_assert_uint_eq(watched->runs[EVENT_READ], 2);
    hang_up(fds[1]);
    end(watched);
}
END_TEST

static void (*const ways[])(int fd) = { hang_up, half_close, reset };

START_TEST(unarmed_it_reports_nothing_and_does_not_spin)
{
    for (unsigned way = 0; way < 3; way++) {
        struct bench *bench = bench_set_up(_i, 4);
        struct watched *never, *paused;
        int fds[2][2];

        make_tcp_pair(fds[0]);
        make_tcp_pair(fds[1]);
        never = watch(bench, fds[0][0]);
        paused = watch(bench, fds[1][0]);
        arm(paused, EVENT_READ);
        arm(paused, EVENT_WRITE);
        turn_until(bench, paused->runs[EVENT_WRITE] > 0);
        disarm(paused, EVENT_READ);
        disarm(paused, EVENT_WRITE);
        paused->runs[EVENT_WRITE] = 0;
        ways[way](fds[0][1]);
        ways[way](fds[1][1]);
        check_quiet(bench);
        ck_assert_uint_eq(paused->runs[EVENT_READ] + paused->runs[EVENT_WRITE], 0);
        ck_assert_uint_eq(never->runs[EVENT_READ] + never->runs[EVENT_WRITE], 0);

        /* armed again it is told */
        paused->receives = true;
        arm(paused, EVENT_READ);
        turn_until(bench, paused->ended || paused->error != 0);
        watch_no_more(&never);
        watch_no_more(&paused);
        bench_tear_down(bench);
        if (ways[way] == half_close) {
            hang_up(fds[0][1]);
            hang_up(fds[1][1]);
        }
    }
}
END_TEST

START_TEST(the_paused_direction_stays_silent_at_a_hang_up)
{
    int fds[2];
    struct watched *watched = start(_i, fds);
    struct bench *bench = watched->bench;

    fill(fds[0]);
    arm(watched, EVENT_READ);
    arm(watched, EVENT_WRITE);
    turn_until_quiet(bench);
    disarm(watched, EVENT_READ);
    watched->runs[EVENT_WRITE] = 0;
    hang_up(fds[1]);
    turn_until(bench, watched->runs[EVENT_WRITE] > 0);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    end(watched);
}
END_TEST

START_TEST(the_peers_end_is_told)
{
    for (unsigned way = 0; way < 3; way++)
        for (int with_data = 0; with_data < 2; with_data++) {
            struct bench *bench = bench_set_up(_i, 1);
            struct watched *watched;
            int fds[2];

            make_tcp_pair(fds);
            watched = watch(bench, fds[0]);
            watched->receives = true;
            arm(watched, EVENT_READ);
            if (with_data)
                say(fds[1], "last words");
            ways[way](fds[1]);
            turn_until(bench, watched->ended || watched->error != 0);
            if (ways[way] == reset) {
                ck_assert_int_eq(watched->error, ECONNRESET);
            } else {
                ck_assert(watched->ended);
                ck_assert_uint_eq(watched->received, with_data ? 10 : 0);
            }
            watch_no_more(&watched);
            bench_tear_down(bench);
            if (ways[way] == half_close)
                hang_up(fds[1]);
        }
}
END_TEST

/* Who takes the bytes and stops at a short read has to be told of the end by the flag, or again. */
START_TEST(the_end_behind_bytes_is_not_lost)
{
    int fds[2];
    struct watched *watched = start(_i, fds);
    struct bench *bench = watched->bench;

    arm(watched, EVENT_READ);
    say(fds[1], "last words");
    hang_up(fds[1]);
    turn_until(bench, watched->runs[EVENT_READ] > 0);
    ck_assert_uint_eq(take(watched), 10);
    if (!watched->source.eof) {
        unsigned runs = watched->runs[EVENT_READ];

        watched->source.events[EVENT_READ].ready = false;
        turn_until(bench, watched->runs[EVENT_READ] > runs);
    }
    ck_assert_uint_eq(take(watched), 0);
    end(watched);
}
END_TEST

static struct watched *watch_connect(struct bench *bench, const struct sockaddr_in *address)
{
    struct watched *watched = watch(bench, -1);
    struct io_result result = watched->source.io->connect(
        &watched->source, (const struct sockaddr *)address, sizeof(*address));

    ck_assert_int_ne(result.status, IO_FAILED);
    ck_assert_int_eq(source_arm_both(&bench->loop, &watched->source), 0);
    return watched;
}

static int error_of(struct watched *watched)
{
    struct io_result result = watched->source.io->connected(&watched->source);

    ck_assert_int_eq(result.status, result.error == 0 ? IO_DONE : IO_FAILED);
    return result.error;
}

START_TEST(a_connect_ends_in_a_write_event)
{
    struct bench *bench = bench_set_up(_i, 3);
    struct watched *served, *refused, *listener;
    struct sockaddr_in address, nobody;

    listener = watch(bench, make_listener(&address));
    make_nobody(&nobody);
    served = watch_connect(bench, &address);
    refused = watch_connect(bench, &nobody);
    turn_until(bench, served->runs[EVENT_WRITE] > 0 && refused->runs[EVENT_WRITE] > 0);
    ck_assert_int_eq(error_of(served), 0);
    ck_assert_int_eq(error_of(refused), ECONNREFUSED);
    ck_assert_uint_eq(served->runs[EVENT_READ], 0);
    watch_no_more(&listener);
    watch_no_more(&served);
    watch_no_more(&refused);
    bench_tear_down(bench);
}
END_TEST

/* The loop's flags follow, as its own functions would have them. */
static void leave(struct watched *watched, enum event_direction direction)
{
    struct loop *loop = &watched->bench->loop;

    ck_assert_int_eq(loop->mechanism->del(loop, &watched->source, direction), 0);
    watched->source.events[direction].active = watched->source.events[direction].armed = false;
}

START_TEST(a_deleted_direction_can_be_added_again)
{
    int fds[2];
    struct watched *watched = start(_i, fds);
    struct bench *bench = watched->bench;

    watched->receives = true;
    arm(watched, EVENT_READ);
    arm(watched, EVENT_WRITE);
    turn_until(bench, watched->runs[EVENT_WRITE] > 0);
    leave(watched, EVENT_READ);
    leave(watched, EVENT_WRITE);
    say(fds[1], "a");
    check_quiet(bench);
    arm(watched, EVENT_READ);
    turn_until(bench, watched->received == 1);

    ck_assert_int_eq(bench->loop.mechanism->del_conn(&bench->loop, &watched->source, false), 0);
    for (int i = 0; i < EVENT_DIRECTIONS; i++)
        watched->source.events[i].active = watched->source.events[i].armed = false;
    say(fds[1], "b");
    check_quiet(bench);
    ck_assert_int_eq(source_arm_both(&bench->loop, &watched->source), 0);
    turn_until(bench, watched->received == 2);
    hang_up(fds[1]);
    end(watched);
}
END_TEST

static void add_tests(TCase *tcase, int from, int to)
{
    tcase_add_loop_test(tcase, input_is_reported, from, to);
    tcase_add_loop_test(tcase, room_for_output_is_reported, from, to);
    tcase_add_loop_test(tcase, edges_come_once_a_change_and_levels_as_long_as_it_lasts, from, to);
    tcase_add_loop_test(tcase, both_directions_are_reported, from, to);
    tcase_add_loop_test(tcase, arm_both_reports_both, from, to);
    tcase_add_loop_test(tcase, what_came_while_paused_is_reported_when_armed, from, to);
    tcase_add_loop_test(tcase, what_is_known_to_be_ready_is_posted_when_armed, from, to);
    tcase_add_loop_test(tcase, unarmed_it_reports_nothing_and_does_not_spin, from, to);
    tcase_add_loop_test(tcase, the_paused_direction_stays_silent_at_a_hang_up, from, to);
    tcase_add_loop_test(tcase, the_peers_end_is_told, from, to);
    tcase_add_loop_test(tcase, the_end_behind_bytes_is_not_lost, from, to);
    tcase_add_loop_test(tcase, a_connect_ends_in_a_write_event, from, to);
    tcase_add_loop_test(tcase, a_deleted_direction_can_be_added_again, from, to);
}

CONTRACT_MAIN("readiness", add_tests)
