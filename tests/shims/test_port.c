/* SPDX-License-Identifier: BSD-2-Clause */
/* The shim of event ports against the manual pages: port_create(3C), port_associate(3C),
 * port_get(3C), port_send(3C), port_alert(3C). */
#include "support/test.h"

#include <port.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const timespec_t at_once = { 0, 0 };
static const timespec_t long_time = { 20, 0 };

static int make_port(void)
{
    int port = port_create();

    ck_assert_int_ge(port, 0);
    return port;
}

static void make_pair(int fds[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

static void make_readable(int fds[2])
{
    make_pair(fds);
    ck_assert_int_eq(write(fds[1], "x", 1), 1);
}

static void close_pair(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static void associate(int port, int fd, int events, intptr_t user)
{
    ck_assert_int_eq(port_associate(port, PORT_SOURCE_FD, (uintptr_t)fd, events, (void *)user), 0);
}

static void check_none(int port)
{
    port_event_t event = { .portev_source = 0 };

    ck_assert_int_eq(port_get(port, &event, &at_once), -1);
    ck_assert_int_eq(errno, ETIME);
    ck_assert_int_eq(event.portev_source, 0);
}

static void check_descriptor(int port, int fd, int events, intptr_t user)
{
    port_event_t event;

    ck_assert_int_eq(port_get(port, &event, &long_time), 0);
    ck_assert_int_eq(event.portev_source, PORT_SOURCE_FD);
    ck_assert_int_eq((int)event.portev_object, fd);
    ck_assert_int_eq(event.portev_events, events);
    ck_assert_int_eq((intptr_t)event.portev_user, user);
}

static void check_sent(int port, int events, intptr_t user)
{
    port_event_t event;

    ck_assert_int_eq(port_get(port, &event, &long_time), 0);
    ck_assert_int_eq(event.portev_source, PORT_SOURCE_USER);
    ck_assert_int_eq(event.portev_events, events);
    ck_assert_int_eq((intptr_t)event.portev_user, user);
}

START_TEST(an_association_ends_with_its_event)
{
    int port = make_port(), fds[2];

    make_pair(fds);
    associate(port, fds[0], POLLIN, 7);
    check_none(port);
    ck_assert_int_eq(write(fds[1], "x", 1), 1);
    check_descriptor(port, fds[0], POLLIN, 7);
    check_none(port); /* though the byte is still there */
    ck_assert_int_eq(write(fds[1], "x", 1), 1);
    check_none(port); /* nor after another */
    ck_assert_int_eq(port_dissociate(port, PORT_SOURCE_FD, (uintptr_t)fds[0]), -1);
    ck_assert_int_eq(errno, ENOENT);
    associate(port, fds[0], POLLIN, 8); /* tells at once what is there already */
    check_descriptor(port, fds[0], POLLIN, 8);
    close_pair(fds);
    close(port);
}
END_TEST

START_TEST(an_association_is_updated)
{
    int port = make_port(), fds[2];

    make_readable(fds);
    associate(port, fds[0], POLLPRI, 1);
    check_none(port);
    associate(port, fds[0], POLLIN | POLLOUT, 2);
    check_descriptor(port, fds[0], POLLIN | POLLOUT, 2);
    check_none(port);

    /* an unretrieved event goes with the old association */
    associate(port, fds[0], POLLIN, 3);
    {
        uint_t n = 0;

        ck_assert_int_eq(port_getn(port, NULL, 0, &n, NULL), 0);
        ck_assert_uint_eq(n, 1);
    }
    associate(port, fds[0], POLLPRI, 4);
    check_none(port);
    ck_assert_int_eq(port_dissociate(port, PORT_SOURCE_FD, (uintptr_t)fds[0]), 0);
    close_pair(fds);
    close(port);
}
END_TEST

START_TEST(what_is_dissociated_tells_nothing)
{
    int port = make_port(), fds[2];
    uint_t n = 0;

    make_readable(fds);
    associate(port, fds[0], POLLIN, 1);
    ck_assert_int_eq(port_getn(port, NULL, 0, &n, NULL), 0); /* queued */
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(port_dissociate(port, PORT_SOURCE_FD, (uintptr_t)fds[0]), 0);
    check_none(port);
    ck_assert_int_eq(port_dissociate(port, PORT_SOURCE_FD, (uintptr_t)fds[0]), -1);
    ck_assert_int_eq(errno, ENOENT);
    close_pair(fds);
    close(port);
}
END_TEST

START_TEST(hang_ups_are_told_unasked_and_files_are_ready)
{
    int port = make_port(), fds[2], file;

    make_pair(fds);
    associate(port, fds[0], POLLPRI, 1);
    close(fds[1]);
    check_descriptor(port, fds[0], POLLHUP, 1);
    check_none(port);
    close(fds[0]);

    file = open("/", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ne(file, -1);
    associate(port, file, POLLIN, 2);
    check_descriptor(port, file, POLLIN, 2);
    check_none(port);
    close(file);
    close(port);
}
END_TEST

START_TEST(closing_a_descriptor_ends_its_association)
{
    int port = make_port(), fds[2], kept, again[2];

    make_pair(fds);
    kept = dup(fds[0]); /* the file lives on */
    associate(port, fds[0], POLLIN, 1);
    close(fds[0]);
    ck_assert_int_eq(write(fds[1], "x", 1), 1);
    check_none(port);
    ck_assert_int_eq(port_dissociate(port, PORT_SOURCE_FD, (uintptr_t)fds[0]), -1);
    ck_assert_int_eq(errno, EBADFD);

    /* the descriptor's next file has none, until associated */
    associate(port, fds[1], POLLPRI, 2);
    make_pair(again);
    ck_assert_int_eq(again[0], fds[0]);
    check_none(port);
    ck_assert_int_eq(port_dissociate(port, PORT_SOURCE_FD, (uintptr_t)again[0]), -1);
    ck_assert_int_eq(errno, ENOENT);
    associate(port, again[0], POLLIN, 3);
    ck_assert_int_eq(write(fds[1], "x", 1), 1);
    check_none(port);
    ck_assert_int_eq(write(again[1], "x", 1), 1);
    check_descriptor(port, again[0], POLLIN, 3);
    close_pair(again);
    close(fds[1]);
    close(kept);
    close(port);
}
END_TEST

START_TEST(several_are_retrieved_at_once)
{
    int port = make_port(), fds[5][2];
    port_event_t events[8];
    uint_t n = 1;

    for (int i = 0; i < 5; i++) {
        make_readable(fds[i]);
        associate(port, fds[i][0], POLLIN, i);
    }
    ck_assert_int_eq(port_getn(port, events, 3, &n, NULL), 0); /* no more than there is room for */
    ck_assert_uint_eq(n, 3);
    n = 1;
    ck_assert_int_eq(port_getn(port, events + 3, 5, &n, NULL), 0); /* more than are waited for */
    ck_assert_uint_eq(n, 2);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq((int)events[i].portev_object, fds[(intptr_t)events[i].portev_user][0]);
    n = 1;
    ck_assert_int_eq(port_getn(port, events, 8, &n, &at_once), -1);
    ck_assert_int_eq(errno, ETIME);
    ck_assert_uint_eq(n, 0);
    for (int i = 0; i < 5; i++)
        close_pair(fds[i]);
    close(port);
}
END_TEST

START_TEST(a_wait_that_is_over_tells_what_there_is)
{
    static const timespec_t short_time = { 0, 20 * 1000000 };
    int port = make_port();
    struct timespec start, end;
    port_event_t events[4];
    uint_t n = 3;

    ck_assert_int_eq(port_send(port, 5, (void *)6), 0);
    clock_gettime(CLOCK_MONOTONIC, &start);
    ck_assert_int_eq(port_getn(port, events, 4, &n, &short_time), -1);
    ck_assert_int_eq(errno, ETIME);
    clock_gettime(CLOCK_MONOTONIC, &end);
    ck_assert_int_ge(
        (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec, 20 * 1000000);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(events[0].portev_source, PORT_SOURCE_USER);
    ck_assert_int_eq(events[0].portev_events, 5);
    check_none(port);
    n = 0; /* whatever there is */
    ck_assert_int_eq(port_getn(port, events, 4, &n, NULL), 0);
    ck_assert_uint_eq(n, 0);
    close(port);
}
END_TEST

static void ignore(int number)
{
    (void)number;
}

START_TEST(a_signal_ends_the_wait)
{
    struct sigaction action = { .sa_handler = ignore };
    struct itimerspec soon = { .it_value.tv_nsec = 20 * 1000000 };
    int port = make_port();
    port_event_t events[4];
    timer_t timer;
    uint_t n = 1;

    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
    ck_assert_int_eq(timer_settime(timer, 0, &soon, NULL), 0);
    ck_assert_int_eq(port_getn(port, events, 4, &n, NULL), -1);
    ck_assert_int_eq(errno, EINTR);
    ck_assert_uint_eq(n, 0);
    timer_delete(timer);
    close(port);
}
END_TEST

static void *send_soon(void *arg)
{
    int port = *(int *)arg;

    return port_send(port, 1, (void *)2) == 0 ? arg : NULL;
}

START_TEST(events_of_the_program_wake_it_and_come_in_order)
{
    int port = make_port(), fds[2];
    pthread_t thread;
    void *result;

    ck_assert_int_eq(pthread_create(&thread, NULL, send_soon, &port), 0);
    check_sent(port, 1, 2);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_nonnull(result);
    check_none(port);

    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(port_send(port, i, (void *)(intptr_t)(1000 + i)), 0);
    make_readable(fds);
    associate(port, fds[0], POLLIN, 3);
    for (int i = 0; i < 100; i++)
        check_sent(port, i, 1000 + i);
    check_descriptor(port, fds[0], POLLIN, 3);
    close_pair(fds);
    close(port);
}
END_TEST

START_TEST(a_port_is_full_some_time)
{
    int port = make_port(), ports[2] = { port, -1 }, errors[2], sent = 0;

    while (sent < 1000000 && port_send(port, sent, NULL) == 0)
        sent++;
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_ge(sent, 1024);
    check_sent(port, 0, 0); /* makes room */
    ck_assert_int_eq(port_sendn(ports, errors, 2, sent, NULL), 1);
    ck_assert_int_eq(errors[0], 0);
    ck_assert_int_eq(errors[1], EBADF);
    for (int i = 1; i <= sent; i++)
        check_sent(port, i, 0);
    check_none(port);
    ck_assert_int_eq(port_sendn(ports, errors, 0, 0, NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
    close(port);
}
END_TEST

static void check_alert(int port, int events, intptr_t user)
{
    port_event_t list[4];
    uint_t n = 4;

    ck_assert_int_eq(port_getn(port, list, 4, &n, NULL), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(list[0].portev_source, PORT_SOURCE_ALERT);
    ck_assert_int_eq(list[0].portev_events, events);
    ck_assert_int_eq((intptr_t)list[0].portev_user, user);
}

static void *wait_for_alert(void *arg)
{
    port_event_t event;

    return port_get(*(int *)arg, &event, NULL) == 0 && event.portev_source == PORT_SOURCE_ALERT
               ? arg
               : NULL;
}

START_TEST(an_alert_wakes_everybody_and_hides_events)
{
    int port = make_port();
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_for_alert, &port), 0);
    ck_assert_int_eq(port_alert(port, PORT_ALERT_SET, 1, (void *)2), 0);
    for (int i = 0; i < 3; i++) {
        void *result;

        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        ck_assert_ptr_nonnull(result);
    }
    ck_assert_int_eq(port_send(port, 9, (void *)9), 0);
    check_alert(port, 1, 2);
    ck_assert_int_eq(port_alert(port, PORT_ALERT_UPDATE, 3, (void *)4), -1);
    ck_assert_int_eq(errno, EBUSY);
    ck_assert_int_eq(port_alert(port, PORT_ALERT_SET, 3, (void *)4), 0);
    check_alert(port, 3, 4);
    ck_assert_int_eq(port_alert(port, PORT_ALERT_SET | PORT_ALERT_UPDATE, 3, NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(port_alert(port, PORT_ALERT_SET, 0, NULL), 0);
    check_sent(port, 9, 9);
    ck_assert_int_eq(port_alert(port, PORT_ALERT_UPDATE, 5, (void *)6), 0);
    check_alert(port, 5, 6);
    close(port);
}
END_TEST

START_TEST(wrong_use_is_refused)
{
    static const timespec_t wrong[] = { { -1, 0 }, { 0, -1 }, { 0, 1000000001 } };
    int port = make_port(), closed = dup(port);
    port_event_t events[2];
    uint_t n = 1;

    ck_assert_int_eq(fcntl(port, F_GETFD) & FD_CLOEXEC, 0);
    close(closed);
    ck_assert_int_eq(port_associate(closed, PORT_SOURCE_FD, 0, POLLIN, NULL), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(port_associate(port, PORT_SOURCE_FD, (uintptr_t)closed, POLLIN, NULL), -1);
    ck_assert_int_eq(errno, EBADFD);
    ck_assert_int_eq(port_associate(port, PORT_SOURCE_TIMER, 0, POLLIN, NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(port_dissociate(port, PORT_SOURCE_USER, 0), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(port_send(closed, 0, NULL), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(port_send(0, 0, NULL), -1);
    ck_assert_int_eq(errno, EBADFD);
    ck_assert_int_eq(port_alert(0, PORT_ALERT_SET, 1, NULL), -1);
    ck_assert_int_eq(errno, EBADFD);
    ck_assert_int_eq(port_get(0, events, NULL), -1);
    ck_assert_int_eq(errno, EBADFD);

    ck_assert_int_eq(port_getn(port, NULL, 1, &n, NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(port_getn(port, events, 1, NULL, NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
    n = 3;
    ck_assert_int_eq(port_getn(port, events, 2, &n, NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(port_get(port, events, &wrong[i]), -1);
        ck_assert_int_eq(errno, EINVAL);
    }
    close(port);
    ck_assert_int_eq(port_get(port, events, NULL), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

static int run_in_child(int port, const int fds[2], void (*run)(int port, const int fds[2]))
{
    int status;
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        run(port, fds);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static void use_inherited(int port, const int fds[2])
{
    int own[2];

    ck_assert_int_eq(port_dissociate(port, PORT_SOURCE_FD, (uintptr_t)fds[0]), -1);
    ck_assert_int_eq(errno, EACCES); /* the owner is the first to have associated */
    associate(port, fds[0], POLLIN, 2);
    ck_assert_int_eq(port_dissociate(port, PORT_SOURCE_FD, (uintptr_t)fds[0]), -1);
    ck_assert_int_eq(errno, EACCES);
    check_descriptor(port, fds[0], POLLIN, 2);
    check_none(port);
    ck_assert_int_eq(port_send(port, 3, (void *)4), 0);

    make_readable(own); /* for nobody else */
    associate(port, own[0], POLLIN, 5);
}

static void close_inherited(int port, const int fds[2])
{
    associate(port, fds[0], POLLIN, 1);
    close(port); /* ends what its owner has associated */
}

START_TEST(a_port_is_shared_with_children)
{
    int port = make_port(), fds[2];

    make_readable(fds);
    associate(port, fds[0], POLLIN, 1);
    ck_assert_int_eq(run_in_child(port, fds, use_inherited), 0);
    check_sent(port, 3, 4);
    check_none(port);
    ck_assert_int_eq(run_in_child(port, fds, close_inherited), 0);
    check_none(port);
    associate(port, fds[0], POLLIN, 6);
    check_descriptor(port, fds[0], POLLIN, 6);
    close_pair(fds);
    close(port);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, an_association_ends_with_its_event);
    tcase_add_test(tcase, an_association_is_updated);
    tcase_add_test(tcase, what_is_dissociated_tells_nothing);
    tcase_add_test(tcase, hang_ups_are_told_unasked_and_files_are_ready);
    tcase_add_test(tcase, closing_a_descriptor_ends_its_association);
    tcase_add_test(tcase, several_are_retrieved_at_once);
    tcase_add_test(tcase, a_wait_that_is_over_tells_what_there_is);
    tcase_add_test(tcase, a_signal_ends_the_wait);
    tcase_add_test(tcase, events_of_the_program_wake_it_and_come_in_order);
    tcase_add_test(tcase, a_port_is_full_some_time);
    tcase_add_test(tcase, an_alert_wakes_everybody_and_hides_events);
    tcase_add_test(tcase, wrong_use_is_refused);
    tcase_add_test(tcase, a_port_is_shared_with_children);
}

TEST_MAIN("shim of event ports", add_tests)
