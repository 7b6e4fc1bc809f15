/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract: how long a wait lasts, and the causes of its end: events, threads, signals,
 * ticks. */
#include "contract/contract.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

START_TEST(a_wait_lasts_as_long_as_asked)
{
    static const int timeouts[] = { 1, 20, 35 };

    for (size_t i = 0; i < countof(timeouts); i++) {
        struct fixture *fixture = contract_start(_i, 1); /* io_uring may cut a later wait short */
        uint64_t start = now_us();

        loop_wait(fixture->loop, timeouts[i]);
        ck_assert_uint_ge(now_us() - start, (uint64_t)timeouts[i] * 1000);
        fixture_stop(fixture);
    }
}
END_TEST

START_TEST(it_sets_the_clock)
{
    struct fixture *fixture = contract_start(_i, 1);
    uint64_t mono = fixture->loop->clock.mono_ms;
    int64_t wall = fixture->loop->clock.wall_ms;

    ck_assert_uint_gt(mono, 0);
    loop_wait(fixture->loop, 20);
    ck_assert_uint_ge(fixture->loop->clock.mono_ms, mono + 19);
    ck_assert_int_ge(fixture->loop->clock.wall_ms, wall);
    fixture_stop(fixture);
}
END_TEST

static unsigned told; /* by notified() */

static void count_notice(struct loop *loop)
{
    (void)loop;
    told++;
}

static void *notify_loop(void *arg)
{
    struct loop *loop = arg;

    return loop->mechanism->notify(loop) == 0 ? arg : NULL;
}

START_TEST(a_thread_wakes_it)
{
    struct fixture *fixture = contract_start(_i, 1);
    struct loop *loop = fixture->loop;

    ck_assert_int_eq(loop_set_notified(loop, count_notice), 0);
    check_quiet(fixture);
    for (unsigned i = 1; i <= 20; i++) {
        pthread_t thread;
        void *result;

        ck_assert_int_eq(pthread_create(&thread, NULL, notify_loop, loop), 0);
        fixture_turn_waiting(fixture, -1); /* a signal before the wait or within */
        ck_assert_int_eq(pthread_join(thread, &result), 0);
        ck_assert_ptr_nonnull(result);
        ck_assert_uint_eq(told, i);
    }
    check_quiet(fixture);

    /* any number before the wait is told at least once, and then it is over */
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_nonnull(notify_loop(loop));
    fixture_turn_waiting(fixture, -1);
    ck_assert_uint_gt(told, 20);
    check_quiet(fixture);
    fixture_stop(fixture);
}
END_TEST

static volatile sig_atomic_t caught, wake_fd = -1;

/* Does a handler's duty: writes to loop->signal_fd, if any. */
static void catch (int number)
{
    ssize_t written = wake_fd != -1 ? write(wake_fd, "", 1) : 0;

    (void)number;
    (void)written;
    caught++;
}

/* SIGUSR1 is blocked from here on; *wait_mask lets SIGUSR1 through. */
static void block_signal(sigset_t *wait_mask)
{
    struct sigaction action = { .sa_handler = catch };
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &blocked, wait_mask), 0);
    sigdelset(wait_mask, SIGUSR1);
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    caught = 0;
}

static struct fixture *start_with_signals(int i, sigset_t *wait_mask)
{
    struct fixture *fixture;

    block_signal(wait_mask);
    fixture =
        contract_start_with(mechanism_at(i), mechanism_defaults(mechanism_at(i)), 2, wait_mask);
    wake_fd = fixture->loop->signal_fd;
    return fixture;
}

static bool is_blocked(void)
{
    sigset_t now;

    ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &now), 0);
    return sigismember(&now, SIGUSR1) == 1;
}

START_TEST(a_signal_before_the_wait_ends_it_at_once)
{
    sigset_t wait_mask;
    struct fixture *fixture = start_with_signals(_i, &wait_mask);

    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(raise(SIGUSR1), 0);
        ck_assert_int_eq(caught, i - 1); /* blocked outside of the wait */
        loop_wait(fixture->loop, -1);
        ck_assert_int_eq(caught, i);
        ck_assert(is_blocked());
    }
    check_quiet(fixture);
    fixture_stop(fixture);
}
END_TEST

static void *raise_soon(void *arg)
{
    return kill(getpid(), SIGUSR1) == 0 ? arg : NULL;
}

START_TEST(a_signal_ends_the_wait)
{
    sigset_t wait_mask;
    struct fixture *fixture = start_with_signals(_i, &wait_mask);
    pthread_t thread;
    void *result;

    ck_assert_int_eq(pthread_create(&thread, NULL, raise_soon, fixture), 0); /* blocks it too */
    while (caught == 0)
        loop_wait(fixture->loop, -1);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_nonnull(result);
    ck_assert_int_eq(caught, 1);
    fixture_stop(fixture);
}
END_TEST

