/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract: the events reported for a source, and their times. */
#include "contract/contract.h"

#include "os/sockets.h"

#include <errno.h>
#include <netinet/in.h>

/* A pair, with the first end watched. */
static struct watched *start_pair(int i, int fds[2])
{
    make_pair(fds);
    return watch_fd(contract_start(i, 4), fds[0]);
}

static void end_pair(struct watched *watched)
{
    struct fixture *fixture = watched->fixture;

    unwatch(&watched);
    fixture_stop(fixture);
}

START_TEST(input_is_reported)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);
    struct fixture *fixture = watched->fixture;

    watched->receives = true;
    arm_event(watched, EVENT_READ);
    check_quiet(fixture);
    for (unsigned i = 1; i <= 3; i++) {
        send_text(fds[1], "hello");
        turn_until(fixture, watched->received == 5 * i);
        ck_assert_uint_eq(watched->runs[EVENT_WRITE], 0);
        check_quiet(fixture);
    }
    ck_assert_uint_eq(watched->runs[EVENT_READ], 3);
    close_end(fds[1]);
    end_pair(watched);
}
END_TEST

START_TEST(room_for_output_is_reported)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);
    struct fixture *fixture = watched->fixture;

    arm_event(watched, EVENT_WRITE);
    turn_until(fixture, watched->runs[EVENT_WRITE] == 1);
    fill_socket(fds[0]);
    watched->source.events[EVENT_WRITE].ready = false;
    check_quiet(fixture);
    drain_socket(fds[1]);
    turn_until(fixture, watched->runs[EVENT_WRITE] == 2);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    close_end(fds[1]);
    end_pair(watched);
}
END_TEST

START_TEST(edges_come_once_a_change_and_levels_as_long_as_it_lasts)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);
    struct fixture *fixture = watched->fixture;
    bool edge = mechanism_at(_i)->edge;

    send_text(fds[1], "a");
    arm_event(watched, EVENT_READ);
    turn_until(fixture, watched->runs[EVENT_READ] == 1);
    for (int i = 0; i < 3; i++)
        fixture_turn_waiting(fixture, 1);
    ck_assert_uint_eq(watched->runs[EVENT_READ], edge ? 1 : 4);
    send_text(fds[1], "b");
    fixture_turn_waiting(fixture, 1000);
    ck_assert_uint_eq(watched->runs[EVENT_READ], edge ? 2 : 5);
    fixture_turn_waiting(fixture, 1);
    ck_assert_uint_eq(watched->runs[EVENT_READ], edge ? 2 : 6);
    close_end(fds[1]);
    end_pair(watched);
}
END_TEST

START_TEST(both_directions_are_reported)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);

    send_text(fds[1], "a");
    watched->receives = true;
    arm_event(watched, EVENT_READ);
    arm_event(watched, EVENT_WRITE);
    turn_until(watched->fixture, watched->runs[EVENT_READ] > 0 && watched->runs[EVENT_WRITE] > 0);
    disarm_event(watched, EVENT_WRITE);
    turn_until_quiet(watched->fixture);
    /* the other direction goes on alone */
    send_text(fds[1], "b");
    turn_until(watched->fixture, watched->received == 2);
    disarm_event(watched, EVENT_READ);
    watched->runs[EVENT_WRITE] = 0;
    arm_event(watched, EVENT_WRITE);
    turn_until(watched->fixture, watched->runs[EVENT_WRITE] > 0);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 2);
    close_end(fds[1]);
    end_pair(watched);
}
END_TEST

START_TEST(arm_both_reports_both)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);

    send_text(fds[1], "a");
    watched->receives = true;
    ck_assert_int_eq(source_arm_both(watched->fixture->loop, &watched->source), 0);
    turn_until(watched->fixture, watched->received == 1 && watched->runs[EVENT_WRITE] > 0);
    close_end(fds[1]);
    end_pair(watched);
}
END_TEST

START_TEST(what_came_while_paused_is_reported_when_armed)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);
    struct fixture *fixture = watched->fixture;

    watched->receives = true;
    arm_event(watched, EVENT_READ);
    for (unsigned i = 1; i <= 3; i++) {
        disarm_event(watched, EVENT_READ);
        send_text(fds[1], "hello");
        check_quiet(fixture);
        ck_assert_uint_eq(watched->received, 5 * (i - 1));
        arm_event(watched, EVENT_READ);
        turn_until(fixture, watched->received == 5 * i);
    }
    close_end(fds[1]);
    end_pair(watched);
}
END_TEST

START_TEST(what_is_known_to_be_ready_is_posted_when_armed)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);
    struct fixture *fixture = watched->fixture;

    send_text(fds[1], "hello"); /* left in the socket */
    arm_event(watched, EVENT_READ);
    turn_until(fixture, watched->runs[EVENT_READ] == 1);
    disarm_event(watched, EVENT_READ);
    check_quiet(fixture);
    arm_event(watched, EVENT_READ);
    loop_run(fixture->loop, QUEUE_NORMAL); /* without a wait */
    ck_assert_uint_eq(watched->runs[EVENT_READ], 2);
    close_end(fds[1]);
    end_pair(watched);
}
END_TEST

