/* SPDX-License-Identifier: BSD-2-Clause */
/* Upgrades with a new process that never serves, and refused upgrades: the old process goes on, and
 * a later upgrade succeeds. */
#include "plays/case.h"

#include <signal.h>
#include <stdio.h>
#include <sysexits.h>

#define START_MS 4000 /* worker_start_timeout */
#define GRACE_MS 5000
#define KILL_MS 2000
#define OLD "control.oldbin" /* the control socket of the old process */

static struct play *start(void)
{
    return case_start(2, "worker_start_timeout 4s;", "");
}

static void expect_rolled_back(
    struct play_process *old, const struct play_client *client, const char *says)
{
    struct play *play = old->play;
    struct play_process *process;

    case_expect_failure(client, says);
    ck_assert(play_has_logged(play, "upgrade failed, process"));
    TAILQ_FOREACH (process, &play->processes, link)
        if (process->worker != NULL)
            process->worker->never_ready = false;
    play_pass(play, 3000); /* workers of a killed process end */
    case_expect_alone(old);
    ck_assert(!case_has(play, OLD) && !case_has(play, "pid.oldbin"));
    play_configure(play, 2, "", "");
    case_expect_ok(case_command(play, "upgrade"));
    play_destroy(play);
}

START_TEST(test_mistake_of_the_configuration)
{
    struct play *play = start();
    struct play_process *old = play_main(play);

    play_configure(play, 2, "mistake;", "");
    expect_rolled_back(old, case_command(play, "upgrade"), "mistake");
}
END_TEST

START_TEST(test_address_of_the_new_one_is_in_use)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *client;
    int fd = case_listen(play, "taken");

    play_configure(play, 2, "", "server { listen unix:$D/taken; echo; }");
    client = case_command(play, "upgrade");
    play_pass(play, 5000);
    close(fd);
    expect_rolled_back(old, client, "the socket is in use");
}
END_TEST

START_TEST(test_single_process_is_refused)
{
    struct play *play = start();
    struct play_process *old = play_main(play);

    play_configure(play, 2, "master_process off;", "");
    expect_rolled_back(
        old, case_command(play, "upgrade"), "cannot be changed for a configuration with");
}
END_TEST

/* Calls of the old process and of the child. */
START_TEST(test_call_fails)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    const char *says = "fork()";

    if (_i == 0) {
        play->failures.fork = 1;
    } else if (_i == 1) {
        play->failures.execute = 1;
        says = "execve() \\\"/forkbeard\\\" failed (2: No such file";
    }
    expect_rolled_back(old, case_command(play, "upgrade"), says);
}
END_TEST

/* The new process reports mistakes in the environment, too. */
START_TEST(test_state_is_not_understood)
{
    struct play *play = start();
    struct play_process *old = play_main(play);

    play->failures.state = 1;
    expect_rolled_back(
        old, case_command(play, "upgrade"), "is not understood: the kind is unknown");
}
END_TEST

static void fail_start(struct play *play, struct play_process *process)
{
    process->worker->fails_start = true;
    play->forked = NULL;
}

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

START_TEST(test_worker_of_the_new_one_does_not_start)
{
    struct play *play = start();
    struct play_process *old = play_main(play);

    play->forked = fail_start;
    expect_rolled_back(old, case_command(play, "upgrade"), "a worker process could not start");
}
END_TEST

/* Workers of the new process are late: it fails by itself, and says why. */
START_TEST(test_worker_of_the_new_one_is_late)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *client;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    play->forked = NULL;
    play_pass(play, START_MS - 1);
    case_expect_waiting(client);
    ck_assert_str_eq(case_status(play, "state"), "upgrading");
    ck_assert_str_eq(case_status(play, "upgrade.serves"), "false");
    play_pass(play, 1);
    expect_rolled_back(old, client, "was not ready within worker_start_timeout");
}
END_TEST

