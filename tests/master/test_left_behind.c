/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers of a killed master process: all let their sessions end; the next master process names
 * them, and ends them at an immediate end. */
#include "plays/case.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define KILL_MS 2000 /* to end, before SIGKILL */

/* Kills the master process of two workers, of which the first has a session. */
static struct play *kill_master(struct play_worker **left, pid_t *master)
{
    struct play *play = case_start(2, "", "");
    struct play_process *first = play_main(play);

    *left = play_worker_find(play, 0);
    *master = first->pid;
    (*left)->keeps_sessions = true;
    (*left)->process->kept = true;
    play_signal(first, SIGKILL);
    play_settle(play);
    ck_assert(first->exited);
    ck_assert_uint_eq(play_count_workers(play), 1);
    return play;
}

static struct play_process *start_next(struct play *play)
{
    struct play_process *next = play_start(play);

    play_settle(play);
    ck_assert_ptr_eq(play_main(play), next);
    return next;
}

START_TEST(test_next_master_names_them)
{
    struct play_worker *left;
    pid_t master;
    struct play *play = kill_master(&left, &master);
    char says[128];

    start_next(play);
    snprintf(
        says, sizeof(says), "1 worker process of master process %d, which was killed", (int)master);
    ck_assert(play_has_logged(play, says));
    ck_assert_int_eq(atoi(case_status(play, "left_behind.0.pid")), left->process->pid);
    ck_assert_int_eq(atoi(case_status(play, "left_behind.0.master")), master);
    ck_assert_str_eq(case_status(play, "left_behind.1.pid"), "");
    /* the last session ends */
    left->keeps_sessions = false;
    play_settle(play);
    ck_assert(left->process->exited);
    ck_assert_str_eq(case_status(play, "left_behind"), "[]");
    play_destroy(play);
}
END_TEST

/* By SIGINT, by "stop", by SIGINT after SIGQUIT. */
START_TEST(test_fast_end_ends_them)
{
    struct play_worker *left;
    pid_t master;
    struct play *play = kill_master(&left, &master);
    struct play_process *next = start_next(play);

    if (_i == 2) {
        play_worker_find(play, 1)->keeps_sessions = true;
        play_signal(next, SIGQUIT);
        play_pass(play, 1000);
        ck_assert(!left->process->exited && !next->exited);
    }
    if (_i == 1)
        case_expect_ok(case_command(play, "stop"));
    else
        play_signal(next, SIGINT);
    play_pass(play, 100);
    ck_assert(left->process->exited);
    ck_assert_int_eq(play_exit_code(left->process), 0);
    ck_assert(next->exited);
    ck_assert(play_has_logged(play, "1 worker process of a killed master process is"));
    play_destroy(play);
}
END_TEST

/* A worker without an end is killed, and the process waits for the death. */
START_TEST(test_deaf_one_is_killed)
{
    struct play_worker *left;
    pid_t master;
    struct play *play = kill_master(&left, &master);
    struct play_process *next = start_next(play);

    left->deaf = true;
    play_signal(next, SIGINT);
    ck_assert_uint_eq(case_pass_to_exit(left->process), KILL_MS);
    ck_assert_int_eq(play_exit_code(left->process), 128 + SIGKILL);
    play_pass(play, 100);
    ck_assert(next->exited);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* Neither a graceful end nor a failing start does. */
START_TEST(test_others_leave_them_alone)
{
    struct play_worker *left;
    pid_t master;
    struct play *play = kill_master(&left, &master);
    struct play_process *next;

    if (_i == 0) {
        next = start_next(play);
        play_signal(next, SIGQUIT);
    } else {
        play_configure(play, 2, _i == 1 ? "mistake;" : "control unix:$D/nowhere/control;", "");
        if (_i == 2)
            play_write(play, "conf",
                "daemon off; sandbox off; error_log $D/error.log; pid $D/pid;"
                "control unix:$D/nowhere/control; events { } stream { }");
        next = play_start(play);
    }
    play_pass(play, 5000);
    ck_assert(next->exited);
    ck_assert(!left->process->exited);
    play_configure(play, 2, "", "");
    start_next(play);
    ck_assert_int_eq(atoi(case_status(play, "left_behind.0.pid")), left->process->pid);
    play_destroy(play);
}
END_TEST

/* The list goes where the pid file goes. */
START_TEST(test_list_moves_with_pid_file)
{
    struct play *play = case_start(1, "", "");
    struct play_worker *left;
    struct play_process *master = play_main(play);

    play_write(play, "conf",
        "daemon off; sandbox off; error_log $D/error.log; pid $D/other.pid; control "
        "unix:$D/control;"
        "events { } stream { server { listen unix:$D/socket; echo; } }");
    case_reload(play);
    left = play_worker_find(play, 0);
    left->keeps_sessions = true;
    play_kill(master, SIGKILL);
    play_settle(play);
    play_start(play);
    play_settle(play);
    ck_assert_int_eq(atoi(case_status(play, "left_behind.0.pid")), left->process->pid);
    play_destroy(play);
}
END_TEST

/* Two master processes of an upgrade have lists of their own: the survivor shows the leftovers of
 * the killed process, and removes both names of the list. */
START_TEST(test_master_of_upgrade_is_killed)
{
    struct play *play = case_start(1, "", "");
    struct play_process *old = play_main(play), *new;
    struct play_worker *left = play_worker_find(play, 0);
    pid_t killed;

    case_expect_ok(case_command(play, "upgrade"));
    new = play_main(play);
    ck_assert_str_eq(case_status(play, "left_behind"), "[]");
    if (_i == 1)
        left = play_worker_find(play, 0);
    left->keeps_sessions = true;
    killed = (_i == 0 ? old : new)->pid;
    play_kill(_i == 0 ? old : new, SIGKILL);
    play_pass(play, 1000);
    ck_assert_ptr_eq(play_main(play), _i == 0 ? new : old);
    ck_assert_int_eq(atoi(case_status(play, "left_behind.0.pid")), left->process->pid);
    ck_assert_int_eq(atoi(case_status(play, "left_behind.0.master")), killed);
    play_signal(play_main(play), SIGINT);
    play_pass(play, 1000);
    ck_assert_uint_eq(play_count_workers(play), 0);
    ck_assert_uint_eq(play_count_masters(play), 0);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_next_master_names_them);
    tcase_add_loop_test(tcase, test_fast_end_ends_them, 0, 3);
    tcase_add_test(tcase, test_deaf_one_is_killed);
    tcase_add_loop_test(tcase, test_others_leave_them_alone, 0, 3);
    tcase_add_test(tcase, test_list_moves_with_pid_file);
    tcase_add_loop_test(tcase, test_master_of_upgrade_is_killed, 0, 2);
}

TEST_MAIN("left_behind", add_tests)
