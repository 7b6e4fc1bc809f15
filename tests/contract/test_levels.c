/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract: sources with levels, as descriptors of protocols are. They are of the real kernel
 * under every mechanism, a simulated one too. */
#include "contract/contract.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

static void make_pipe(int fds[2])
{
    ck_assert_int_eq(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
}

/* A source with levels, on a descriptor of the real kernel; not armed. */
static struct watched *watch_level(struct fixture *fixture, int fd)
{
    struct watched *watched = watch_fd(fixture, fd);

    watched->source.io = &io_socket;
    watched->source.io_state = NULL;
    watched->source.level = true;
    return watched;
}

static void wait_for(struct watched *watched, bool read, bool write)
{
    ck_assert_int_eq(source_watch_level(watched->fixture->loop, &watched->source, read, write), 0);
}

static void turn(struct fixture *fixture, int turns)
{
    for (int i = 0; i < turns; i++)
        fixture_turn_waiting(fixture, 5);
}

static void put_byte(int fd)
{
    ck_assert_int_eq(write(fd, "x", 1), 1);
}

static void take_bytes(int fd)
{
    char bytes[64];

    ck_assert_int_gt(read(fd, bytes, sizeof(bytes)), 0);
}

START_TEST(input_is_reported_as_long_as_it_is_there)
{
    struct fixture *fixture = contract_start(_i, 4);
    struct watched *watched;
    int fds[2];

    make_pipe(fds);
    watched = watch_level(fixture, fds[0]);
    put_byte(fds[1]);
    wait_for(watched, true, false);
    turn(fixture, 4);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 4);
    put_byte(fds[1]);
    turn(fixture, 1);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 5);
    take_bytes(fds[0]);
    check_quiet(fixture);
    put_byte(fds[1]);
    turn(fixture, 2);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 7);
    unwatch(&watched);
    close(fds[1]);
    fixture_stop(fixture);
}
END_TEST

START_TEST(directions_are_told_while_they_are_wanted)
{
    struct fixture *fixture = contract_start(_i, 4);
    struct watched *watched;
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    watched = watch_level(fixture, fds[0]);
    put_byte(fds[1]);
    check_quiet(fixture);
    wait_for(watched, false, true);
    turn(fixture, 2);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    ck_assert_uint_eq(watched->runs[EVENT_WRITE], 2);
    wait_for(watched, true, true);
    turn(fixture, 2);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 2);
    ck_assert_uint_eq(watched->runs[EVENT_WRITE], 4);
    wait_for(watched, true, false);
    turn(fixture, 2);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 4);
    ck_assert_uint_eq(watched->runs[EVENT_WRITE], 4);
    wait_for(watched, false, false);
    check_quiet(fixture);
    wait_for(watched, true, false);
    turn(fixture, 1);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 5);
    take_bytes(fds[0]);
    check_quiet(fixture);
    unwatch(&watched);
    close(fds[1]);
    fixture_stop(fixture);
}
END_TEST

/* Takes back what it has been told. */
static void stop_waiting(struct watched *watched)
{
    wait_for(watched, false, false);
}

START_TEST(an_event_that_is_posted_goes_with_the_wish)
{
    struct fixture *fixture = contract_start(_i, 4);
    struct watched *watched;
    int fds[2];

    make_pipe(fds);
    watched = watch_level(fixture, fds[0]);
    watched->then = stop_waiting;
    put_byte(fds[1]);
    wait_for(watched, true, false);
    loop_wait(fixture->loop, 100);
    ck_assert_uint_ne(watched->source.events[EVENT_READ].queue, QUEUE_NONE);
    wait_for(watched, false, false);
    ck_assert_uint_eq(watched->source.events[EVENT_READ].queue, QUEUE_NONE);
    check_quiet(fixture);
    wait_for(watched, true, false);
    turn(fixture, 3);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 1);
    unwatch(&watched);
    close(fds[1]);
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_other_end_is_told_by_whatever_is_waited_for)
{
    struct fixture *fixture = contract_start(_i, 4);
    struct watched *reader, *writer;
    int in[2], out[2];

    make_pipe(in);
    make_pipe(out);
    reader = watch_level(fixture, in[0]);
    writer = watch_level(fixture, out[1]);
    while (write(out[1], "0123456789abcdef", 16) > 0)
        ;
    wait_for(reader, true, false);
    wait_for(writer, false, true);
    check_quiet(fixture);
    close(in[1]);
    close(out[0]);
    turn(fixture, 2);
    ck_assert_uint_ge(reader->runs[EVENT_READ], 2);
    ck_assert_uint_ge(writer->runs[EVENT_WRITE], 2);
    ck_assert_uint_eq(reader->runs[EVENT_WRITE] + writer->runs[EVENT_READ], 0);
    wait_for(reader, false, false);
    wait_for(writer, false, false);
    check_quiet(fixture);
    unwatch(&reader);
    unwatch(&writer);
    fixture_stop(fixture);
}
END_TEST

