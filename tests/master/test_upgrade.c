/* SPDX-License-Identifier: BSD-2-Clause */
/* Upgrades: another master process beside the first, and what follows when one of them ends. */
#include "plays/case.h"

#include <signal.h>
#include <unistd.h>

#include <unistd.h>

static struct play *start(void)
{
    return case_start(2, "", "");
}

/* Finds the master process that is not this one. */
static struct play_process *find_other(struct play *play, const struct play_process *master)
{
    struct play_process *process;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->is_master && !process->exited && process != master)
            return process;
    return NULL;
}

START_TEST(test_new_binary_serves_beside)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *client = play_control(play, "control", "upgrade");

    play_settle(play);
    ck_assert(play_client_is_ok(client));
    ck_assert_uint_eq(play_count_masters(play), 2);
    ck_assert_ptr_ne(play_main(play), old);
    ck_assert_uint_eq(play_count_workers(play), 4);
    play_signal(old, SIGQUIT);
    play_settle(play);
    ck_assert(old->exited);
    ck_assert_uint_eq(play_count_workers(play), 2);
    play_destroy(play);
}
END_TEST

/* Ends the old process after each step of the new one's start. */
START_TEST(test_old_process_is_killed_during_start)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;

    play_signal(old, SIGUSR2);
    while ((new = find_other(play, old)) == NULL)
        ck_assert(play_step(play));
    for (int i = 0; i < _i; i++)
        play_step(play);
    play_signal(old, SIGKILL);
    play_settle(play);
    play_pass(play, 1000);
    ck_assert(!new->exited);
    ck_assert_ptr_eq(play_main(play), new);
    ck_assert_uint_eq(play_count_workers(play), 2);
    play_destroy(play);
}
END_TEST

/* Two processes give up a unix socket that both have: one by a reload that has committed and does
 * not serve yet, the other because it ends. */
START_TEST(test_shared_path_is_removed_by_one)
{
    struct play *play = play_create(1);
    struct play_process *old, *new;
    struct play_worker *worker;
    char stream[128];

    snprintf(stream, sizeof(stream), "server { listen unix:%s/second; echo; }", play->directory);
    play_configure(play, 1, "", stream);
    old = play_start(play);
    play_settle(play);
    play_signal(old, SIGUSR2);
    play_settle(play);
    new = play_main(play);
    ck_assert_ptr_ne(new, old);
    play_configure(play, 1, "", "");
    play_signal(new, SIGHUP);
    do {
        ck_assert(play_step(play));
        worker = play_worker_find(play, 0);
    } while (worker->phase != PLAY_WORKER_READY);
    worker->deaf = true; /* it does not hear that it is to accept */
    play_settle(play);
    play_signal(old, SIGQUIT);
    play_settle(play);
    ck_assert(old->exited);
    play_worker_recover(worker);
    play_pass(play, 2000);
    ck_assert_uint_eq(worker->phase, PLAY_WORKER_ACCEPTS);
    ck_assert_int_eq(access(play_path(play, "second"), F_OK), -1);
    play_destroy(play);
}
END_TEST

START_TEST(test_failed_upgrade_changes_nothing)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *client;

    play_configure(play, 2, "mistake;", "");
    client = play_control(play, "control", "upgrade");
    play_settle(play);
    ck_assert(client->replied && !play_client_is_ok(client));
    ck_assert_ptr_nonnull(strstr(client->line, "mistake"));
    ck_assert_ptr_eq(play_main(play), old);
    ck_assert_uint_eq(play_count_masters(play), 1);
    play_destroy(play);
}
END_TEST

#define SECOND "server { listen unix:$D/second; echo; }"

static void never_accepts(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_accepts = true;
}

/* A reload of the new process gives a path up that the old process has too. Its workers crash before
 * they accept, and no way leads back, because the old process has the path: the old process learns
 * that it has the path alone, and removes it when it ends. */
START_TEST(test_path_is_removed_after_a_failed_way_back)
{
    struct play *play = case_start(2, "", SECOND);
    struct play_process *old = play_main(play);
    struct play_client *client;

    case_expect_ok(case_command(play, "upgrade"));
    play_configure(play, 2, "", "");
    play->forked = never_accepts;
    client = case_command(play, "reload");
    play->forked = NULL;
    for (unsigned i = 0; i < 2; i++)
        play_worker_crash(play_worker_find(play, i), SIGSEGV);
    play_pass(play, 10000);
    case_expect_failure(client, "\"in_force\":\"new\"");
    ck_assert_int_eq(access(play_path(play, "second"), F_OK), 0);
    play_signal(old, SIGQUIT);
    play_settle(play);
    ck_assert(old->exited);
    ck_assert_int_eq(access(play_path(play, "second"), F_OK), -1);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_new_binary_serves_beside);
    tcase_add_loop_test(tcase, test_old_process_is_killed_during_start, 0, 12);
    tcase_add_test(tcase, test_shared_path_is_removed_by_one);
    tcase_add_test(tcase, test_failed_upgrade_changes_nothing);
    tcase_add_test(tcase, test_path_is_removed_after_a_failed_way_back);
}

TEST_MAIN("upgrade", add_tests)
