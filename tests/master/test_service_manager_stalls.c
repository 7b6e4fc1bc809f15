/* SPDX-License-Identifier: BSD-2-Clause */
/* Service managers that have gone, do not read or do not answer: the daemon goes on, and an exit
 * waits for a bounded time. */
#include "plays/case.h"
#include "plays/manager.h"

#include "systemd/notify.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SERVING "STATUS=Serving: 2 workers, generation "

/* A serving daemon with a start confirmed by the manager. */
static struct play *start(struct play_manager **manager)
{
    struct play *play = play_create(1);

    *manager = play_manager_create(play, 0, false);
    play_configure(play, 2, "", "");
    case_serve(play);
    play_pass(play, 2000);
    return play;
}

/* A quit of an operator has the copies of sockets dropped: the exit waits for that. */
static void quit(struct play *play)
{
    play_signal_from(play_main(play), SIGQUIT, 4711);
    play_settle(play);
}

/* The daemon serves all the same, and logs the loss once. */
START_TEST(test_manager_has_gone)
{
    struct play *play = play_create(1);
    struct play_manager *manager = play_manager_create(play, 2000000, false);
    char *log;
    const char *says = "cannot be reached", *first;

    play_manager_go(manager);
    play_configure(play, 2, "", "");
    case_serve(play);
    case_reload(play);
    play_pass(play, 10000);
    log = play_read(play, "error.log");
    first = strstr(log, says);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, says));
    free(log);
    play_signal(play_main(play), SIGQUIT);
    play_pass(play, 100);
    ck_assert_uint_eq(play_count_masters(play), 0);
    play_destroy(play);
}
END_TEST

/* The manager does not read: the daemon goes on, and logs the stall once; required messages arrive
 * later, and otherwise only the current state. */
START_TEST(test_manager_stalls)
{
    struct play *play = play_create(1);
    struct play_manager *manager = play_manager_create(play, 0, false);

    play_configure(play, 2, "", "");
    play_manager_fill(manager);
    case_serve(play);
    play_pass(play, 2000);
    ck_assert(play_has_logged(play, "does not read: messages wait for it"));
    for (unsigned i = 0; i < 3; i++)
        case_reload(play);
    ck_assert_uint_eq(manager->message_n, 0);
    manager->stalls = false;
    play_pass(play, 1000);
    ck_assert(play_has_logged(play, "reads again"));
    ck_assert_uint_eq(play_manager_count(manager, "RELOADING=1"), 1);
    ck_assert_uint_eq(play_manager_count(manager, "STATUS="), 1);
    ck_assert_str_eq(play_manager_wait(manager, "STATUS="), SERVING "4");
    ck_assert_uint_eq(manager->stored_n, 1);
    play_destroy(play);
}
END_TEST

/* An exit waits for the manager, and no longer than it may. */
START_TEST(test_exit_waits_for_manager)
{
    struct play_manager *manager;
    struct play *play = start(&manager);
    struct play_process *master = play_main(play);

    if (_i == 0)
        manager->keeps_barriers = true;
    else
        play_manager_fill(manager);
    quit(play);
    play_pass(play, NOTIFY_EXIT_MS - 100);
    ck_assert(!master->exited);
    ck_assert_uint_eq(play_count_workers(play), 0);
    play_pass(play, 200);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    play_destroy(play);
}
END_TEST

/* A manager answers late, but in time. */
START_TEST(test_exit_follows_the_answer)
{
    struct play_manager *manager;
    struct play *play = start(&manager);
    struct play_process *master = play_main(play);

    manager->keeps_barriers = true;
    quit(play);
    play_pass(play, 1000);
    ck_assert(!master->exited);
    close(manager->barrier);
    manager->barrier = -1;
    manager->keeps_barriers = false;
    play_pass(play, 500); /* the longest pause between two looks */
    ck_assert(master->exited);
    ck_assert_uint_eq(manager->stored_n, 0);
    play_destroy(play);
}
END_TEST

/* The workers have ended, and the exit waits for the manager: it is too late to serve again. */
START_TEST(test_resume_comes_too_late)
{
    struct play_manager *manager;
    struct play *play = start(&manager);
    struct play_process *master = play_main(play);
    char name[64];

    manager->keeps_barriers = true;
    quit(play);
    play_pass(play, 100);
    ck_assert_uint_eq(play_count_workers(play), 0);
    snprintf(name, sizeof(name), "control.quit.%d", (int)master->pid);
    case_expect_failure(case_command_to(play, name, "resume"), "the daemon is ending");
    play_pass(play, NOTIFY_EXIT_MS);
    ck_assert(master->exited);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_manager_has_gone);
    tcase_add_test(tcase, test_manager_stalls);
    tcase_add_loop_test(tcase, test_exit_waits_for_manager, 0, 2);
    tcase_add_test(tcase, test_exit_follows_the_answer);
    tcase_add_test(tcase, test_resume_comes_too_late);
}

TEST_MAIN("service_manager_stalls", add_tests)
