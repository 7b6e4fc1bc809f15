/* SPDX-License-Identifier: BSD-2-Clause */
/* The watchdog: a heartbeat is read twice in worker_watchdog, and a worker that is found unchanged
 * three times in a row is killed: by SIGABRT, and later by SIGKILL. */
#include "plays/case.h"

#include <signal.h>

#define WATCHDOG "worker_watchdog 2s;"
#define WATCHDOG_MS 2000
#define READING_MS (WATCHDOG_MS / 2)

/* A worker stuck before the first reading is killed at the third, and replaced alone. */
START_TEST(test_stuck_worker_is_killed)
{
    struct play *play = case_start(2, WATCHDOG, "");
    struct play_worker *worker = play_worker_find(play, 0);

    play_worker_stick(worker);
    ck_assert_uint_eq(case_pass_to_exit(worker->process), 3 * READING_MS);
    ck_assert_int_eq(play_exit_code(worker->process), 128 + SIGABRT);
    ck_assert(play_has_logged(play, "was stuck in callback \"data\""));
    case_expect_deaths(play, "watchdog", 1);
    ck_assert_uint_eq(case_pass_to_fork(play), CASE_AT_ONCE_MS); /* a worker that has lived long */
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.restarts"), "1");
    ck_assert_str_eq(case_status(play, "generations.0.workers.1.restarts"), "0");
    play_destroy(play);
}
END_TEST

/* A worker that gets stuck between two readings is not found unchanged at the next. */
START_TEST(test_reading_before_does_not_count)
{
    struct play *play = case_start(1, WATCHDOG, "");
    struct play_worker *worker = play_worker_find(play, 0);

    play_pass(play, READING_MS + 1);
    play_worker_stick(worker);
    ck_assert_uint_eq(case_pass_to_exit(worker->process), 3 * READING_MS - 1);
    play_destroy(play);
}
END_TEST

/* A worker killed early delays the next start, like any crash. */
START_TEST(test_early_kill_delays_next_start)
{
    struct play *play = case_start(1, "worker_watchdog 200ms;", "");
    struct play_worker *worker = play_worker_find(play, 0);

    play_worker_stick(worker);
    ck_assert_uint_eq(case_pass_to_exit(worker->process), 300);
    ck_assert_uint_eq(case_pass_to_fork(play), 100);
    case_expect_deaths(play, "watchdog", 1);
    play_destroy(play);
}
END_TEST

/* SIGKILL follows after worker_watchdog, and after ten seconds at most. */
START_TEST(test_worker_that_does_not_abort_is_killed)
{
    static const struct {
        const char *directive;
        uint64_t watchdog_ms, kill_ms;
    } rows[] = { { WATCHDOG, WATCHDOG_MS, WATCHDOG_MS }, { "worker_watchdog 9s;", 9000, 9000 },
        { "worker_watchdog 60s;", 60000, 10000 } };
    struct play *play = case_start(1, rows[_i].directive, "");
    struct play_worker *worker = play_worker_find(play, 0);

    play_worker_stick(worker);
    worker->ignores_abort = true;
    ck_assert_uint_eq(
        case_pass_to_exit(worker->process), rows[_i].watchdog_ms / 2 * 3 + rows[_i].kill_ms);
    ck_assert_int_eq(play_exit_code(worker->process), 128 + SIGKILL);
    case_expect_deaths(play, "watchdog", 1);
    play_destroy(play);
}
END_TEST

/* A slow callback, followed by more: the heartbeat changes. */
START_TEST(test_worker_that_gets_on_is_not_stuck)
{
    struct play *play = case_start(1, WATCHDOG, "");

    for (unsigned i = 0; i < 20; i++) {
        play_worker_stick(play_worker_find(play, 0));
        play_pass(play, 2 * READING_MS - 1);
    }
    case_expect_deaths(play, "", 0);
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.restarts"), "0");
    play_destroy(play);
}
END_TEST

START_TEST(test_worker_that_waits_is_not_stuck)
{
    struct play *play = case_start(1, WATCHDOG, "");

    play_pass(play, 600000);
    case_expect_deaths(play, "", 0);
    play_destroy(play);
}
END_TEST

/* A debugger, or a person, has stopped the process, and goes on with it later. */
START_TEST(test_stopped_worker_is_left_alone)
{
    struct play *play = case_start(1, WATCHDOG, "");
    struct play_worker *worker = play_worker_find(play, 0);

    play_worker_stick(worker);
    play_signal(worker->process, SIGSTOP);
    play_pass(play, 60 * WATCHDOG_MS);
    ck_assert(!worker->process->exited);
    play_signal(worker->process, SIGCONT);
    ck_assert_uint_eq(case_pass_to_exit(worker->process), 2 * READING_MS);
    ck_assert_int_eq(play_exit_code(worker->process), 128 + SIGABRT);
    play_destroy(play);
}
END_TEST

/* A worker that drains is watched too, and has a successor already. */
START_TEST(test_draining_worker_is_not_replaced)
{
    struct play *play = case_start(1, WATCHDOG "worker_shutdown_timeout 1h;", "");
    struct play_worker *worker = play_worker_find(play, 0);
    pid_t last;

    play_connect(play);
    play_settle(play);
    case_reload(play);
    last = play->last_pid;
    play_worker_stick(worker);
    ck_assert_uint_le(case_pass_to_exit(worker->process), 3 * READING_MS);
    ck_assert_int_eq(play_exit_code(worker->process), 128 + SIGABRT);
    play_pass(play, 5000);
    ck_assert_int_eq(play->last_pid, last);
    case_expect_deaths(play, "watchdog", 1);
    play_destroy(play);
}
END_TEST

/* The watchdog belongs to the generation, by the generation's configuration. */
START_TEST(test_watchdog_is_off)
{
    struct play *play = case_start(1, "worker_watchdog 0; worker_shutdown_timeout 0;", "");
    struct play_worker *before = play_worker_find(play, 0), *worker;

    play_connect(play);
    play_settle(play);
    play_configure(play, 1, WATCHDOG, "");
    case_reload(play);
    worker = play_worker_find(play, 0);
    play_worker_stick(before);
    play_worker_stick(worker);
    case_pass_to_exit(worker->process);
    play_pass(play, 600000);
    ck_assert(!before->process->exited);
    case_expect_deaths(play, "watchdog", 1);
    play_destroy(play);
}
END_TEST

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

/* A start has worker_start_timeout, however short the watchdog is. */
START_TEST(test_start_is_not_watched)
{
    struct play *play = case_start(1, "worker_watchdog 200ms; worker_start_timeout 5s;", "");

    play->forked = never_ready;
    play_worker_crash(play_worker_find(play, 0), SIGKILL);
    case_pass_to_fork(play);
    play_worker_stick(play_worker_find(play, 0));
    play_pass(play, 4999);
    ck_assert_str_eq(case_status(play, "deaths.watchdog"), "0");
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_stuck_worker_is_killed);
    tcase_add_test(tcase, test_reading_before_does_not_count);
    tcase_add_test(tcase, test_early_kill_delays_next_start);
    tcase_add_loop_test(tcase, test_worker_that_does_not_abort_is_killed, 0, 3);
    tcase_add_test(tcase, test_worker_that_gets_on_is_not_stuck);
    tcase_add_test(tcase, test_worker_that_waits_is_not_stuck);
    tcase_add_test(tcase, test_stopped_worker_is_left_alone);
    tcase_add_test(tcase, test_draining_worker_is_not_replaced);
    tcase_add_test(tcase, test_watchdog_is_off);
    tcase_add_test(tcase, test_start_is_not_watched);
}

TEST_MAIN("watchdog", add_tests)
