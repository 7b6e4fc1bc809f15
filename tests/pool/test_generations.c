/* SPDX-License-Identifier: BSD-2-Clause */
/* Generations replaced by generations: the number alive, and the end of a reload. */
#include "channel/channel.h"
#include "plays/case.h"

#include <signal.h>
#include <string.h>

#define CLOSE_MS 2000 /* to end at once */
#define PROBATION_MS 1000
#define RELEASE_MS 5000 /* how long a reload waits for workers with listeners */

static void crash_accepting(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->crashes_accepting = true;
}

/* Opens a session with a worker of the serving generation. */
static struct play_client *open_session(struct play *play)
{
    struct play_client *client = play_connect(play);

    ck_assert_ptr_nonnull(client);
    play_settle(play);
    ck_assert(client->replied);
    return client;
}

/* A generation crashes on probation and stays in force, because its predecessor cannot be started
 * again: the generations before are bounded then too, so that the next reload does not wait for
 * their sessions. */
START_TEST(test_bounded_when_no_way_leads_back)
{
    struct play *play = case_start(1, "max_generations 2;", "");
    struct play_client *client;

    open_session(play);
    case_reload(play);
    open_session(play);
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
    client = case_command(play, "reload");
    play_pass(play, 7000);
    case_expect_ok(client);
    play_destroy(play);
}
END_TEST

/* Sessions of the oldest generations end, and no others; the reply to the reload tells how many. */
START_TEST(test_generations_are_bounded)
{
    enum { MOST = 3, RELOADS = 8 };
    struct play *play = case_start(2, "max_generations 3;", "");
    struct play_client *sessions[RELOADS + 1];

    sessions[0] = open_session(play);
    for (unsigned i = 1; i <= RELOADS; i++) {
        struct play_client *client = case_command(play, "reload");
        char says[96];

        play_pass(play, 1000);
        case_expect_ok(client);
        snprintf(says, sizeof(says), "generation %u is closed, 1 session ends", i + 1 - MOST);
        ck_assert_int_eq(strstr(client->line, says) != NULL, i >= MOST);
        sessions[i] = open_session(play);
        for (unsigned j = 0; j <= i; j++)
            ck_assert_int_eq(sessions[j]->ended, j + MOST <= i);
        ck_assert_uint_eq(play_count_workers(play), i < MOST ? 2 + i : 2 + MOST - 1);
    }
    play_destroy(play);
}
END_TEST

/* Busy sessions stay over any number of reloads, unless the configuration bounds the
 * generations. */
START_TEST(test_sessions_outlive_reloads)
{
    enum { RELOADS = 12 };
    struct play *play = case_start(1, "", "");
    struct play_client *sessions[RELOADS];

    for (unsigned i = 0; i < RELOADS; i++) {
        sessions[i] = open_session(play);
        case_reload(play);
    }
    for (unsigned i = 0; i < RELOADS; i++)
        if (sessions[i]->ended)
            ck_abort_msg("the session of generation %u has ended", i + 1);
    ck_assert_uint_eq(play_count_workers(play), RELOADS + 1);
    play_destroy(play);
}
END_TEST

/* Too many old workers: only the oldest are told to end their idle sessions, at every reload. */
START_TEST(test_idle_sessions_of_the_oldest_end_first)
{
    enum { RELOADS = 5, MOST = 2 };
    struct play *play = case_start(1, "max_draining_workers 2;", "");
    struct play_worker *workers[RELOADS];
    struct play_client *sessions[RELOADS], *client = NULL;

    for (unsigned i = 0; i < RELOADS; i++) {
        workers[i] = play_worker_find(play, 0);
        sessions[i] = open_session(play);
        client = case_command(play, "reload");
        play_pass(play, 1000);
        case_expect_ok(client);
    }
    for (unsigned i = 0; i < RELOADS; i++) {
        ck_assert(!sessions[i]->ended);
        ck_assert_uint_eq(
            workers[i]->received[MESSAGE_TRIM], i < RELOADS - MOST ? RELOADS - MOST - i : 0);
    }
    ck_assert(
        play_has_logged(play, "5 old worker processes are more than max_draining_workers (2): "
                              "idle sessions of 3 end"));
    play_destroy(play);
}
END_TEST

/* With 1 the old workers end at once, with 0 they never have to. */
START_TEST(test_bound_is_one_or_none)
{
    struct play *play = case_start(1, _i == 1 ? "max_generations 1;" : "max_generations 0;", "");
    struct play_client *sessions[10];

    for (unsigned i = 0; i < 10; i++) {
        sessions[i] = open_session(play);
        case_reload(play);
    }
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(sessions[i]->ended, _i == 1);
    ck_assert_uint_eq(play_count_workers(play), _i == 1 ? 1 : 11);
    play_destroy(play);
}
END_TEST

/* The closed generation has an endless worker: the next reload waits for the worker, reports the
 * wait, and goes on after the kill. */
