/* SPDX-License-Identifier: BSD-2-Clause */
/* The shim of /dev/poll against the manual page, poll(4D). */
#include "support/test.h"

#include <sys/devpoll.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static int open_poll(void)
{
    int fd = open("/dev/poll", O_RDWR | O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    return fd;
}

/* A pair with a readable first end. */
static void make_readable(int fds[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(write(fds[1], "x", 1), 1);
}

static void close_pair(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static void change(int poll, int fd, short events)
{
    struct pollfd one = { .fd = fd, .events = events, .revents = 0x7fff }; /* not used */

    ck_assert_int_eq(write(poll, &one, sizeof(one)), sizeof(one));
}

static int ask(int poll, struct pollfd *events, unsigned n, int timeout)
{
    struct dvpoll wait = { .dp_fds = events, .dp_nfds = n, .dp_timeout = timeout };

    return ioctl(poll, DP_POLL, &wait);
}

START_TEST(events_are_told_with_what_was_asked_as_long_as_they_last)
{
    int poll = open_poll(), fds[2];
    struct pollfd event;

    make_readable(fds);
    change(poll, fds[0], POLLIN);
    for (int i = 0; i < 3; i++) {
        memset(&event, 0, sizeof(event));
        ck_assert_int_eq(ask(poll, &event, 1, -1), 1);
        ck_assert_int_eq(event.fd, fds[0]);
        ck_assert_int_eq(event.events, POLLIN);
        ck_assert_int_eq(event.revents, POLLIN);
    }
    close_pair(fds);
    close(poll);
}
END_TEST

START_TEST(writes_are_added_up_until_a_removal)
{
    int poll = open_poll(), fds[2];
    struct pollfd event, asked;

    make_readable(fds);
    change(poll, fds[0], POLLOUT);
    change(poll, fds[0], POLLIN);
    ck_assert_int_eq(ask(poll, &event, 1, 0), 1);
    ck_assert_int_eq(event.events, POLLIN | POLLOUT);
    ck_assert_int_eq(event.revents, POLLIN | POLLOUT);
    asked = (struct pollfd) { .fd = fds[0], .events = 77 };
    ck_assert_int_eq(ioctl(poll, DP_ISPOLLED, &asked), 1);
    ck_assert_int_eq(asked.events, 0);
    ck_assert_int_eq(asked.revents, POLLIN | POLLOUT);

    change(poll, fds[0], POLLREMOVE);
    ck_assert_int_eq(ask(poll, &event, 1, 0), 0);
    asked = (struct pollfd) { .fd = fds[0], .events = 77, .revents = 78 };
    ck_assert_int_eq(ioctl(poll, DP_ISPOLLED, &asked), 0);
    ck_assert_int_eq(asked.events, 77);
    ck_assert_int_eq(asked.revents, 78);
    change(poll, fds[0], POLLREMOVE); /* no mistake */
    close_pair(fds);
    close(poll);
}
END_TEST

START_TEST(changes_of_a_write_are_made_in_order)
{
    int poll = open_poll(), fds[2], others[2];
    struct pollfd event;

    make_readable(fds);
    make_readable(others);
    change(poll, fds[0], POLLIN | POLLOUT);
    {
        struct pollfd changes[] = {
            { .fd = fds[0], .events = POLLREMOVE },
            { .fd = others[0], .events = POLLIN },
            { .fd = fds[0], .events = POLLOUT },
            { .fd = others[0], .events = POLLREMOVE },
        };

        ck_assert_int_eq(write(poll, changes, sizeof(changes)), sizeof(changes));
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ask(poll, &event, 1, 0), 1);
        ck_assert_int_eq(event.fd, fds[0]);
        ck_assert_int_eq(event.revents, POLLOUT);
    }
    close_pair(fds);
    close_pair(others);
    close(poll);
}
END_TEST

START_TEST(hang_ups_are_told_unasked)
{
    int poll = open_poll(), fds[2];
    struct pollfd event;

    make_readable(fds);
    change(poll, fds[0], POLLPRI);
    ck_assert_int_eq(ask(poll, &event, 1, 0), 0);
    close(fds[1]);
    ck_assert_int_eq(ask(poll, &event, 1, 0), 1);
    ck_assert_int_eq(event.revents, POLLHUP);
    close(fds[0]);
    close(poll);
}
END_TEST

START_TEST(a_closed_descriptor_stays_until_it_is_removed)
{
    int poll = open_poll(), fds[2], again[2];
    struct pollfd event;

    make_readable(fds);
    change(poll, fds[0], POLLIN);
    close_pair(fds);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ask(poll, &event, 1, 0), 1);
        ck_assert_int_eq(event.fd, fds[0]);
        ck_assert_int_eq(event.revents, POLLNVAL);
    }
    make_readable(again); /* the same descriptors: polled in place of the old set */
    ck_assert_int_eq(again[0], fds[0]);
    ck_assert_int_eq(ask(poll, &event, 1, 0), 1);
    ck_assert_int_eq(event.revents, POLLIN);
    close_pair(again);
    change(poll, fds[0], POLLREMOVE);
    ck_assert_int_eq(ask(poll, &event, 1, 0), 0);
    close(poll);
}
END_TEST

