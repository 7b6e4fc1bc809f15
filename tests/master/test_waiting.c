/* SPDX-License-Identifier: BSD-2-Clause */
/* Reasons for a waiting reload or upgrade: interested clients are told, with the maximum time, and
 * so are the status and the log. */
#include "plays/case.h"

#include <signal.h>
#include <string.h>

#define PROBATION_MS 1000
#define RELEASE_MS 5000

static struct play *start(void)
{
    return case_start(1, "worker_start_timeout 4s; worker_shutdown_timeout 60s;", "");
}

static struct play_client *ask(struct play *play, const char *command)
{
    struct play_client *client;
    char line[64];

    snprintf(line, sizeof(line), "{\"command\":\"%s\",\"progress\":true}", command);
    client = play_request(play, "control", line);
    ck_assert_ptr_nonnull(client);
    play_settle(play);
    return client;
}

/* The client has no outcome, and this number of notices. */
static void expect_told(const struct play_client *client, const char *why, unsigned n)
{
    const char *p = client->line;

    case_expect_waiting(client);
    while ((p = strstr(p, why)) != NULL && n > 0) {
        n--;
        p++;
    }
    ck_assert_msg(p == NULL && n == 0, "\"%s\" in %s", why, client->line);
}

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

static const char check[] = "a reload is under way: the configuration is checked, at most 60 s";
static const char workers[] =
    "a reload is under way: the workers of generation 2 start, at most 4 s";
static const char probation[] = "a reload is under way: generation 2 serves, and has to go on "
                                "without crashes for a moment, at most 1 s";
static const char release[] =
    "draining workers of generation 1 still hold listening sockets, at most 5 s";
static const char binary[] = "an upgrade is under way: the new binary, process ";

static const char *const commands[] = { "reload", "upgrade" };

START_TEST(test_waits_for_check)
{
    struct play *play = start();
    struct play_client *first = play_control(play, "control", "reload"), *second;
    struct play_process *process = case_step_to_fork(play, PROCESS_CHECK);

    play_signal(process, SIGSTOP);
    play_settle(play);
    second = ask(play, commands[_i]);
    expect_told(second, check, 1);
    ck_assert_str_eq(case_status(play, "pending.0.command"), commands[_i]);
    ck_assert_str_eq(case_status(play, "pending.0.waiting"),
        "a reload is under way: the configuration is checked");
    play_signal(process, SIGCONT);
    play_pass(play, 2 * PROBATION_MS);
    case_expect_ok(first);
    case_expect_ok(second);
    play_destroy(play);
}
END_TEST

/* The first client waits without a notice; the rest for the first client's reload. */
START_TEST(test_waits_for_workers)
{
    struct play *play = start();
    struct play_client *first, *clients[2];

    play->forked = never_ready;
    first = ask(play, "reload");
    for (unsigned i = 0; i < 2; i++)
        clients[i] = ask(play, commands[i]);
    for (unsigned i = 0; i < 2; i++)
        expect_told(clients[i], workers, 1);
    expect_told(first, "waiting", 0);
    ck_assert_str_eq(case_status(play, "pending.0.command"), "reload");
    ck_assert_str_eq(case_status(play, "pending.1.command"), "upgrade");
    ck_assert(play_has_logged(play, "\"reload\" waits: a reload is under way"));
    /* the reason stays the same: no new notice */
    play_pass(play, 1000);
    expect_told(clients[0], "waiting", 1);
    play->forked = NULL;
    play_worker_find(play, 0)->never_ready = false;
    play_pass(play, 3 * PROBATION_MS);
    case_expect_ok(first);
    case_expect_ok(clients[0]);
    case_expect_ok(clients[1]);
    ck_assert_str_eq(case_status(play, "pending"), "[]");
    play_destroy(play);
}
END_TEST

/* An upgrade waits for the probation; a reload ends it, unless a worker has crashed. */
START_TEST(test_waits_for_probation)
{
    struct play *play = start();
    struct play_client *first, *second;

    play_configure(play, 2, "", "");
    first = case_command(play, "reload");
    if (_i == 0) {
        play_worker_crash(play_worker_find(play, 0), SIGSEGV);
        play_settle(play);
    }
    second = ask(play, commands[_i]);
    expect_told(second, probation, 1);
    play_pass(play, PROBATION_MS);
    case_expect_ok(first);
    play_pass(play, PROBATION_MS);
    case_expect_ok(second);
    play_destroy(play);
}
END_TEST

