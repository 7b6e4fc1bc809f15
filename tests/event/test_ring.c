/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of the mechanism io_uring: its buffers come back on every path, a watch is used again
 * when the kernel has returned its operations, a turn is one system call, and the ring can do
 * nothing but what the mechanism does. */
#include "contract/contract.h"
#include "event/mechanisms/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUFFERS 8

static unsigned enters;

/* Counts the system calls for submitting or waiting. */
int io_uring_enter2(
    unsigned fd, unsigned submit, unsigned least, unsigned flags, sigset_t *argument, size_t size)
{
    long result = syscall(SYS_io_uring_enter, fd, submit, least, flags, argument, size);

    enters++;
    return result == -1 ? -errno : (int)result;
}

static struct fixture *start_ring(uint32_t n)
{
    const struct mechanism *mechanism = mechanism_find("io_uring");

    if (!mechanism_available(mechanism))
        exit(EXIT_SUCCESS); /* the kernel refuses io_uring: no test is possible */
    return contract_start_with(mechanism, (struct mechanism_values) { { 64, BUFFERS } }, n, NULL);
}

static struct ring *ring_in(const struct fixture *fixture)
{
    return ring_of_loop(fixture->loop);
}

static struct watched *watch_end(struct fixture *fixture, int fds[2])
{
    make_pair(fds);
    return watch_fd(fixture, fds[0]);
}

/* Fails unless all buffers are back, and the kernel has so many operations. */
static void check_given_back(struct fixture *fixture, unsigned waiting)
{
    struct ring *ring = ring_in(fixture);

    for (int i = 0; i < 4; i++)
        fixture_turn_waiting(fixture, 0);
    ring_check(ring);
    ck_assert_uint_eq(ring->held_n, 0);
    ck_assert_uint_eq(ring->sent_n, 0);
    ck_assert_uint_eq(ring->lent_n, 0);
    ck_assert_uint_eq(ring->busy_n, waiting);
    ck_assert_uint_eq(ring->in_use_n, fixture->loop->sources.in_use_n);
}

START_TEST(a_buffer_comes_back_when_its_input_is_taken)
{
    struct fixture *fixture = start_ring(2);
    struct watched *watched;
    int fds[2];

    watched = watch_end(fixture, fds);
    watched->receives = true;
    arm_event(watched, EVENT_READ);
    for (unsigned i = 1; i <= 3 * BUFFERS; i++) {
        send_text(fds[1], "hello");
        turn_until(fixture, watched->received == 5 * i);
    }
    check_given_back(fixture, 1);
    unwatch(&watched);
    check_given_back(fixture, 0);
    close(fds[1]);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_buffer_comes_back_when_its_source_is_closed)
{
    struct fixture *fixture = start_ring(2);

    for (int turns = 0; turns < 3; turns++) {
        struct watched *watched;
        int fds[2];

        watched = watch_end(fixture, fds);
        arm_event(watched, EVENT_READ);
        if (turns == 2)
            fixture_turn_waiting(fixture, 0); /* the kernel has the operation */
        send_text(fds[1], "never taken");
        if (turns > 0)
            fixture_turn_waiting(fixture, 0);
        unwatch(&watched);
        check_given_back(fixture, 0);
        close(fds[1]);
    }
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_source_that_is_not_read_holds_no_buffer)
{
    struct fixture *fixture = start_ring(BUFFERS + 2);
    struct watched *paused[BUFFERS], *other;
    int fds[BUFFERS][2], pair[2];

    for (int i = 0; i < BUFFERS; i++) {
        paused[i] = watch_end(fixture, fds[i]);
        arm_event(paused[i], EVENT_READ);
        send_text(fds[i][1], "early");
    }
    for (int i = 0; i < BUFFERS; i++)
        turn_until(fixture, paused[i]->runs[EVENT_READ] > 0);
    for (int i = 0; i < BUFFERS; i++)
        disarm_event(paused[i], EVENT_READ);
    check_given_back(fixture, 0);

    other = watch_end(fixture, pair);
    other->receives = true;
    arm_event(other, EVENT_READ);
    send_text(pair[1], "x");
    turn_until(fixture, other->received == 1);
    for (int i = 0; i < BUFFERS; i++) { /* no byte of it is lost */
        paused[i]->receives = true;
        send_text(fds[i][1], ", late");
        arm_event(paused[i], EVENT_READ);
        turn_until(fixture, paused[i]->received == 11);
        unwatch(&paused[i]);
        close(fds[i][1]);
    }
    unwatch(&other);
    check_given_back(fixture, 0);
    close(pair[1]);
    fixture_stop(fixture);
}
END_TEST

