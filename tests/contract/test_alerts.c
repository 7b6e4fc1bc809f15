/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract: what goes wrong in a wait is an alert, and the loop goes on. The system calls of the
 * mechanisms come here first; what they answer instead of the kernel, a test has set. */
#include "contract/contract.h"

#include <errno.h>
#include <poll.h>
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

static bool take_answer(int *result)
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
                                : (int)syscall(SYS_epoll_pwait, fd, events, n, timeout, mask, 8);
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

static void check_alert(struct bench *bench, const char *format, const char *detail)
{
    const char *name = bench->loop.mechanism->name;
    char expected[256];

    if (strcmp(name, "epoll") == 0)
        name = "epoll_pwait";
    snprintf(expected, sizeof(expected), format, name, detail);
    ck_assert_str_eq(bench_logged(bench), expected);
}

START_TEST(an_endless_wait_that_ends_is_an_alert)
{
    struct bench *bench = bench_set_up(_i, 1);

    answer_with(0, 0);
    loop_wait(&bench->loop, -1);
    ck_assert(!answer.set);
    check_alert(bench, "t: [alert] %s() returned no events without timeout%s\n", "");
    answer_with(0, 0);
    loop_wait(&bench->loop, 10);
    bench_tear_down(bench);
}
END_TEST

START_TEST(a_wait_that_fails_is_an_alert)
{
    struct bench *bench = bench_set_up(_i, 1);

    answer_with(-1, EINVAL);
    loop_wait(&bench->loop, 1000);
    ck_assert(!answer.set);
    check_alert(bench, "t: [alert] %s() failed (22: %s)\n", "Invalid argument");
    answer_with(-1, EINTR); /* a signal is nothing to speak of */
    loop_wait(&bench->loop, 1000);
    bench_tear_down(bench);
}
END_TEST

START_TEST(a_wrong_count_is_an_alert)
{
    struct bench *bench = bench_set_up(_i, 1);

    if (!mechanism_at(_i)->edge) { /* those that look for who is ready */
        answer_with(2, 0);
        loop_wait(&bench->loop, 1000);
        ck_assert(!answer.set);
        check_alert(bench, "t: [alert] %s() counted %s more ready than there are\n", "2");
    }
    bench_tear_down(bench);
}
END_TEST

/* epoll forgets the descriptor with its closing; the others notice and say so. */
START_TEST(a_descriptor_closed_by_somebody_else)
{
    struct bench *bench = bench_set_up(_i, 2);
    struct watched *lost, *fine;
    int pairs[2][2];
    char fd_text[32];

    make_pair(pairs[0]);
    make_pair(pairs[1]);
    lost = watch(bench, pairs[0][0]);
    fine = watch(bench, pairs[1][0]);
    lost->receives = fine->receives = true;
    arm(lost, EVENT_READ);
    arm(fine, EVENT_READ);
    close(pairs[0][0]);
    say(pairs[1][1], "x");
    turn_until(bench, fine->received == 1);
    snprintf(fd_text, sizeof(fd_text), "descriptor %d", pairs[0][0]);
    if (lost->runs[EVENT_READ] > 0) {
        ck_assert_int_eq(lost->error, EBADF); /* its owner has found out by trying */
        ck_assert_ptr_nonnull(strstr(bench_logged(bench), fd_text));
    } else {
        ck_assert(mechanism_at(_i)->edge);
    }
    watch_no_more(&lost);
    bench_logged(bench); /* as often as it was waited for */
    check_quiet(bench);
    say(pairs[1][1], "x");
    turn_until(bench, fine->received == 2);
    watch_no_more(&fine);
    close(pairs[0][1]);
    close(pairs[1][1]);
    bench_tear_down(bench);
}
END_TEST

static void add_tests(TCase *tcase, int from, int to)
{
    tcase_add_real_test(tcase, an_endless_wait_that_ends_is_an_alert, from, to);
    tcase_add_real_test(tcase, a_wait_that_fails_is_an_alert, from, to);
    tcase_add_real_test(tcase, a_wrong_count_is_an_alert, from, to);
    tcase_add_real_test(tcase, a_descriptor_closed_by_somebody_else, from, to);
}

CONTRACT_MAIN("alerts", add_tests)