START_TEST(a_wait_tells_no_more_than_there_is_room_for_and_starves_nobody)
{
    int poll = open_poll(), fds[6][2], told[6] = { 0 };
    struct pollfd events[4];

    for (int i = 0; i < 6; i++) {
        make_readable(fds[i]);
        change(poll, fds[i][0], POLLIN);
    }
    for (int turn = 0; turn < 3; turn++) {
        memset(events, 0xff, sizeof(events));
        ck_assert_int_eq(ask(poll, events, 2, -1), 2);
        ck_assert_int_eq(events[2].fd, -1);
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < 6; i++)
                told[i] += events[k].fd == fds[i][0];
    }
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(told[i], 1);
        close_pair(fds[i]);
    }
    close(poll);
}
END_TEST

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void ignore(int number)
{
    (void)number;
}

START_TEST(a_wait_ends_with_its_time_or_a_signal)
{
    struct sigaction action = { .sa_handler = ignore };
    int poll = open_poll();
    int64_t start = now_ms();
    struct pollfd event = { .fd = 7 };
    timer_t timer;
    struct itimerspec soon = { .it_value.tv_nsec = 20 * 1000000 };

    ck_assert_int_eq(ask(poll, &event, 1, 30), 0);
    ck_assert_int_ge(now_ms() - start, 29);
    ck_assert_int_eq(event.fd, 7);

    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
    ck_assert_int_eq(timer_settime(timer, 0, &soon, NULL), 0);
    ck_assert_int_eq(ask(poll, &event, 1, -1), -1);
    ck_assert_int_eq(errno, EINTR);
    timer_delete(timer);
    close(poll);
}
END_TEST

START_TEST(wrong_use_is_refused)
{
    int poll = open_poll(), other = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct rlimit limits = { .rlim_cur = 64, .rlim_max = 64 };
    struct pollfd events[65] = { { .fd = 0 } };
    struct dvpoll wait = { .dp_nfds = 1 };

    ck_assert_int_eq(ioctl(poll, 0xd0ff, events), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ioctl(poll, DP_POLL, NULL), -1);
    ck_assert_int_eq(errno, EFAULT);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limits), 0);
    ck_assert_int_eq(ask(poll, events, 64, 0), -1); /* the number of possible descriptors */
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ask(poll, events, 63, 0), 0);
    ck_assert_int_eq(write(poll, events, sizeof(events)), -1);
    ck_assert_int_eq(errno, EINVAL);

    /* other descriptors go to the system */
    ck_assert_int_eq(ioctl(other, DP_POLL, &wait), -1);
    ck_assert_int_eq(errno, ENOTTY);
    ck_assert_int_eq(write(other, "x", 1), 1);
    close(other);
    ck_assert_int_eq(ioctl(other, DP_POLL, &wait), -1);
    ck_assert_int_eq(errno, EBADF);
    close(poll);
    ck_assert_int_eq(ioctl(poll, DP_POLL, &wait), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(polling_a_handle_tells_an_error)
{
    int handle = open_poll();
    struct pollfd one = { .fd = handle, .events = POLLIN };

    ck_assert_int_eq(poll(&one, 1, 0), 1);
    ck_assert_int_eq(one.revents, POLLERR);
    close(handle);
}
END_TEST

static void use_inherited(int poll)
{
    struct pollfd event = { .fd = 0, .events = POLLIN };
    int own, fds[2];

    ck_assert_int_eq(write(poll, &event, sizeof(event)), -1);
    ck_assert_int_eq(errno, EACCES);
    ck_assert_int_eq(ask(poll, &event, 1, 0), -1);
    ck_assert_int_eq(errno, EACCES);
    ck_assert_int_eq(ioctl(poll, DP_ISPOLLED, &event), -1);
    ck_assert_int_eq(errno, EACCES);
    close(poll);
    own = open_poll();
    make_readable(fds);
    change(own, fds[0], POLLIN);
    ck_assert_int_eq(ask(own, &event, 1, 0), 1);
}

START_TEST(a_child_cannot_use_its_parents)
{
    int poll = open_poll(), fds[2], status;
    struct pollfd event;
    pid_t pid;

    make_readable(fds);
    change(poll, fds[0], POLLIN);
    pid = fork();
    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        use_inherited(poll);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(ask(poll, &event, 1, 0), 1);
    close_pair(fds);
    close(poll);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, events_are_told_with_what_was_asked_as_long_as_they_last);
    tcase_add_test(tcase, writes_are_added_up_until_a_removal);
    tcase_add_test(tcase, changes_of_a_write_are_made_in_order);
    tcase_add_test(tcase, hang_ups_are_told_unasked);
    tcase_add_test(tcase, a_closed_descriptor_stays_until_it_is_removed);
    tcase_add_test(tcase, a_wait_tells_no_more_than_there_is_room_for_and_starves_nobody);
    tcase_add_test(tcase, a_wait_ends_with_its_time_or_a_signal);
    tcase_add_test(tcase, wrong_use_is_refused);
    tcase_add_test(tcase, polling_a_handle_tells_an_error);
    tcase_add_test(tcase, a_child_cannot_use_its_parents);
}

TEST_MAIN("shim of /dev/poll", add_tests)
