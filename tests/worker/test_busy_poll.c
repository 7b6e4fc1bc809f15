/* SPDX-License-Identifier: BSD-2-Clause */
/* Polling before sleep: how often a worker looks for events before it sleeps, and when it does not.
 * Waits are counted, under the simulated kernel and under the mechanisms of the real one. */
#include "os/process.h"
#include "support/fixture_worker.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct fixture_worker_options single = { .connections = 4 };

/* The waits of the latest turn. */
static struct waits {
    unsigned polls, sleeps;
    int timeout; /* the latest sleep's */
    unsigned says_at, passes_until;
    struct sim_socket *client;
} waits;

static void note_wait(struct loop *loop, int timeout)
{
    struct fixture *fixture = fixture_of(loop);

    if (timeout == 0) {
        waits.polls++;
        if (waits.polls == waits.says_at)
            sim_says(waits.client, "hello");
        if (waits.polls <= waits.passes_until)
            sim_pass(fixture->sim, 1);
    } else {
        waits.sleeps++;
        waits.timeout = timeout;
    }
}

static bool never(struct busy_poll *busy, uint64_t now_ms)
{
    (void)busy;
    (void)now_ms;
    return false;
}

static bool always(struct busy_poll *busy, uint64_t now_ms)
{
    (void)busy;
    (void)now_ms;
    return true;
}

static struct fixture *start_polling(int64_t us)
{
    struct fixture *fixture = fixture_start_worker(&single);

    waits = (struct waits) { .client = fixture_connect_client(fixture) };
    fixture_turn_until_open(fixture, 1);
    busy_poll_init(&fixture->worker->busy_poll, us);
    fixture->worker->busy_poll.is_wanted = never;
    fixture->sim->on_wait = note_wait;
    return fixture;
}

START_TEST(it_is_off_by_default)
{
    struct fixture *fixture = start_polling(0);

    fixture_turn(fixture);
    ck_assert_uint_eq(waits.polls, 0);
    ck_assert_uint_eq(waits.sleeps, 1);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_worker_polls_for_a_bounded_time_and_sleeps)
{
    struct fixture *fixture = start_polling(50);

    /* the simulated clock stands still: then polls are counted, of 100 ns each */
    for (unsigned i = 1; i <= 3; i++) {
        fixture_turn(fixture);
        ck_assert_uint_eq(waits.polls, i * 500);
        ck_assert_uint_eq(waits.sleeps, i);
        ck_assert_int_eq(waits.timeout, -1);
    }
    fixture_stop(fixture);
}
END_TEST

START_TEST(what_comes_while_it_polls_is_served_without_a_sleep)
{
    struct fixture *fixture = start_polling(50);

    waits.says_at = 10;
    fixture_turn(fixture);
    ck_assert_uint_eq(waits.polls, 10);
    ck_assert_uint_eq(waits.sleeps, 0);
    ck_assert_uint_eq(waits.client->sent_n, 5);
    fixture_stop(fixture);
}
END_TEST

START_TEST(where_another_has_work_it_sleeps_at_once)
{
    struct fixture *fixture = start_polling(50);

    fixture->worker->busy_poll.is_wanted = always;
    fixture_turn(fixture);
    ck_assert_uint_eq(waits.polls, 0);
    ck_assert_uint_eq(waits.sleeps, 1);
    fixture_stop(fixture);
}
END_TEST

static void nothing(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
}

START_TEST(a_timer_is_not_late)
{
    struct fixture *fixture = start_polling(50);
    struct timer timer = { .expired = nothing };

    timer_set(fixture->loop, &timer, 20);
    waits.passes_until = 20;
    fixture_turn(fixture);
    ck_assert_uint_eq(waits.polls, 20);
    ck_assert_uint_eq(waits.sleeps, 0);
    ck_assert(!timer_is_set(&timer));

    timer_set(fixture->loop, &timer, 400);
    waits.passes_until = waits.polls + 5;
    fixture_turn(fixture);
    ck_assert_uint_eq(waits.sleeps, 1);
    ck_assert_int_eq(waits.timeout, 395);
    timer_del(fixture->loop, &timer);
    fixture_stop(fixture);
}
END_TEST

