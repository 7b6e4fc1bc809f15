/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers crashing at once and again: the delay before the next process grows, and the status
 * reports the outage until a worker serves. */
#include "plays/case.h"

#include <signal.h>

static void crash_accepting(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->crashes_accepting = true;
}

static void fail_start(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->fails_start = true;
}

static void (*const troubles[])(
    struct play *, struct play_process *) = { crash_accepting, fail_start };

/* The delays of a worker dying in its accept, or before being ready. */
START_TEST(test_delay_doubles_up_to_half_a_minute)
{
    static const unsigned delays[] = { 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000,
        30000 };
    struct play *play = case_start(1, "", "");

    play->forked = troubles[_i];
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++)
        ck_assert_uint_eq(case_pass_to_fork(play), delays[i]);
    play_destroy(play);
}
END_TEST

/* A delay is that of one worker. */
START_TEST(test_delay_is_of_one_worker)
{
    struct play *play = case_start(2, "", "");

    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    ck_assert_uint_eq(case_pass_to_fork(play), 100);
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_settle(play);
    play_worker_crash(play_worker_find(play, 1), SIGSEGV);
    ck_assert_uint_eq(case_pass_to_fork(play), 100);
    ck_assert_uint_eq(case_pass_to_fork(play), 100);
    play_destroy(play);
}
END_TEST

/* A worker of one second's life begins anew. */
START_TEST(test_delay_begins_anew)
{
    struct play *play = case_start(1, "", "");

    for (unsigned i = 0; i < 3; i++) {
        play_worker_crash(play_worker_find(play, 0), SIGSEGV);
        ck_assert_uint_eq(case_pass_to_fork(play), 100u << i);
    }
    play_pass(play, 1000);
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    ck_assert_uint_eq(case_pass_to_fork(play), CASE_AT_ONCE_MS);
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    ck_assert_uint_eq(case_pass_to_fork(play), 100);
    play_destroy(play);
}
END_TEST

/* A failed fork is tried again every second, and counts as no crash. */
START_TEST(test_failed_fork_is_tried_again)
{
    struct play *play = case_start(1, "", "");

    play_pass(play, 1000);
    play->failures.fork = 3;
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    ck_assert_uint_eq(case_pass_to_fork(play), CASE_AT_ONCE_MS + 3000);
    case_expect_deaths(play, "signal", 1);
    play_destroy(play);
}
END_TEST

/* The status shows that nobody serves, as soon as all workers wait and a worker has crashed twice,
 * and until a worker has accepted for a second. */
START_TEST(test_crashing_is_told)
{
    struct play *play = case_start(2, "", "");

    play->forked = crash_accepting;
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_worker_crash(play_worker_find(play, 1), SIGABRT);
    play_settle(play);
    ck_assert_str_eq(case_status(play, "state"), "running"); /* first crashes delay little */
    play_pass(play, 100);
    ck_assert_str_eq(case_status(play, "state"), "crashing");
    ck_assert_str_eq(case_status(play, "generations.0.state"), "crashing");
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.state"), "waiting");
    ck_assert(play_has_logged(play, "no worker process serves: all 2 of generation 1 crash"));
    play->forked = NULL;
    ck_assert_uint_eq(case_pass_to_fork(play), 200);
    play_pass(play, 999);
    ck_assert_str_eq(case_status(play, "state"), "crashing");
    play_pass(play, 1);
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert_str_eq(case_status(play, "generations.0.state"), "live");
    ck_assert(play_has_logged(play, "worker processes serve again"));
    play_destroy(play);
}
END_TEST

START_TEST(test_reload_ends_crashing)
{
    struct play *play = case_start(1, "", "");

    play->forked = crash_accepting;
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_pass(play, 100);
    ck_assert_str_eq(case_status(play, "state"), "crashing");
    play->forked = NULL;
    case_reload(play);
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    ck_assert(play_has_logged(play, "worker processes serve again"));
    play_destroy(play);
}
END_TEST

/* An ending daemon does not wait for the delay. */
START_TEST(test_end_does_not_wait_for_delay)
{
    static const int signals[] = { SIGQUIT, SIGTERM, SIGINT };
    struct play *play = case_start(1, "", "");
    struct play_process *master = play_main(play);

    play->forked = crash_accepting;
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_pass(play, 5000);
    ck_assert_uint_eq(play_count_workers(play), 0);
    play_signal(master, signals[_i]);
    play_settle(play);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_delay_doubles_up_to_half_a_minute, 0, 2);
    tcase_add_test(tcase, test_delay_is_of_one_worker);
    tcase_add_test(tcase, test_delay_begins_anew);
    tcase_add_test(tcase, test_failed_fork_is_tried_again);
    tcase_add_test(tcase, test_crashing_is_told);
    tcase_add_test(tcase, test_reload_ends_crashing);
    tcase_add_loop_test(tcase, test_end_does_not_wait_for_delay, 0, 3);
}

TEST_MAIN("backoff", add_tests)