START_TEST(test_reload_waits_for_closed_generation)
{
    struct play *play = case_start(1, "max_generations 1;", "");
    struct play_worker *oldest = play_worker_find(play, 0);
    struct play_client *first, *second;

    open_session(play);
    oldest->deaf = true;
    first = case_command(play, "reload");
    second = case_command(play, "reload");
    case_expect_ok(first); /* the second one ends the probation */
    case_expect_waiting(second);
    ck_assert_str_eq(case_status(play, "pending.0.command"), "reload");
    ck_assert_uint_eq(case_generation(play), 2);
    ck_assert_uint_eq(case_pass_to_exit(oldest->process), CLOSE_MS);
    ck_assert_int_eq(play_exit_code(oldest->process), 128 + SIGKILL);
    play_settle(play);
    ck_assert_uint_eq(case_generation(play), 3);
    play_pass(play, 1000);
    case_expect_ok(second);
    ck_assert_str_eq(case_status(play, "deaths.stop_timeout"), "1");
    play_destroy(play);
}
END_TEST

/* Addresses dropped by a reload and restored by the next are held by a deaf worker: they are bound
 * after the worker's release, or fail at the timeout. */
START_TEST(test_listener_comes_back)
{
    static const char both[] = "server { listen $A:7001; listen unix:$D/other; echo; }";
    struct play *play = case_start(1, "", both);
    struct play_worker *before = play_worker_find(play, 0);
    struct play_client *client;

    before->deaf = true;
    play_configure(play, 1, "", "");
    case_reload(play);
    ck_assert(!case_has(play, "other"));
    play_configure(play, 1, "", both);
    client = case_command(play, "reload");
    play_pass(play, RELEASE_MS - PROBATION_MS - 1);
    case_expect_waiting(client);
    if (_i == 0) {
        play_pass(play, 1);
        case_expect_failure(client, "failed (98: Address already in use)");
        ck_assert_uint_eq(case_generation(play), 2);
        client = case_command(play, "reload"); /* does not wait again */
        case_expect_failure(client, "failed (98: Address already in use)");
    }
    before->deaf = false; /* the listeners are released now */
    play_settle(play);
    if (_i == 0)
        client = case_command(play, "reload");
    play_pass(play, PROBATION_MS);
    case_expect_ok(client);
    ck_assert_uint_eq(case_generation(play), 3);
    ck_assert(case_has(play, "other"));
    play_destroy(play);
}
END_TEST

/* The closed generation has released the listeners, and has an endless worker: the next reload
 * would make a generation too many, and waits all the same. */
START_TEST(test_reload_waits_for_number_of_generations)
{
    struct play *play = case_start(1, "max_generations 2;", "");
    struct play_worker *oldest = play_worker_find(play, 0);
    struct play_client *client;

    open_session(play);
    case_reload(play);
    oldest->deaf = true;
    open_session(play);
    case_reload(play);
    client = case_command(play, "reload");
    case_expect_waiting(client);
    ck_assert_ptr_nonnull(strstr(case_status(play, "pending.0.waiting"), "max_generations"));
    ck_assert_uint_eq(case_generation(play), 3);
    ck_assert_uint_eq(case_pass_to_exit(oldest->process), CLOSE_MS - PROBATION_MS);
    play_settle(play);
    ck_assert_uint_eq(case_generation(play), 4);
    play_pass(play, PROBATION_MS);
    case_expect_ok(client);
    play_destroy(play);
}
END_TEST

/* The status shows serving, draining and ended workers. */
START_TEST(test_drain_is_told)
{
    struct play *play = case_start(2, "", "");
    struct play_client *session = open_session(play);
    bool first = play_worker_find(play, 0)->session_n > 0;

    play_configure(play, 1, "", "");
    case_reload(play);
    ck_assert_str_eq(case_status(play, "generations.0.state"), "draining");
    ck_assert_str_eq(
        case_status(play, "generations.0.workers.0.state"), first ? "draining" : "ended");
    ck_assert_str_eq(
        case_status(play, "generations.0.workers.1.state"), first ? "ended" : "draining");
    ck_assert_str_eq(case_status(play, "generations.1.state"), "live");
    ck_assert_str_eq(case_status(play, "generations.1.workers.0.state"), "accepting");
    ck_assert_str_eq(case_status(play, "generations.1.workers.1.state"), "");
    play_client_close(play, session);
    play_settle(play);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_bounded_when_no_way_leads_back);
    tcase_add_test(tcase, test_generations_are_bounded);
    tcase_add_test(tcase, test_sessions_outlive_reloads);
    tcase_add_test(tcase, test_idle_sessions_of_the_oldest_end_first);
    tcase_add_loop_test(tcase, test_bound_is_one_or_none, 0, 2);
    tcase_add_test(tcase, test_reload_waits_for_closed_generation);
    tcase_add_loop_test(tcase, test_listener_comes_back, 0, 2);
    tcase_add_test(tcase, test_reload_waits_for_number_of_generations);
    tcase_add_test(tcase, test_drain_is_told);
}

TEST_MAIN("generations", add_tests)