static void (*const ways[])(int fd) = { close_end, shut_end, reset_end };

START_TEST(unarmed_it_reports_nothing_and_does_not_spin)
{
    for (unsigned way = 0; way < 3; way++) {
        struct fixture *fixture = contract_start(_i, 4);
        struct watched *never, *paused;
        int fds[2][2];

        make_tcp_pair(fds[0]);
        make_tcp_pair(fds[1]);
        never = watch_fd(fixture, fds[0][0]);
        paused = watch_fd(fixture, fds[1][0]);
        arm_event(paused, EVENT_READ);
        arm_event(paused, EVENT_WRITE);
        turn_until(fixture, paused->runs[EVENT_WRITE] > 0);
        disarm_event(paused, EVENT_READ);
        disarm_event(paused, EVENT_WRITE);
        paused->runs[EVENT_WRITE] = 0;
        ways[way](fds[0][1]);
        ways[way](fds[1][1]);
        check_quiet(fixture);
        ck_assert_uint_eq(paused->runs[EVENT_READ] + paused->runs[EVENT_WRITE], 0);
        ck_assert_uint_eq(never->runs[EVENT_READ] + never->runs[EVENT_WRITE], 0);

        /* armed again it is told */
        paused->receives = true;
        arm_event(paused, EVENT_READ);
        turn_until(fixture, paused->ended || paused->error != 0);
        unwatch(&never);
        unwatch(&paused);
        fixture_stop(fixture);
        if (ways[way] == shut_end) {
            close_end(fds[0][1]);
            close_end(fds[1][1]);
        }
    }
}
END_TEST

START_TEST(the_paused_direction_stays_silent_at_a_hang_up)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);
    struct fixture *fixture = watched->fixture;

    fill_socket(fds[0]);
    arm_event(watched, EVENT_READ);
    arm_event(watched, EVENT_WRITE);
    turn_until_quiet(fixture);
    disarm_event(watched, EVENT_READ);
    watched->runs[EVENT_WRITE] = 0;
    close_end(fds[1]);
    turn_until(fixture, watched->runs[EVENT_WRITE] > 0);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    end_pair(watched);
}
END_TEST

/* A paused source, on its owner's request, hears of an error, once, but of no normal end. */
START_TEST(an_error_is_told_while_paused)
{
    for (unsigned way = 0; way < 3; way++) {
        struct fixture *fixture = contract_start(_i, 1);
        bool told = ways[way] == reset_end && fixture->loop->mechanism->tells_broken;
        struct watched *watched;
        struct source_ops ops;
        int fds[2];

        make_tcp_pair(fds);
        watched = watch_fd(fixture, fds[0]);
        ops = *watched->source.ops;
        ops.wants_broken = true;
        watched->source.ops = &ops;
        arm_event(watched, EVENT_READ);
        turn_until_quiet(fixture);
        disarm_event(watched, EVENT_READ);
        ways[way](fds[1]);
        if (told)
            turn_until(fixture, watched->runs[EVENT_READ] > 0);
        check_quiet(fixture);
        ck_assert_uint_eq(watched->runs[EVENT_READ], told);
        watched->receives = true;
        arm_event(watched, EVENT_READ);
        turn_until(fixture, watched->ended || watched->error != 0);
        ck_assert_int_eq(watched->error, ways[way] == reset_end ? ECONNRESET : 0);
        unwatch(&watched);
        fixture_stop(fixture);
        if (ways[way] == shut_end)
            close_end(fds[1]);
    }
}
END_TEST

START_TEST(the_peers_end_is_told)
{
    for (unsigned way = 0; way < 3; way++)
        for (int with_data = 0; with_data < 2; with_data++) {
            struct fixture *fixture = contract_start(_i, 1);
            struct watched *watched;
            int fds[2];

            make_tcp_pair(fds);
            watched = watch_fd(fixture, fds[0]);
            watched->receives = true;
            arm_event(watched, EVENT_READ);
            if (with_data)
                send_text(fds[1], "last words");
            ways[way](fds[1]);
            turn_until(fixture, watched->ended || watched->error != 0);
            if (ways[way] == reset_end) {
                ck_assert_int_eq(watched->error, ECONNRESET);
            } else {
                ck_assert(watched->ended);
                ck_assert_uint_eq(watched->received, with_data ? 10 : 0);
            }
            unwatch(&watched);
            fixture_stop(fixture);
            if (ways[way] == shut_end)
                close_end(fds[1]);
        }
}
END_TEST

/* An owner that stops at a short read has to be told of the end by the flag, or again. */
START_TEST(the_end_behind_bytes_is_not_lost)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);
    struct fixture *fixture = watched->fixture;

    arm_event(watched, EVENT_READ);
    send_text(fds[1], "last words");
    close_end(fds[1]);
    turn_until(fixture, watched->runs[EVENT_READ] > 0);
    ck_assert_uint_eq(receive_once(watched), 10);
    if (!watched->source.eof) {
        unsigned runs = watched->runs[EVENT_READ];

        watched->source.events[EVENT_READ].ready = false;
        turn_until(fixture, watched->runs[EVENT_READ] > runs);
    }
    ck_assert_uint_eq(receive_once(watched), 0);
    end_pair(watched);
}
END_TEST