/* Sends the received bytes from the buffer where they lie. */
static void echo_once(struct watched *watched)
{
    struct source *source = &watched->source;
    uint8_t room[4096];
    struct io_span span = { room, sizeof(room) };
    struct io_result result = source->io->recv(source, &span);
    struct iovec piece = { span.p, span.n };

    source->events[EVENT_READ].ready = false;
    if (result.status != IO_DONE)
        return;
    ck_assert(span.p != room); /* lent */
    result = source->io->send(source, &piece, 1);
    if (result.status == IO_DONE)
        watched->received += result.n;
}

static void expect_text(int fd, const char *text)
{
    char bytes[64];
    ssize_t n = read(fd, bytes, sizeof(bytes) - 1);

    ck_assert_int_gt(n, 0);
    bytes[n] = '\0';
    ck_assert_str_eq(bytes, text);
}

START_TEST(a_turn_is_one_system_call)
{
    struct fixture *fixture = start_ring(BUFFERS);
    struct watched *watched[4];
    int fds[4][2];

    for (int i = 0; i < 4; i++) {
        watched[i] = watch_end(fixture, fds[i]);
        watched[i]->then = echo_once;
        arm_event(watched[i], EVENT_READ);
    }
    fixture_turn_waiting(fixture, 0);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 4; i++)
            send_text(fds[i][1], "ping");
        enters = 0;
        fixture_turn_waiting(fixture, 1000);
        ck_assert_uint_eq(enters, 1);
        fixture_turn_waiting(fixture, 0);
        ck_assert_uint_eq(enters, 2);
        for (int i = 0; i < 4; i++)
            expect_text(fds[i][1], "ping");
    }
    check_given_back(fixture, 4);
    for (int i = 0; i < 4; i++) {
        unwatch(&watched[i]);
        close(fds[i][1]);
    }
    check_given_back(fixture, 0);
    fixture_stop(fixture);
}
END_TEST

START_TEST(who_does_not_read_stops_nobody)
{
    struct fixture *fixture = start_ring(BUFFERS + 2);
    struct watched *full[BUFFERS], *other;
    int fds[BUFFERS][2], pair[2];

    for (int i = 0; i < BUFFERS; i++) {
        full[i] = watch_end(fixture, fds[i]);
        full[i]->then = echo_once;
        fill_socket(fds[i][0]);
        arm_event(full[i], EVENT_READ);
        send_text(fds[i][1], "kept");
    }
    for (int i = 0; i < BUFFERS; i++)
        turn_until(fixture, full[i]->received == 4);
    fixture_turn_waiting(fixture, 0); /* lent buffers come back */
    ck_assert_uint_le(ring_in(fixture)->held_n, BUFFERS / 2);
    other = watch_end(fixture, pair);
    other->receives = true;
    arm_event(other, EVENT_READ);
    send_text(pair[1], "x");
    turn_until(fixture, other->received == 1);

    for (int i = 0; i < BUFFERS; i += 2) { /* half of them read after all */
        char byte[5];

        drain_socket(fds[i][1]);
        turn_until(fixture, !ring_watch_of(ring_in(fixture), &full[i]->source)->busy[RING_SEND]);
        ck_assert_int_eq(read(fds[i][1], byte, sizeof(byte)), 4);
    }
    for (int i = 0; i < BUFFERS; i++) {
        unwatch(&full[i]);
        close(fds[i][1]);
    }
    unwatch(&other);
    close(pair[1]);
    check_given_back(fixture, 0);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_watch_waits_for_its_operations)
{
    struct fixture *fixture = start_ring(1);
    struct ring *ring = ring_in(fixture);
    struct watched *watched;
    int old[2], new[2], kept;

    watched = watch_end(fixture, old);
    arm_event(watched, EVENT_READ);
    fixture_turn_waiting(fixture, 0);
    ck_assert_uint_eq(ring->busy_n, 1);
    kept = dup(old[0]);
    unwatch(&watched); /* the slot is free, the watch is not */
    ck_assert_uint_eq(ring->in_use_n, 1);
    send_text(old[1], "late");

    watched = watch_end(fixture, new);
    watched->receives = true;
    arm_event(watched, EVENT_READ);
    ck_assert_uint_eq(ring->in_use_n, 2);
    check_given_back(fixture, 1);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    send_text(new[1], "x");
    turn_until(fixture, watched->received == 1);
    unwatch(&watched);
    check_given_back(fixture, 0);
    close(kept);
    close(old[1]);
    close(new[1]);
    fixture_stop(fixture);
}
END_TEST

