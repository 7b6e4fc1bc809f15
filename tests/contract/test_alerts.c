/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract: a fault in a wait is an alert, and the loop goes on, except after a failed wait, or
 * a closed descriptor of the loop's own: then the loop reports itself as useless. The system calls
 * of the mechanisms come here first; a test sets their results instead of the kernel's. */
#include "contract/answers.h"
#include "contract/contract.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    bool set;
    int result, error;
} answer;

bool take_answer(int *result)
{
    if (!answer.set)
        return false;
    answer.set = false;
    errno = answer.error;
    *result = answer.result;
    return true;
}

static void answer_with(int result, int error)
{
    answer.set = true;
    answer.result = result;
    answer.error = error;
}

int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
    int result;

    return take_answer(&result) ? result
                                : (int)syscall(SYS_epoll_pwait, fd, events, n, timeout, mask, 8L);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    struct timespec copy = timeout != NULL ? *timeout : (struct timespec) { 0, 0 };
    int result;

    return take_answer(&result)
               ? result
               : (int)syscall(SYS_ppoll, fds, n, timeout != NULL ? &copy : NULL, mask, 8);
}

int pselect(int n, fd_set *readers, fd_set *writers, fd_set *others, const struct timespec *timeout,
    const sigset_t *mask)
{
    struct timespec copy = timeout != NULL ? *timeout : (struct timespec) { 0, 0 };
    struct {
        const sigset_t *mask;
        size_t size;
    } masked = { mask, 8 };
    int result;

    return take_answer(&result) ? result
                                : (int)syscall(SYS_pselect6, n, readers, writers, others,
                                      timeout != NULL ? &copy : NULL, &masked);
}

static void check_alert(struct fixture *fixture, const char *format, const char *detail)
{
    static const char *const calls[][2] = {
        { "/dev/poll", "/dev/poll: ioctl" },
        { "epoll", "epoll_pwait" },
        { "eventport", "port_getn" },
        { "io_uring", "io_uring_enter" },
        { "kqueue", "kevent" },
    };
    const char *name = fixture->loop->mechanism->name;
    char expected[256];

    for (size_t i = 0; i < countof(calls); i++)
        if (strcmp(name, calls[i][0]) == 0)
            name = calls[i][1];
    snprintf(expected, sizeof(expected), format, name, detail);
    ck_assert_str_eq(fixture_logged(fixture), expected);
}

START_TEST(an_endless_wait_that_ends_is_an_alert)
{
    struct fixture *fixture = contract_start(_i, 1);

    answer_with(0, 0);
    loop_wait(fixture->loop, -1);
    ck_assert(!answer.set);
    check_alert(fixture, "t: [alert] %s() returned no events without timeout%s\n", "");
    answer_with(0, 0);
    loop_wait(fixture->loop, 10);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_wait_that_fails_is_an_alert)
{
    struct fixture *fixture = contract_start(_i, 1);

    answer_with(-1, EINTR); /* a signal is nothing to speak of */
    loop_wait(fixture->loop, 1000);
    ck_assert_int_eq(fixture->loop->wait_error, 0);
    answer_with(-1, EINVAL);
    loop_wait(fixture->loop, 1000);
    ck_assert(!answer.set);
    check_alert(fixture, "t: [alert] %s() failed (22: %s)\n", "Invalid argument");
    ck_assert_int_eq(fixture->loop->wait_error, EINVAL);
    fixture_stop(fixture);
}
END_TEST

/* A mechanism that forgets closed descriptors has a private descriptor, never closed by a
 * source. */
START_TEST(a_descriptor_of_the_loop_is_closed)
{
    sigset_t wait_mask;
    struct fixture *fixture;
    int fd;

    sigprocmask(SIG_BLOCK, NULL, &wait_mask);
    fixture =
        contract_start_with(mechanism_at(_i), mechanism_defaults(mechanism_at(_i)), 1, &wait_mask);
    fd = fixture->loop->signaler->fd;
    if (!mechanism_at(_i)->forgets) {
        int other = dup(fd);

        close(fd);
        loop_wait(fixture->loop, 1000);
        ck_assert_int_eq(fixture->loop->wait_error, EBADF);
        ck_assert_ptr_nonnull(
            strstr(fixture_logged(fixture), "() failed (9: Bad file descriptor)"));
        ck_assert_int_eq(dup2(other, fd), fd);
        close(other);
    }
    fixture_stop(fixture);
}
END_TEST

/* Whether a mechanism looks for as many ready descriptors as the kernel has counted. */
static bool is_counted(const struct mechanism *mechanism)
{
    return strcmp(mechanism->name, "poll") == 0 || strcmp(mechanism->name, "select") == 0;
}

START_TEST(a_wrong_count_is_an_alert)
{
    struct fixture *fixture = contract_start(_i, 1);

    if (is_counted(mechanism_at(_i))) {
        answer_with(2, 0);
        loop_wait(fixture->loop, 1000);
        ck_assert(!answer.set);
        check_alert(fixture, "t: [alert] %s() counted %s more ready than there are\n", "2");
    }
    fixture_stop(fixture);
}
END_TEST

/* Some mechanisms forget the descriptor at the close; the rest notice and log the close. */
START_TEST(a_descriptor_closed_by_somebody_else)
{
    struct fixture *fixture = contract_start(_i, 2);
    struct watched *lost, *fine;
    int pairs[2][2];
    const char *line;
    char fd_text[32];

    make_pair(pairs[0]);
    make_pair(pairs[1]);
    lost = watch_fd(fixture, pairs[0][0]);
    fine = watch_fd(fixture, pairs[1][0]);
    lost->receives = fine->receives = true;
    arm_event(lost, EVENT_READ);
    arm_event(fine, EVENT_READ);
    close(pairs[0][0]);
    send_text(pairs[1][1], "x");
    turn_until(fixture, fine->received == 1);
    snprintf(fd_text, sizeof(fd_text), "descriptor %d", pairs[0][0]);
    if (lost->runs[EVENT_READ] > 0) {
        ck_assert_int_eq(lost->error, EBADF); /* the owner has found out by trying */
        line = fixture_logged(fixture);
        ck_assert_ptr_nonnull(strstr(line, fd_text));
        ck_assert_ptr_eq(strchr(line, '\n'), strrchr(line, '\n'));
    } else {
        ck_assert(mechanism_at(_i)->forgets);
    }
    check_quiet(fixture); /* an inactive owner is not told again */
    ck_assert_str_eq(fixture_logged(fixture), "");
    unwatch(&lost);
    send_text(pairs[1][1], "x");
    turn_until(fixture, fine->received == 2);
    unwatch(&fine);
    close(pairs[0][1]);
    close(pairs[1][1]);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase, int from, int to)
{
    tcase_add_real_test(tcase, an_endless_wait_that_ends_is_an_alert, from, to);
    tcase_add_real_test(tcase, a_wait_that_fails_is_an_alert, from, to);
    tcase_add_real_test(tcase, a_descriptor_of_the_loop_is_closed, from, to);
    tcase_add_real_test(tcase, a_wrong_count_is_an_alert, from, to);
    tcase_add_real_test(tcase, a_descriptor_closed_by_somebody_else, from, to);
}

CONTRACT_MAIN("alerts", add_tests)