static struct watched *watch_connect(struct fixture *fixture, const struct sockaddr_in *address)
{
    struct watched *watched = watch_fd(fixture, -1);
    struct io_result result = watched->source.io->connect(
        &watched->source, (const struct sockaddr *)address, sizeof(*address), NULL);

    ck_assert_int_ne(result.status, IO_FAILED);
    ck_assert_int_eq(source_arm_both(fixture->loop, &watched->source), 0);
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
    struct fixture *fixture = contract_start(_i, 3);
    struct watched *served, *refused, *listener;
    struct sockaddr_in address, nobody;

    listener = watch_fd(fixture, make_listener(&address));
    make_nobody(&nobody);
    served = watch_connect(fixture, &address);
    refused = watch_connect(fixture, &nobody);
    turn_until(fixture, served->runs[EVENT_WRITE] > 0 && refused->runs[EVENT_WRITE] > 0);
    ck_assert_int_eq(error_of(served), 0);
    ck_assert_int_eq(error_of(refused), ECONNREFUSED);
    ck_assert_uint_eq(served->runs[EVENT_READ], 0);
    if (fixture->loop->mechanism->tells_refused) {
        ck_assert(!served->source.eof);
        ck_assert(refused->source.eof);
    }
    unwatch(&listener);
    unwatch(&served);
    unwatch(&refused);
    fixture_stop(fixture);
}
END_TEST

/* Sets the loop's flags as the loop's own functions would. */
static void leave_bytes(struct watched *watched, enum event_direction direction)
{
    struct loop *loop = watched->fixture->loop;

    ck_assert_int_eq(loop->mechanism->del(loop, &watched->source, direction), 0);
    watched->source.events[direction].active = watched->source.events[direction].armed = false;
}

/* The kernel keeps such bytes for a while, unless the test stands still as long. */
START_TEST(bytes_that_may_wait_leave_with_the_next)
{
    bool waited = os_send_more == 0;

    for (int i = 0; i == 0 || (i < 20 && !waited); i++) {
        struct fixture *fixture = contract_start(_i, 1);
        struct iovec first = { (char[]) { "abc" }, 3 }, second = { (char[]) { "def" }, 3 };
        struct watched *watched;
        char bytes[8];
        ssize_t n;
        int fds[2];

        make_tcp_pair(fds);
        watched = watch_fd(fixture, fds[0]);
        if (watched->source.io->send_more == NULL) {
            waited = true;
        } else {
            watched->source.io->send_more(&watched->source, &first, 1);
            n = recv(fds[1], bytes, sizeof(bytes), MSG_DONTWAIT | MSG_PEEK);
            waited = waited || (n == -1 && errno == EAGAIN);
            watched->source.io->send(&watched->source, &second, 1);
            ck_assert_int_eq(recv(fds[1], bytes, 6, MSG_WAITALL), 6);
            ck_assert_mem_eq(bytes, "abcdef", 6);
        }
        close_end(fds[1]);
        unwatch(&watched);
        fixture_stop(fixture);
    }
    ck_assert(waited);
}
END_TEST

START_TEST(a_deleted_direction_can_be_added_again)
{
    int fds[2];
    struct watched *watched = start_pair(_i, fds);
    struct fixture *fixture = watched->fixture;

    watched->receives = true;
    arm_event(watched, EVENT_READ);
    arm_event(watched, EVENT_WRITE);
    turn_until(fixture, watched->runs[EVENT_WRITE] > 0);
    leave_bytes(watched, EVENT_READ);
    leave_bytes(watched, EVENT_WRITE);
    send_text(fds[1], "a");
    check_quiet(fixture);
    arm_event(watched, EVENT_READ);
    turn_until(fixture, watched->received == 1);

    ck_assert_int_eq(fixture->loop->mechanism->del_conn(fixture->loop, &watched->source, false), 0);
    for (int i = 0; i < EVENT_DIRECTIONS; i++)
        watched->source.events[i].active = watched->source.events[i].armed = false;
    send_text(fds[1], "b");
    check_quiet(fixture);
    ck_assert_int_eq(source_arm_both(fixture->loop, &watched->source), 0);
    turn_until(fixture, watched->received == 2);
    close_end(fds[1]);
    end_pair(watched);
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
    tcase_add_loop_test(tcase, an_error_is_told_while_paused, from, to);
    tcase_add_loop_test(tcase, the_peers_end_is_told, from, to);
    tcase_add_loop_test(tcase, the_end_behind_bytes_is_not_lost, from, to);
    tcase_add_loop_test(tcase, a_connect_ends_in_a_write_event, from, to);
    tcase_add_real_test(tcase, bytes_that_may_wait_leave_with_the_next, from, to);
    tcase_add_loop_test(tcase, a_deleted_direction_can_be_added_again, from, to);
}

CONTRACT_MAIN("readiness", add_tests)
