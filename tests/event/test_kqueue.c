/* SPDX-License-Identifier: BSD-2-Clause */
/* The mechanism kqueue: state reported by the kernel with an event costs no system call. */
#include "contract/contract.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned receives, accepts;

ssize_t recv(int fd, void *p, size_t n, int flags)
{
    receives++;
    return syscall(SYS_recvfrom, fd, p, n, flags, NULL, NULL);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    accepts++;
    return (int)syscall(SYS_accept4, fd, address, length, flags);
}

/* The posix flavour's */
int accept(int fd, struct sockaddr *address, socklen_t *length)
{
    accepts++;
    return (int)syscall(SYS_accept, fd, address, length);
}

static struct fixture *start_kqueue(void)
{
    struct mechanism_values values = mechanism_defaults(&mechanism_kqueue);

    return contract_start_with(&mechanism_kqueue, values, 4, NULL);
}

START_TEST(an_end_is_told_with_its_bytes)
{
    struct fixture *fixture = start_kqueue();
    struct watched *watched;
    uint8_t bytes[8];
    int fds[2];

    make_tcp_pair(fds);
    watched = watch_fd(fixture, fds[0]);
    arm_event(watched, EVENT_READ);
    send_text(fds[1], "abc");
    close_end(fds[1]);
    turn_until(fixture, watched->source.eof);
    receives = 0;
    ck_assert_uint_eq(watched_recv(watched, bytes, 2).n, 2);
    ck_assert_uint_eq(watched_recv(watched, bytes, sizeof(bytes)).n, 1);
    ck_assert_uint_eq(receives, 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(watched_recv(watched, bytes, sizeof(bytes)).status, IO_EOF);
    ck_assert_uint_eq(receives, 2);
    unwatch(&watched);
    fixture_stop(fixture);
}
END_TEST

START_TEST(an_error_is_told)
{
    struct fixture *fixture = start_kqueue();
    struct watched *watched;
    struct io_result result;
    uint8_t bytes[8];
    int fds[2];

    make_tcp_pair(fds);
    watched = watch_fd(fixture, fds[0]);
    arm_event(watched, EVENT_READ);
    reset_end(fds[1]);
    turn_until(fixture, watched->source.eof);
    receives = 0;
    result = watched_recv(watched, bytes, sizeof(bytes));
    ck_assert_int_eq(result.status, IO_FAILED);
    ck_assert_int_eq(result.error, ECONNRESET);
    ck_assert_uint_eq(receives, 0);
    unwatch(&watched);

    make_tcp_pair(fds); /* the next use of the slot knows nothing of it */
    watched = watch_fd(fixture, fds[0]);
    watched->receives = true;
    arm_event(watched, EVENT_READ);
    send_text(fds[1], "a");
    turn_until(fixture, watched->received == 1);
    ck_assert_int_eq(watched_recv(watched, bytes, sizeof(bytes)).status, IO_AGAIN_READ);
    unwatch(&watched);
    close_end(fds[1]);
    fixture_stop(fixture);
}
END_TEST

static enum io_status accept_client(struct watched *listener)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    int fd;
    struct io_result result =
        listener->source.io->accept(&listener->source, &fd, (struct sockaddr *)&peer, &length);

    if (result.status == IO_DONE)
        close(fd);
    return result.status;
}

START_TEST(waiting_clients_are_counted)
{
    struct fixture *fixture = start_kqueue();
    struct sockaddr_in address;
    struct watched *listener = watch_fd(fixture, make_listener(&address));
    int clients[3];
    unsigned taken = 0;

    listener->source.queue = QUEUE_ACCEPT;
    ck_assert_int_eq(source_arm_listener(fixture->loop, &listener->source, false), 0);
    for (int i = 0; i < 3; i++)
        clients[i] = make_client(&address);
    accepts = 0;
    while (taken < 3) { /* the loopback may deliver late */
        fixture_turn_waiting(fixture, 1000);
        while (accept_client(listener) == IO_DONE)
            taken++;
        ck_assert_uint_eq(accepts, taken);
    }
    ck_assert_int_eq(accept_client(listener), IO_AGAIN_READ); /* asked once more */
    ck_assert_uint_eq(accepts, taken + 1);

    clients[0] = (close(clients[0]), make_client(&address));
    fixture_turn_waiting(fixture, 1000);
    source_disarm_listener(fixture->loop, &listener->source);
    clients[1] = (close(clients[1]), make_client(&address));
    turn_until(fixture, accept_client(listener) == IO_DONE); /* a count holds no longer */
    turn_until(fixture, accept_client(listener) == IO_DONE);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    unwatch(&listener);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, an_end_is_told_with_its_bytes);
    tcase_add_test(tcase, an_error_is_told);
    tcase_add_test(tcase, waiting_clients_are_counted);
}

TEST_MAIN("kqueue", add_tests)