/* A mechanism of the real kernel, whose waits are counted */

static const struct mechanism *counted;

static void count_wait(struct loop *loop, int timeout)
{
    waits.polls += timeout == 0;
    waits.sleeps += timeout != 0;
    counted->process_events(loop, timeout);
}

START_TEST(every_mechanism_polls)
{
    static struct mechanism mechanism;
    struct fixture_worker_options options = single;
    struct timer timer = { .expired = nothing };
    struct fixture *fixture;

    counted = mechanism_table[_i];
    mechanism = *counted;
    mechanism.process_events = count_wait;
    options.mechanism = &mechanism;
    fixture = fixture_start_worker(&options);
    busy_poll_init(&fixture->worker->busy_poll, 2000);
    fixture->worker->busy_poll.is_wanted = never;
    timer_set(fixture->loop, &timer, 30);
    waits = (struct waits) { .polls = 0 };
    while (timer_is_set(&timer))
        worker_turn(fixture->worker);
    ck_assert_uint_gt(waits.polls, 1);
    ck_assert_uint_le(waits.sleeps, waits.polls);
    fixture_stop(fixture);
}
END_TEST

/* Whether the processor is wanted */

static pid_t start_spinner(void)
{
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile unsigned i = 0;; i++)
        ;
}

static uint64_t now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

/* Binds the process and its children to a single processor. */
static void use_one_processor(void)
{
    cpu_set_t all, one;
    int cpu = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

START_TEST(another_process_on_the_processor_is_noticed)
{
    struct busy_poll busy;
    uint64_t now_ms = 1, deadline = now_s() + TEST_PATIENCE_MS / 1000;
    pid_t pid;

    use_one_processor();
    busy_poll_init(&busy, 50);
    busy.processors = 1000000; /* the switches alone tell */
    pid = start_spinner();
    while (!busy_poll_is_wanted(&busy, now_ms)) {
        ck_assert_uint_lt(now_s(), deadline);
        sched_yield();
    }
    /* for a while the kernel is not asked again */
    ck_assert(busy_poll_is_wanted(&busy, now_ms + 9));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    busy_poll_done(&busy);
}
END_TEST

START_TEST(more_runnable_threads_than_processors_are_noticed)
{
    struct busy_poll busy;
    uint64_t now_ms = 0;

    busy_poll_init(&busy, 50);
    if (os_cpu_count_runnable(busy.load) == -1) { /* no /proc */
        busy_poll_done(&busy);
        return;
    }
    ck_assert_int_ge(os_cpu_count_runnable(busy.load), 1); /* we are */
    busy.processors = 0;
    while (busy.counted_ms == 0) { /* no count while the thread has lost its processor */
        now_ms += 100;
        ck_assert(busy_poll_is_wanted(&busy, now_ms));
    }
    ck_assert_uint_eq(busy.counted_ms, now_ms);
    ck_assert(busy_poll_is_wanted(&busy, now_ms + 9));
    busy_poll_done(&busy);
    ck_assert_int_eq(os_cpu_count_runnable(-1), -1);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int mechanisms = 0;

    while (mechanism_table[mechanisms] != NULL)
        mechanisms++;
    tcase_add_test(tcase, it_is_off_by_default);
    tcase_add_test(tcase, a_worker_polls_for_a_bounded_time_and_sleeps);
    tcase_add_test(tcase, what_comes_while_it_polls_is_served_without_a_sleep);
    tcase_add_test(tcase, where_another_has_work_it_sleeps_at_once);
    tcase_add_test(tcase, a_timer_is_not_late);
    tcase_add_loop_test(tcase, every_mechanism_polls, 0, mechanisms);
    tcase_add_test(tcase, another_process_on_the_processor_is_noticed);
    tcase_add_test(tcase, more_runnable_threads_than_processors_are_noticed);
}

TEST_MAIN("busy poll", add_tests)
