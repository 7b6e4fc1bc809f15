/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals of a loop whose mechanism takes no mask in its wait: poll() without one. The cases of
 * tests/contract run with such mechanisms if there are any. */
#include "process/signals.h"
#include "support/watched.h"

#include <fcntl.h>
#include <unistd.h>

static void maskless_process_events(struct loop *loop, int timeout)
{
    const sigset_t *mask = loop->wait_mask;
    sigset_t blocked;

    loop_let_signals(loop, &blocked);
    loop->wait_mask = NULL;
    mechanism_poll.process_events(loop, timeout);
    loop->wait_mask = mask;
    loop_hold_signals(loop, &blocked);
}

static struct mechanism maskless;

static struct fixture *start_maskless(const sigset_t *wait_mask)
{
    struct loop_options options = { .mechanism = &maskless, .slots = 4, .wait_mask = wait_mask };

    maskless = mechanism_poll;
    maskless.masks = false;
    maskless.process_events = maskless_process_events;
    return fixture_start_loop_with(NULL, &options);
}

static bool is_blocked(int number)
{
    sigset_t now;

    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    return sigismember(&now, number) == 1;
}

START_TEST(a_handler_wakes_a_wait_that_has_not_begun)
{
    struct fixture *fixture;

    signals_install(ROLE_WORKER);
    fixture = start_maskless(&signals_state->wait_mask);
    signals_wake_by(fixture->loop->signal_fd);
    for (int i = 0; i < 100; i++) { /* many times: undrained bytes fill the pipe */
        ck_assert_int_eq(raise(SIGQUIT), 0);
        ck_assert(!signals_given(COMMAND_QUIT));
        loop_wait(fixture->loop, -1);
        ck_assert(signals_take(COMMAND_QUIT, NULL));
        ck_assert(is_blocked(SIGQUIT));
    }
    loop_wait(fixture->loop, 0);
    ck_assert_int_eq(read(fixture->loop->signaler->fd, &(char) { 0 }, 1), -1); /* it is empty */
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_full_pipe_loses_no_signal)
{
    struct fixture *fixture;

    signals_install(ROLE_WORKER);
    fixture = start_maskless(&signals_state->wait_mask);
    signals_wake_by(fixture->loop->signal_fd);
    while (write(fixture->loop->signal_fd, "", 1) == 1)
        ;
    ck_assert_int_eq(raise(SIGTERM), 0);
    loop_wait(fixture->loop, -1);
    ck_assert(signals_take(COMMAND_TERM, NULL));
    ck_assert_int_eq(read(fixture->loop->signaler->fd, &(char) { 0 }, 1), -1);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_loop_that_never_waits_gets_its_signals)
{
    struct fixture *fixture;

    signals_install(ROLE_WORKER);
    fixture = start_maskless(&signals_state->wait_mask);
    ck_assert_int_eq(raise(SIGINT), 0);
    loop_wait(fixture->loop, 0);
    ck_assert(signals_take(COMMAND_TERMINATE, NULL));
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_pipe_is_the_loops)
{
    struct fixture *fixture;
    int ends[2];

    signals_install(ROLE_SINGLE);
    fixture = start_maskless(&signals_state->wait_mask);
    ends[0] = fixture->loop->signaler->fd;
    ends[1] = fixture->loop->signal_fd;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(fcntl(ends[i], F_GETFD), FD_CLOEXEC);
        ck_assert(fcntl(ends[i], F_GETFL) & O_NONBLOCK);
    }
    fixture_stop(fixture);
    ck_assert_int_eq(fcntl(ends[0], F_GETFD), -1);
    ck_assert_int_eq(fcntl(ends[1], F_GETFD), -1);

    fixture = start_maskless(NULL); /* no mask: signals are left alone */
    ck_assert_ptr_null(fixture->loop->signaler);
    ck_assert_int_eq(fixture->loop->signal_fd, -1);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_handler_wakes_a_wait_that_has_not_begun);
    tcase_add_test(tcase, a_full_pipe_loses_no_signal);
    tcase_add_test(tcase, a_loop_that_never_waits_gets_its_signals);
    tcase_add_test(tcase, the_pipe_is_the_loops);
}

TEST_MAIN("signals of a loop", add_tests)