/* A deaf worker holds listeners: five seconds at most. */
START_TEST(test_waits_for_listeners)
{
    struct play *play = start();
    struct play_worker *before = play_worker_find(play, 0);
    struct play_client *client;

    before->deaf = true;
    case_expect_waiting(case_command(play, "reload"));
    client = ask(play, "reload");
    expect_told(client, release, 1);
    ck_assert_uint_eq(case_generation(play), 2);
    if (_i == 0) {
        play_pass(play, RELEASE_MS - 1);
        case_expect_waiting(client);
        ck_assert_uint_eq(case_generation(play), 2);
        play_pass(play, 1);
    } else {
        play_pass(play, 2500);
        before->deaf = false;
        play_settle(play);
    }
    ck_assert_uint_eq(case_generation(play), 3);
    play_pass(play, PROBATION_MS);
    case_expect_ok(client);
    play_destroy(play);
}
END_TEST

/* A reload waits for an upgrade, whose own client is told after a second. */
START_TEST(test_waits_for_upgrade)
{
    struct play *play = start();
    struct play_client *upgrade, *reload;

    play->forked = never_ready;
    upgrade = ask(play, "upgrade");
    expect_told(upgrade, "waiting", 0);
    reload = ask(play, "reload");
    expect_told(reload, binary, 1);
    expect_told(reload, "does not serve yet, at most 9 s", 1);
    ck_assert_ptr_nonnull(strstr(case_status(play, "pending.0.waiting"), binary));
    play_pass(play, 999);
    expect_told(upgrade, "waiting", 0);
    play_pass(play, 1);
    expect_told(upgrade, binary, 1);
    play->forked = NULL;
    play_worker_find(play, 0)->never_ready = false;
    play_pass(play, 2 * PROBATION_MS);
    case_expect_ok(upgrade);
    case_expect_ok(reload);
    play_destroy(play);
}
END_TEST

/* A rollback too. */
START_TEST(test_waits_for_rollback)
{
    struct play *play = start();
    struct play_client *upgrade, *reload;

    play->forked = never_ready;
    upgrade = ask(play, "upgrade");
    play->forked = NULL;
    play_signal(play_find_kind(play, PROCESS_BINARY), SIGSTOP);
    play_pass(play, 9000);
    reload = ask(play, "reload");
    expect_told(reload, "an upgrade is rolled back: the new binary, process ", 1);
    expect_told(reload, "is ending, at most 2 s", 1);
    play_pass(play, 2000 + PROBATION_MS);
    ck_assert(upgrade->replied && !play_client_is_ok(upgrade));
    case_expect_ok(reload);
    play_destroy(play);
}
END_TEST

/* The daemon begins to end: all waiting clients are told so. */
START_TEST(test_end_refuses_those_who_wait)
{
    static const int signals[] = { SIGQUIT, SIGINT };
    struct play *play = start();
    struct play_client *clients[2];

    play_control(play, "control", "reload");
    play_signal(case_step_to_fork(play, PROCESS_CHECK), SIGSTOP);
    for (unsigned i = 0; i < 2; i++)
        clients[i] = ask(play, commands[i]);
    play_signal(play_main(play), signals[_i]);
    play_settle(play);
    for (unsigned i = 0; i < 2; i++)
        case_expect_failure(clients[i], "the daemon is ending");
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_waits_for_check, 0, 2);
    tcase_add_test(tcase, test_waits_for_workers);
    tcase_add_loop_test(tcase, test_waits_for_probation, 0, 2);
    tcase_add_loop_test(tcase, test_waits_for_listeners, 0, 2);
    tcase_add_test(tcase, test_waits_for_upgrade);
    tcase_add_test(tcase, test_waits_for_rollback);
    tcase_add_loop_test(tcase, test_end_refuses_those_who_wait, 0, 2);
}

TEST_MAIN("waiting", add_tests)