START_TEST(without_a_mask_it_leaves_signals_alone)
{
    sigset_t wait_mask, pending;
    struct fixture *fixture;

    block_signal(&wait_mask);
    fixture = contract_start_with(mechanism_at(_i), mechanism_defaults(mechanism_at(_i)), 2, NULL);
    ck_assert_int_eq(raise(SIGUSR1), 0);
    check_quiet(fixture);
    ck_assert_int_eq(caught, 0);
    ck_assert_int_eq(sigpending(&pending), 0);
    ck_assert_int_eq(sigismember(&pending, SIGUSR1), 1);
    fixture_stop(fixture);
}
END_TEST

/* A wait that finds events, or has no time, does not look for signals. */
START_TEST(a_busy_loop_gets_its_signals_too)
{
    sigset_t wait_mask;
    struct fixture *fixture = start_with_signals(_i, &wait_mask);
    struct watched *watched;
    uint64_t deadline;
    int fds[2];

    make_pair(fds);
    watched = watch_fd(fixture, fds[0]);
    watched->receives = true;
    arm_event(watched, EVENT_READ);
    for (int busy = 0; busy < 2; busy++) {
        caught = 0;
        ck_assert_int_eq(raise(SIGUSR1), 0);
        deadline = now_us() + TEST_PATIENCE_MS * 1000;
        while (caught == 0) {
            if (busy)
                send_text(fds[1], "x");
            fixture_turn_waiting(fixture, 0);
            ck_assert_msg(now_us() < deadline, "the signal does not get through");
        }
        ck_assert(is_blocked());
    }
    close(fds[1]);
    unwatch(&watched);
    fixture_stop(fixture);
}
END_TEST

START_TEST(time_comes_in_ticks)
{
    struct fixture *fixture = contract_start(_i, 1);
    struct loop *loop = fixture->loop;
    uint64_t before = loop->clock.mono_ms;

    ck_assert_int_eq(loop_set_resolution(loop, 3600 * 1000), 0);
    for (int i = 0; i < 3; i++)
        loop_wait(loop, 5);
    ck_assert_uint_eq(loop->clock.mono_ms, before); /* the next tick is far away */
    fixture_stop(fixture);
}
END_TEST

static unsigned expirations;

static void note_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
    expirations++;
}

START_TEST(timers_go_by_the_ticks)
{
    struct fixture *fixture = contract_start(_i, 1);
    struct loop *loop = fixture->loop;
    struct timer timer = { .expired = note_expired };
    uint64_t set_ms, deadline = now_us() + TEST_PATIENCE_MS * 1000;

    ck_assert_int_eq(loop_set_resolution(loop, 10), 0);
    set_ms = loop->clock.mono_ms; /* older than now, where the process was kept from running */
    timer_set(loop, &timer, 35);
    while (expirations == 0) {
        uint64_t before = loop->clock.mono_ms;

        loop_wait(loop, -1); /* the ticks end it */
        ck_assert_uint_gt(loop->clock.mono_ms, before);
        timers_run(&loop->timers);
        ck_assert_uint_lt(now_us(), deadline);
    }
    ck_assert_uint_ge(now_us() / 1000, set_ms + 35);
    fixture_stop(fixture);
}
END_TEST

#define TICK_MS 60

/* Lets the clock become older than a timer that is set then, but no older than a tick, as it does
 * where the process is kept from running. */
static uint64_t let_clock_age(struct loop *loop)
{
    uint64_t now, deadline;

    do {
        deadline = now_us() + 50 * 1000;
        while ((now = now_us()) < deadline)
            loop_wait(loop, 0);
    } while (now / 1000 > loop->clock.mono_ms + TICK_MS);
    return now;
}

START_TEST(no_timer_ends_before_its_time)
{
    struct fixture *fixture = contract_start(_i, 1);
    struct loop *loop = fixture->loop;
    struct timer timer = { .expired = note_expired };
    uint64_t set, deadline;

    ck_assert_int_eq(loop_set_resolution(loop, TICK_MS), 0);
    set = let_clock_age(loop);
    timer_set(loop, &timer, 30);
    deadline = set + TEST_PATIENCE_MS * 1000;
    while (expirations == 0) {
        loop_wait(loop, -1);
        timers_run(&loop->timers);
        ck_assert_uint_lt(now_us(), deadline);
    }
    ck_assert_uint_ge(now_us() - set, 29 * 1000); /* the clock is cut to milliseconds */
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase, int from, int to)
{
    tcase_add_loop_test(tcase, a_wait_lasts_as_long_as_asked, from, to);
    tcase_add_loop_test(tcase, it_sets_the_clock, from, to);
    tcase_add_real_test(tcase, a_thread_wakes_it, from, to);
    tcase_add_real_test(tcase, a_signal_before_the_wait_ends_it_at_once, from, to);
    tcase_add_real_test(tcase, a_signal_ends_the_wait, from, to);
    tcase_add_real_test(tcase, without_a_mask_it_leaves_signals_alone, from, to);
    tcase_add_real_test(tcase, a_busy_loop_gets_its_signals_too, from, to);
    tcase_add_real_test(tcase, time_comes_in_ticks, from, to);
    tcase_add_loop_test(tcase, timers_go_by_the_ticks, from, to);
    tcase_add_real_test(tcase, no_timer_ends_before_its_time, from, to);
}

CONTRACT_MAIN("wait", add_tests)
