/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers left by a master process to a child of its own ("leave"): their ends are seen at
 * intervals, and all else is unchanged. */
#include "plays/case.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS 100

/* A daemon told to leave, with a session in every worker; returns the left process, and writes the
 * control socket's name to `control`. */
static struct play_process *leave(struct play **play, unsigned workers, char control[32])
{
    struct play_process *left, *first;
    struct play_client *client;
    pid_t pid;

    *play = case_start(workers, "worker_shutdown_timeout 10s;", "");
    left = play_main(*play); /* the record becomes the child's */
    pid = left->pid;
    for (unsigned i = 0; i < workers; i++)
        play_worker_find(*play, i)->keeps_sessions = true;
    client = case_command(*play, "leave");
    case_expect_ok(client);
    first = play_find(*play, pid);
    ck_assert(first != left && first->exited && !left->exited);
    ck_assert_int_eq(play_exit_code(first), 0);
    snprintf(control, 32, "control.quit.%d", (int)left->pid);
    return left;
}

/* The next start finds its names free, while the sessions go on. */
START_TEST(test_names_are_free)
{
    char control[32];
    struct play *play;
    struct play_process *left = leave(&play, 2, control), *next;

    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_str_eq(case_status_of(play, control, "state"), "quitting");
    next = play_start(play);
    play_settle(play);
    ck_assert_ptr_eq(play_main(play), next);
    ck_assert(!left->exited);
    ck_assert_uint_eq(play_count_workers(play), 4);
    play_destroy(play);
}
END_TEST

/* A worker's end is seen at the next look; its cause is not known. */
START_TEST(test_ends_are_seen)
{
    char control[32];
    struct play *play;
    struct play_process *left = leave(&play, 2, control);

    play_pass(play, 1);
    left->kept = true;
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_pass(play, LOOK_MS);
    ck_assert_str_eq(case_status_of(play, control, "generations.0.workers.0.state"), "ended");
    ck_assert_str_eq(case_status_of(play, control, "generations.0.workers.1.state"), "draining");
    ck_assert_str_eq(case_status_of(play, control, "deaths.signal"), "0");
    play_worker_find(play, 1)->keeps_sessions = false;
    ck_assert_uint_le(case_pass_to_exit(left), LOOK_MS);
    ck_assert_int_eq(play_exit_code(left), 0);
    ck_assert_int_eq(access(play_path(play, control), F_OK), -1);
    play_destroy(play);
}
END_TEST

/* The deadline of the drain began with the command, and holds. */
START_TEST(test_deadline_holds)
{
    char control[32];
    struct play *play;
    struct play_process *left = leave(&play, 1, control);
    struct play_process *worker = play_worker_find(play, 0)->process;

    ck_assert_uint_eq(case_pass_to_exit(worker), 11000);
    ck_assert_int_eq(play_exit_code(worker), 128 + SIGKILL);
    ck_assert_uint_le(case_pass_to_exit(left), LOOK_MS);
    play_destroy(play);
}
END_TEST

/* The left process is told to end at once, or is killed: the workers know by the channel. */
START_TEST(test_end_reaches_workers)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGKILL };
    char control[32];
    struct play *play;
    struct play_process *left = leave(&play, 2, control);

    play_worker_find(play, 0)->keeps_sessions = play_worker_find(play, 1)->keeps_sessions = false;
    left->kept = true;
    play_signal(left, signals[_i]);
    play_pass(play, 2 * LOOK_MS);
    ck_assert(left->exited);
    ck_assert_uint_eq(play_count_workers(play), 0);
    play_destroy(play);
}
END_TEST

/* The service manager knows the process no more: it cannot serve again. */
START_TEST(test_it_is_not_resumed)
{
    char control[32];
    struct play *play;
    struct play_process *left = leave(&play, 1, control);

    if (_i == 0)
        case_expect_failure(case_command_to(play, control, "resume"), "start the service");
    else
        play_signal(left, SIGHUP);
    play_pass(play, 500);
    ck_assert_str_eq(case_status_of(play, control, "state"), "quitting");
    play_destroy(play);
}
END_TEST

/* No process is left for long where no worker has a session. */
START_TEST(test_none_is_left_without_sessions)
{
    struct play *play = case_start(2, "", "");

    case_expect_ok(case_command(play, "leave"));
    play_pass(play, LOOK_MS);
    ck_assert_uint_eq(play_count_masters(play), 0);
    ck_assert_uint_eq(play_count_workers(play), 0);
    play_destroy(play);
}
END_TEST

/* The child cannot be made: the command has failed, and the process goes on to end as by "quit". */
START_TEST(test_no_child_can_be_left)
{
    struct play *play = case_start(2, "", "");
    struct play_process *master = play_main(play), *crashes = play_worker_find(play, 1)->process;
    struct play_client *client;

    play_worker_find(play, 0)->keeps_sessions = play_worker_find(play, 1)->keeps_sessions = true;
    if (_i == 0)
        play->failures.fork = 1;
    else
        play->failures.handle_open = 1;
    client = case_command(play, "leave");
    case_expect_failure(client, "no child process could be left");
    ck_assert(!master->exited);
    crashes->kept = true;
    play_worker_crash(crashes->worker, SIGSEGV); /* the worker is still the process's child */
    play_pass(play, 1000);
    ck_assert_ptr_null(crashes->parent); /* it was reaped */
    ck_assert(play_has_logged(play, "exited on signal 11"));
    play_worker_find(play, 0)->keeps_sessions = false;
    play_settle(play);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_names_are_free);
    tcase_add_test(tcase, test_ends_are_seen);
    tcase_add_test(tcase, test_deadline_holds);
    tcase_add_loop_test(tcase, test_end_reaches_workers, 0, 3);
    tcase_add_loop_test(tcase, test_it_is_not_resumed, 0, 2);
    tcase_add_test(tcase, test_none_is_left_without_sessions);
    tcase_add_loop_test(tcase, test_no_child_can_be_left, 0, 2);
}

TEST_MAIN("orphans", add_tests)
