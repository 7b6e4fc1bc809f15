/* SPDX-License-Identifier: BSD-2-Clause */
/* A start and reloads, of a master process with scripted workers. */
#include "plays/client.h"
#include "plays/play.h"
#include "plays/worker.h"

static struct play *start(unsigned workers)
{
    struct play *play = play_create(1);

    play_configure(play, workers, "", "");
    play_start(play);
    play_settle(play);
    return play;
}

START_TEST(test_start_serves)
{
    struct play *play = start(2);
    struct play_client *client;

    ck_assert_ptr_nonnull(play_main(play));
    ck_assert_uint_eq(play_count_workers(play), 2);
    client = play_connect(play);
    ck_assert_ptr_nonnull(client);
    play_settle(play);
    ck_assert(client->replied);
    play_destroy(play);
}
END_TEST

START_TEST(test_reload_replaces_workers)
{
    struct play *play = start(2);
    struct play_client *client = play_control(play, "control", "reload");
    struct play_worker *before = play_worker_find(play, 0);

    ck_assert_ptr_nonnull(client);
    play_settle(play);
    play_pass(play, 2000);
    ck_assert(play_client_is_ok(client));
    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_ptr_ne(play_worker_find(play, 0), before);
    play_destroy(play);
}
END_TEST

START_TEST(test_quit_ends_all)
{
    struct play *play = start(2);
    struct play_process *master = play_main(play);

    play_signal(master, SIGQUIT);
    play_settle(play);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    ck_assert_uint_eq(play_count_workers(play), 0);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_start_serves);
    tcase_add_test(tcase, test_reload_replaces_workers);
    tcase_add_test(tcase, test_quit_ends_all);
}

TEST_MAIN("reload", add_tests)