/* A hang-up may be told as input as well, before input is wanted. */
START_TEST(the_other_end_goes_before_input_is_wanted)
{
    struct fixture *fixture = contract_start(_i, 4);
    struct watched *watched;
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    watched = watch_level(fixture, fds[0]);
    wait_for(watched, false, true);
    close(fds[1]);
    loop_wait(fixture->loop, 100);
    wait_for(watched, true, true);
    turn(fixture, 2);
    ck_assert_uint_ge(watched->runs[EVENT_READ], 1);
    unwatch(&watched);
    fixture_stop(fixture);
}
END_TEST

/* The descriptor of a source was closed, and reused by a second source: both end on their own. */
START_TEST(a_descriptor_that_was_closed_and_taken_again)
{
    struct fixture *fixture = contract_start(_i, 4);
    struct watched *old, *taken;
    int fds[2], other[2];

    make_pipe(fds);
    old = watch_level(fixture, fds[0]);
    wait_for(old, true, false);
    fixture_turn_waiting(fixture, 1);
    close(fds[0]);
    close(fds[1]);
    make_pipe(other);
    ck_assert_int_eq(other[0], fds[0]);
    taken = watch_level(fixture, other[0]);
    wait_for(taken, true, false);
    source_abandon(fixture->loop, &old->source);
    put_byte(other[1]);
    turn(fixture, 2);
    ck_assert_uint_ge(taken->runs[EVENT_READ], 2);
    unwatch(&taken);
    close(other[1]);
    fixture_stop(fixture);
}
END_TEST

/* A descriptor is closed under its source while a copy has the same file: once the source has gone
 * the loop does not wake for the file, and everything else is watched on. */
START_TEST(a_descriptor_that_was_closed_and_has_a_copy)
{
    struct fixture *fixture = contract_start(_i, 4);
    struct watched *old, *both;
    int fds[2], pair[2], copy;

    make_pipe(fds);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    both = watch_level(fixture, pair[0]);
    wait_for(both, true, false);
    old = watch_level(fixture, fds[0]);
    wait_for(old, true, false);
    put_byte(fds[1]);
    turn(fixture, 2);
    copy = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
    ck_assert_int_ne(copy, -1);
    close(fds[0]);
    source_abandon(fixture->loop, &old->source);
    turn(fixture, 2);
    check_quiet(fixture);
    put_byte(pair[1]);
    turn(fixture, 2);
    ck_assert_uint_ge(both->runs[EVENT_READ], 1);
    fixture_logged(fixture); /* mechanisms may log the closed descriptor */
    unwatch(&both);
    close(copy);
    close(fds[1]);
    close(pair[1]);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase, int from, int to)
{
    tcase_add_loop_test(tcase, input_is_reported_as_long_as_it_is_there, from, to);
    tcase_add_loop_test(tcase, directions_are_told_while_they_are_wanted, from, to);
    tcase_add_loop_test(tcase, an_event_that_is_posted_goes_with_the_wish, from, to);
    tcase_add_loop_test(tcase, the_other_end_is_told_by_whatever_is_waited_for, from, to);
    tcase_add_loop_test(tcase, the_other_end_goes_before_input_is_wanted, from, to);
    tcase_add_loop_test(tcase, a_descriptor_that_was_closed_and_taken_again, from, to);
    tcase_add_loop_test(tcase, a_descriptor_that_was_closed_and_has_a_copy, from, to);
}

CONTRACT_MAIN("levels", add_tests)