/* The new process dies before it serves. */
START_TEST(test_new_one_dies)
{
    static const struct {
        int number;
        bool handled;
        const char *says;
    } rows[] = { { SIGSEGV, false, "exited on signal 11" },
        { SIGKILL, false, "exited on signal 9" }, { SIGTERM, true, "exited with code 1" },
        { SIGQUIT, true, "exited with code 1 and has told no reason" } };
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *client;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    play->forked = NULL;
    if (rows[_i].handled)
        play_signal(case_find_other(old), rows[_i].number);
    else
        play_kill(case_find_other(old), rows[_i].number);
    play_settle(play);
    expect_rolled_back(old, client, rows[_i].says);
}
END_TEST

/* The new process does nothing at all: SIGTERM after its time, and SIGKILL two seconds later. */
START_TEST(test_new_one_hangs)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;
    struct play_client *client, *second;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    play->forked = NULL;
    new = case_find_other(old);
    new->kept = true;
    play_signal(new, SIGSTOP);
    play_pass(play, START_MS + GRACE_MS);
    ck_assert_int_ne(new->pending[SIGTERM], 0);
    case_expect_waiting(client);
    second = case_command(play, "upgrade");
    case_expect_failure(second, "is being rolled back");
    play_pass(play, KILL_MS - 1);
    ck_assert(!new->exited);
    play_pass(play, 1);
    ck_assert(new->exited);
    ck_assert_int_eq(play_exit_code(new), 128 + SIGKILL);
    expect_rolled_back(old, client, "did not serve within worker_start_timeout and 5000 ms");
}
END_TEST

START_TEST(test_second_upgrade_is_refused)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;
    struct play_client *client, *second;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    second = case_command(play, "upgrade");
    case_expect_failure(second, "does not serve yet; wait");
    case_expect_waiting(client);
    for (unsigned i = 0; i < 2; i++)
        play_worker_find(play, i)->never_ready = false;
    play_settle(play);
    case_expect_ok(client);
    new = play_main(play);
    case_expect_failure(case_command(play, "upgrade"), "the old binary, process");
    case_expect_failure(case_command_to(play, OLD, "upgrade"), "the new binary, process");
    play->forked = NULL;
    ck_assert_uint_eq(play_count_masters(play), 2);
    ck_assert(!old->exited && !new->exited);
    play_destroy(play);
}
END_TEST

/* The old process lets its sessions end: a further upgrade has to wait for the end. */
START_TEST(test_upgrade_while_the_other_drains)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *session = play_connect(play);

    play_settle(play);
    case_expect_ok(case_command(play, "upgrade"));
    case_signal(old, SIGQUIT);
    ck_assert(!session->ended && !old->exited);
    case_expect_failure(case_command(play, "upgrade"), "still lets its sessions end");
    play_client_close(play, session);
    play_settle(play);
    case_expect_ok(case_command(play, "upgrade"));
    play_destroy(play);
}
END_TEST

/* A third process is refused, whichever of the two has the pid file. */
START_TEST(test_third_process_is_refused)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new = case_upgrade(play), *third;
    char says[64];

    for (int i = 0; i < 2; i++) {
        third = play_start(play);
        play_pass(play, 5000);
        ck_assert(third->exited);
        ck_assert_int_eq(play_exit_code(third), EX_TEMPFAIL);
        snprintf(
            says, sizeof(says), "another master process %d runs", (int)(i == 0 ? new : old)->pid);
        ck_assert(play_has_logged(play, says));
        ck_assert(case_is_served(play));
        if (i == 0)
            case_signal(new, SIGQUIT);
    }
    case_expect_alone(old);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_mistake_of_the_configuration);
    tcase_add_test(tcase, test_address_of_the_new_one_is_in_use);
    tcase_add_test(tcase, test_state_is_not_understood);
    tcase_add_test(tcase, test_single_process_is_refused);
    tcase_add_loop_test(tcase, test_call_fails, 0, 2);
    tcase_add_test(tcase, test_worker_of_the_new_one_does_not_start);
    tcase_add_test(tcase, test_worker_of_the_new_one_is_late);
    tcase_add_loop_test(tcase, test_new_one_dies, 0, 4);
    tcase_add_test(tcase, test_new_one_hangs);
    tcase_add_test(tcase, test_second_upgrade_is_refused);
    tcase_add_test(tcase, test_third_process_is_refused);
    tcase_add_test(tcase, test_upgrade_while_the_other_drains);
}

TEST_MAIN("upgrade_fails", add_tests)
