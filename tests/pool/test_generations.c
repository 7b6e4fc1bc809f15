/* SPDX-License-Identifier: BSD-2-Clause */
/* Generations that take each other's place: how many are alive, and what a reload waits for. */
#include "plays/client.h"
#include "plays/play.h"
#include "plays/worker.h"

static void crash_accepting(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->crashes_accepting = true;
}

static struct play_client *reload(struct play *play)
{
    struct play_client *client = play_control(play, "control", "reload");

    ck_assert_ptr_nonnull(client);
    play_settle(play);
    return client;
}

/* A generation that crashes on probation, and whose predecessor cannot be started again, stays in
 * force: the generations before are bounded then too, so that the next reload does not wait for
 * their sessions. */
START_TEST(test_bounded_when_no_way_leads_back)
{
    struct play *play = play_create(1);
    struct play_client *client;

    play_configure(play, 1, "max_generations 2;", "");
    play_start(play);
    play_settle(play);
    play_connect(play);
    play_settle(play);
    client = reload(play);
    play_pass(play, 1100);
    ck_assert(play_client_is_ok(client));
    play_connect(play);
    play_settle(play);
    play->forked = crash_accepting;
    client = play_control(play, "control", "reload");
    while (play_worker_find(play, 0)->phase == PLAY_WORKER_ACCEPTS)
        ck_assert(play_step(play));
    play->failures.fork = 1;
    play_settle(play);
    ck_assert(client->replied && !play_client_is_ok(client));
    ck_assert(play_has_logged(play, "could not be started again"));
    play->forked = NULL;
    play_pass(play, 2000);
    client = reload(play);
    play_pass(play, 7000);
    ck_assert(play_client_is_ok(client));
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_bounded_when_no_way_leads_back);
}

TEST_MAIN("generations", add_tests)
