/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners after a shutdown: left alone, reported, and tried again. */
#include "net/listener_socket.h"
#include "support/fixture_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEND_MS 100

static const struct fixture_worker_options ways[] = {
    { .connections = 16, .processes = 2 },
    { .connections = 16, .processes = 2, .mutex = true },
    { .connections = 16, .processes = 2, .mutex = true, .multi_accept = true },
    { .connections = 16, .processes = 2, .events = FIXTURE_LEVEL },
    { .connections = 16, .processes = 2, .reuseport = 2 },
};

/* Turns for so long; returns the number of turns. */
static unsigned turn_for(struct fixture *fixture, uint64_t ms)
{
    uint64_t until = fixture->loop->clock.mono_ms + ms;
    unsigned n = 0;

    for (; fixture->loop->clock.mono_ms < until; n++) {
        ck_assert_uint_lt(n, 1000);
        fixture_turn(fixture);
    }
    return n;
}

static void break_listener(struct fixture *fixture, unsigned i)
{
    fixture->listening[i]->accept_error = EINVAL;
}

START_TEST(a_broken_listener_is_left_alone_for_a_while)
{
    struct fixture *fixture = fixture_start_worker(&ways[_i]);
    unsigned reports = 0;
    uint64_t before;

    break_listener(fixture, 0);
    ck_assert_uint_le(turn_for(fixture, 20 * MEND_MS), 50); /* no spinning */
    while (fixture_receive_message(fixture) == MESSAGE_LISTENER_BROKEN)
        reports++;
    ck_assert_uint_ge(reports, 8);
    ck_assert_uint_le(reports, 21);
    fixture->listening[0]->accept_error = 0;
    before = fixture->loop->clock.mono_ms;
    fixture_connect_client(fixture);
    fixture_turn_until_open(fixture, 1);
    ck_assert_uint_le(fixture->loop->clock.mono_ms - before, MEND_MS);
    ck_assert_str_eq(fixture_logged(fixture), ""); /* the master says it */
    fixture_stop(fixture);
}
END_TEST

START_TEST(other_listeners_are_not_concerned)
{
    static const struct fixture_worker_options two = {
        .connections = 16, .processes = 1, .reuseport = 2
    };
    struct fixture *fixture = fixture_start_worker(&two);

    break_listener(fixture, 0);
    fixture_turn(fixture);
    ck_assert(!fixture->listening[0]->listening);
    for (unsigned n = 1; n <= 3; n++) {
        sim_client(fixture->listening[1]);
        fixture_turn_until_open(fixture, n);
    }
    fixture->listening[0]->accept_error = 0;
    while (fixture_receive_message(fixture) != 0)
        ;
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_single_process_mends_its_own)
{
    static const struct fixture_worker_options single = { .connections = 16 };
    struct fixture *fixture = fixture_start_worker(&single);
    char line[256];

    ck_assert_int_eq(shutdown(fixture->listener->fds[0], SHUT_RDWR), 0);
    ck_assert(listener_is_broken(fixture->listener, fixture->listener->fds[0]));
    break_listener(fixture, 0);
    fixture_turn(fixture);
    fixture->listening[0]->accept_error = 0;
    turn_for(fixture, MEND_MS);
    ck_assert(!listener_is_broken(fixture->listener, fixture->listener->fds[0]));
    snprintf(line, sizeof(line), "t: [alert] listener %s was shut down, and listens again (1)\n",
        fixture->listener->text);
    ck_assert_str_eq(fixture_logged(fixture), line);
    fixture_connect_client(fixture);
    fixture_turn_until_open(fixture, 1);
    fixture_stop(fixture);
}
END_TEST

static ino_t inode_of(int fd)
{
    struct stat st;

    ck_assert_int_eq(fstat(fd, &st), 0);
    return st.st_ino;
}

static void send_socket(struct fixture *fixture, int number, int fd)
{
    struct channel_message message = {
        .kind = MESSAGE_LISTENER,
        .argument = (uint32_t)number,
        .fd = fd,
    };

    ck_assert_int_eq(channel_send(fixture->master, &message), 0);
}

/* The mechanisms of the real kernel receive messages. */
START_TEST(a_replaced_socket_keeps_its_number)
{
    struct fixture_worker_options options = ways[_i];
    struct fixture *fixture;
    int fd, number, fresh = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    options.mechanism = mechanism_find(NULL);
    fixture = fixture_start_worker(&options);
    number = fixture->listener->fds[0];
    ck_assert_int_eq(listen(fresh, 1), 0);
    send_socket(fixture, number, fresh);
    send_socket(fixture, 12345, fresh); /* a listener that it does not have */
    send_socket(fixture, number, -1);   /* the worker could not receive it */
    for (int turns = 0; inode_of(number) != inode_of(fresh); turns++) {
        ck_assert_int_lt(turns, 100);
        fixture_turn(fixture);
    }
    ck_assert_int_eq(fcntl(number, F_GETFD), FD_CLOEXEC);
    fd = fixture->listener->fds[0];
    ck_assert_int_eq(fd, number);
    close(fresh);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_broken_listener_is_released_as_any)
{
    struct fixture *fixture = fixture_start_worker(&ways[_i]);

    break_listener(fixture, 0);
    fixture_turn(fixture);
    while (fixture_receive_message(fixture) != 0)
        ;
    worker_set_phase(fixture->worker, WORKER_DRAINING);
    accept_release(fixture->worker);
    ck_assert(!timer_is_set(&fixture->worker->accept.mend));
    ck_assert_uint_eq(fixture_receive_message(fixture), 0);
    acceptors_replace_socket(fixture->worker, 5, 0); /* too late */
    acceptors_leave_mutex(fixture->worker);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int n = (int)countof(ways);

    tcase_add_loop_test(tcase, a_broken_listener_is_left_alone_for_a_while, 0, n);
    tcase_add_test(tcase, other_listeners_are_not_concerned);
    tcase_add_test(tcase, a_single_process_mends_its_own);
    tcase_add_loop_test(tcase, a_replaced_socket_keeps_its_number, 0, 2);
    tcase_add_loop_test(tcase, a_broken_listener_is_released_as_any, 0, n);
}

TEST_MAIN("accept_broken", add_tests)
