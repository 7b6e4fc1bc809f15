/* SPDX-License-Identifier: BSD-2-Clause */
/* A follower of the events sees generations, workers, commands, failures, upgrades and the end of
 * the master process, without a gap. */
#include "plays/case.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define FOLLOW "{\"command\":\"events\",\"follow\":true}"

/* Finds pairs of kind and text in this order. */
static void expect_events(const struct play_client *client, const char *const (*events)[2])
{
    const char *at = client->line;
    char event[256];

    for (; (*events)[0] != NULL; events++) {
        snprintf(event, sizeof(event), "\"kind\":\"%s\",\"text\":\"", (*events)[0]);
        while ((at = strstr(at, event)) != NULL) {
            at += strlen(event);
            if (strncmp(at, (*events)[1], strlen((*events)[1])) == 0)
                break;
        }
        ck_assert_msg(at != NULL, "%s %s is not in %s", (*events)[0], (*events)[1], client->line);
    }
    ck_assert_ptr_null(strstr(client->line, "\"lost\":1"));
}

START_TEST(test_follower_sees_reloads_and_deaths)
{
    static const char *const events[][2] = { { "master_start", "master process " },
        { "generation_begins", "generation 1, worker processes: 2" },
        { "worker_started", "start worker process " }, { "generation_serves", "generation 1 " },
        { "worker_died", "worker process " }, { "worker_started", "start worker process " },
        { "command", "\\\"reload\\\" received from " },
        { "generation_begins", "generation 2, worker processes: 2" },
        { "generation_serves", "generation 2 serves in place of generation 1" },
        { "generation_drains", "generation 1" }, { "worker_ended", "worker process " },
        { "generation_ended", "generation 1" }, { "reload_done", "generation 2 serves" },
        { "command", "signal 1 (SIGHUP) received from " },
        { "reload_failed", "unknown directive \\\"mistake\\\" in " },
        { "command", "\\\"stop\\\" received" }, { "master_exit", "exit" }, { NULL, NULL } };
    struct play *play = case_start(2, "", "");
    struct play_client *follower = play_request(play, "control", FOLLOW);
    struct play_process *master = play_main(play);

    ck_assert_ptr_nonnull(follower);
    master->kept = true;
    play_settle(play);
    ck_assert(play_client_is_ok(follower));
    play_worker_crash(play_worker_find(play, 0), SIGKILL);
    play_pass(play, 1000);
    case_reload(play);
    play_write(play, "conf", "mistake;");
    case_signal(master, SIGHUP);
    play_pass(play, 1000);
    case_command(play, "stop");
    case_pass_to_exit(master);
    play_settle(play);
    expect_events(follower, events);
    ck_assert(follower->ended);
    play_destroy(play);
}
END_TEST

START_TEST(test_both_sides_of_an_upgrade)
{
    static const char *const of_old[][2] = { { "upgrade_begins", "start new binary process " },
        { "upgrade_serves", "new binary process " }, { "command", "signal 3 (SIGQUIT) received" },
        { "worker_ended", "worker process " }, { "master_exit", "exit" }, { NULL, NULL } };
    static const char *const of_new[][2] = { { "master_start", "master process " },
        { "generation_serves", "generation 1 " }, { "upgrade_completed", "old binary process " },
        { NULL, NULL } };
    static const char *const back[][2] = { { "upgrade_serves", "new binary process " },
        { "upgrade_rolled_back", "new binary process " }, { NULL, NULL } };
    struct play *play = case_start(2, "", "");
    struct play_process *old = play_main(play), *new;
    struct play_client *follower = play_request(play, "control", FOLLOW), *other;

    old->kept = true;
    new = case_upgrade(play);
    other = play_request(play, "control", FOLLOW);
    play_settle(play);
    case_signal(_i == 0 ? old : new, SIGQUIT);
    case_pass_to_exit(_i == 0 ? old : new);
    play_settle(play);
    expect_events(follower, _i == 0 ? of_old : back);
    if (_i == 0)
        expect_events(other, of_new);
    ck_assert(follower->ended == (_i == 0));
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_follower_sees_reloads_and_deaths);
    tcase_add_loop_test(tcase, test_both_sides_of_an_upgrade, 0, 2);
}

TEST_MAIN("events", add_tests)