START_TEST(output_that_has_not_left_is_told)
{
    struct fixture *fixture = start_ring(1);
    struct watched *watched;
    const struct io_ops *io;
    int fds[2];

    watched = watch_end(fixture, fds);
    io = watched->source.io;
    ck_assert_int_eq(watched_send(watched, "at once", 7).status, IO_DONE);
    ck_assert_int_eq(io->flush(&watched->source, false).status, IO_DONE);
    expect_text(fds[1], "at once");

    fill_socket(fds[0]);
    ck_assert_int_eq(watched_send(watched, "later", 5).status, IO_DONE);
    ck_assert_int_eq(watched_send(watched, ", too", 5).status, IO_DONE);
    ck_assert_int_eq(io->flush(&watched->source, false).status, IO_AGAIN_WRITE);
    arm_event(watched, EVENT_WRITE);
    for (int i = 0; i < 3; i++)
        fixture_turn_waiting(fixture, 1);
    ck_assert_uint_eq(watched->runs[EVENT_WRITE], 0);
    ck_assert_int_eq(watched_send(watched, "not now", 7).status, IO_AGAIN_WRITE);
    drain_socket(fds[1]);
    turn_until(fixture, watched->runs[EVENT_WRITE] > 0);
    ck_assert_int_eq(io->flush(&watched->source, false).status, IO_DONE);
    expect_text(fds[1], "later, too");
    unwatch(&watched);
    close(fds[1]);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_failed_send_is_told)
{
    struct fixture *fixture = start_ring(1);
    struct watched *watched;
    int fds[2];

    watched = watch_end(fixture, fds);
    watched->receives = true;
    arm_event(watched, EVENT_READ);
    disarm_event(watched, EVENT_READ);
    close(fds[1]);
    ck_assert_int_eq(watched_send(watched, "nobody", 6).status, IO_DONE);
    fixture_turn_waiting(fixture, 0);
    ck_assert_int_eq(watched_send(watched, "nobody", 6).error, EPIPE);
    arm_event(watched, EVENT_READ);
    turn_until(fixture, watched->error == EPIPE);
    unwatch(&watched);
    check_given_back(fixture, 0);
    fixture_stop(fixture);
}
END_TEST

typedef void fill_fn(struct io_uring_sqe *entry);

/* The result of an operation that the mechanism has no use for. */
static int try_operation(struct ring *ring, fill_fn *fill)
{
    struct io_uring_sqe *entry = ring_entry(ring);
    struct io_uring_cqe *result;
    int error;

    fill(entry);
    ck_assert_int_ge(ring_enter(ring, 1000, NULL), 0);
    ck_assert_int_eq(io_uring_peek_cqe(&ring->io, &result), 0);
    error = -result->res;
    io_uring_cqe_seen(&ring->io, result);
    return error;
}

static void fill_nop(struct io_uring_sqe *entry)
{
    io_uring_prep_nop(entry);
}

static void fill_open(struct io_uring_sqe *entry)
{
    io_uring_prep_openat(entry, AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
}

static void fill_socket_op(struct io_uring_sqe *entry)
{
    io_uring_prep_socket(entry, AF_INET, SOCK_RAW, 0, 0);
}

static void fill_linked(struct io_uring_sqe *entry)
{
    io_uring_prep_poll_add(entry, 0, 1);
    entry->flags |= IOSQE_IO_LINK;
}

START_TEST(a_ring_can_do_nothing_else)
{
    struct fixture *fixture = start_ring(1);
    struct ring *ring = ring_in(fixture);
    static fill_fn *const fills[] = { fill_nop, fill_open, fill_socket_op, fill_linked };

    for (size_t i = 0; i < countof(fills); i++)
        ck_assert_int_eq(try_operation(ring, fills[i]), EACCES);
    ck_assert_int_eq(
        syscall(SYS_io_uring_register, ring->io.ring_fd, IORING_REGISTER_FILES, &(int) { 0 }, 1),
        -1);
    ck_assert_int_eq(errno, EACCES);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_buffer_comes_back_when_its_input_is_taken);
    tcase_add_test(tcase, a_buffer_comes_back_when_its_source_is_closed);
    tcase_add_test(tcase, a_source_that_is_not_read_holds_no_buffer);
    tcase_add_test(tcase, a_turn_is_one_system_call);
    tcase_add_test(tcase, who_does_not_read_stops_nobody);
    tcase_add_test(tcase, a_watch_waits_for_its_operations);
    tcase_add_test(tcase, output_that_has_not_left_is_told);
    tcase_add_test(tcase, a_failed_send_is_told);
    tcase_add_test(tcase, a_ring_can_do_nothing_else);
}

TEST_MAIN("ring", add_tests)
