/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals during the master process's run: they wait for the next look at signals; none is lost or
 * takes back a later command. */
#include "plays/case.h"

#include <signal.h>

struct moment {
    int number; /* the signal */
    int left;   /* calls before the signal; negative: already sent */
};

static void send_once(struct play *play, struct play_process *process)
{
    struct moment *moment = play->arg;

    if (moment->left-- == 0)
        play_signal(process, moment->number);
}

/* Sends a signal within a call of the master process, the next call or a later one. */
static void send_in_call(struct play *play, struct moment *moment)
{
    play->arg = moment;
    play->called = send_once;
}

/* A reload that is asked for before a quit does not take the quit back. */
START_TEST(test_reload_before_a_quit)
{
    struct play *play = case_start(1, "", "");
    struct play_process *master = play_main(play);
    struct moment moment = { .number = SIGHUP, .left = _i };

    send_in_call(play, &moment);
    case_expect_ok(case_command(play, "quit"));
    play_pass(play, 5000);
    ck_assert_int_lt(moment.left, 0);
    ck_assert(master->exited);
    play_destroy(play);
}
END_TEST

/* A resume that comes while the last worker is reaped is carried out. */
START_TEST(test_resume_while_the_last_worker_is_reaped)
{
    struct play *play = case_start(1, "", "");
    struct play_process *master = play_main(play);
    struct moment moment = { .number = SIGHUP, .left = _i };

    play_worker_find(play, 0)->keeps_sessions = true;
    case_signal(master, SIGQUIT);
    send_in_call(play, &moment);
    play_worker_exit(play_worker_find(play, 0), 0);
    play_pass(play, 5000);
    ck_assert_int_lt(moment.left, 0);
    ck_assert(!master->exited && case_is_served(play));
    play_destroy(play);
}
END_TEST

/* A stop during the hand-over of sessions to a child ends the child. */
START_TEST(test_stop_during_a_leave)
{
    struct play *play = case_start(1, "", "");
    struct play_process *left = play_main(play);
    struct moment moment = { .number = SIGINT, .left = _i };

    play_worker_find(play, 0)->keeps_sessions = true;
    send_in_call(play, &moment);
    case_command(play, "leave");
    play_pass(play, 5000);
    ck_assert_int_lt(moment.left, 0);
    ck_assert(left->exited && play_count_workers(play) == 0);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_reload_before_a_quit, 0, 3);
    tcase_add_loop_test(tcase, test_resume_while_the_last_worker_is_reaped, 0, 3);
    tcase_add_loop_test(tcase, test_stop_during_a_leave, 0, 24);
}

TEST_MAIN("moments", add_tests)
