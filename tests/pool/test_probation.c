/* SPDX-License-Identifier: BSD-2-Clause */
/* Generations on probation, and the way back to the configuration before when each new worker has
 * crashed within a second of the commit. */
#include "plays/case.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define PROBATION_MS 1000
#define RELEASE_MS 5000 /* how long the way back waits for workers with listeners */
#define BEFORE "server { listen unix:$D/before; listen $A:7001; echo; }"
#define AFTER "server { listen unix:$D/after; listen $A:7002; echo; }"

static void crash_accepting(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->crashes_accepting = true;
}

static void fail_start(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->fails_start = true;
}

static void never_accepts(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_accepts = true;
}

/* A daemon of so many workers, with a configuration changed since. */
static struct play *begin(unsigned workers)
{
    struct play *play = case_start(workers, "", BEFORE);

    play_configure(play, workers, "", AFTER);
    return play;
}

static void crash_all(struct play *play, unsigned n, int number)
{
    for (unsigned i = 0; i < n; i++)
        play_worker_crash(play_worker_find(play, i), number);
}

/* The configuration before the reload serves, in a generation of this number. */
static void check_before(struct play *play, unsigned number)
{
    struct play_client *client = play_connect(play);

    ck_assert_ptr_nonnull(client);
    play_settle(play);
    ck_assert(client->replied);
    play_client_close(play, client);
    ck_assert(case_has(play, "before") && !case_has(play, "after"));
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert_str_eq(case_status(play, "reload.ok"), "false");
    ck_assert_uint_eq(case_generation(play), number);
}

/* The new configuration has failed, and the client learns of the configuration in force. */
static void expect_back(const struct play_client *client)
{
    case_expect_failure(client, "has crashed within 1000 ms of its commit");
    case_expect_failure(client, "\"in_force\":\"previous\"");
}

START_TEST(test_reload_is_replied_to_after_probation)
{
    struct play *play = begin(2);
    struct play_client *client = case_command(play, "reload");

    ck_assert_str_eq(case_status(play, "state"), "reloading");
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    play_pass(play, PROBATION_MS - 1);
    case_expect_waiting(client);
    play_pass(play, 1);
    case_expect_ok(client);
    ck_assert_ptr_nonnull(strstr(client->line, "\"generation\":2"));
    ck_assert_str_eq(case_status(play, "state"), "running");
    play_destroy(play);
}
END_TEST

/* Workers all crashing in the last millisecond of the probation. */
START_TEST(test_all_crash_before_its_end)
{
    struct play *play = begin(2);
    struct play_client *client = case_command(play, "reload");

    play_pass(play, PROBATION_MS - 1);
    crash_all(play, 2, SIGSEGV);
    play_settle(play);
    expect_back(client);
    check_before(play, 3);
    play_destroy(play);
}
END_TEST

/* Workers all crashing after the probation are replaced, and the reload has succeeded. */
START_TEST(test_all_crash_after_its_end)
{
    struct play *play = begin(2);
    struct play_client *client = case_command(play, "reload");

    play_pass(play, PROBATION_MS);
    crash_all(play, 2, SIGSEGV);
    play_pass(play, 500);
    case_expect_ok(client);
    ck_assert(case_has(play, "after"));
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    ck_assert_str_eq(case_status(play, "generations.0.workers.1.state"), "accepting");
    play_destroy(play);
}
END_TEST

/* A worker may crash in the first moment, and a second worker in the last. */
START_TEST(test_crashes_add_up)
{
    struct play *play = begin(2);
    struct play_client *client = case_command(play, "reload");

    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_pass(play, PROBATION_MS - 1);
    case_expect_waiting(client);
    play_worker_crash(play_worker_find(play, 1), SIGABRT);
    play_settle(play);
    expect_back(client);
    check_before(play, 3);
    play_destroy(play);
}
END_TEST

/* The other worker has not crashed: the reload succeeds in time. */
START_TEST(test_one_crash_is_not_all)
{
    struct play *play = begin(2);
    struct play_client *client = case_command(play, "reload");

    for (unsigned i = 0; i < 3; i++) {
        play_worker_crash(play_worker_find(play, 0), SIGSEGV);
        play_pass(play, 250);
    }
    case_expect_waiting(client);
    play_pass(play, 250);
    case_expect_ok(client);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    play_destroy(play);
}
END_TEST

/* SIGKILL is a person's decision, and a requested end is no crash. */
START_TEST(test_sigkill_is_no_crash)
{
    struct play *play = begin(2);
    struct play_client *client = case_command(play, "reload");

    if (_i == 0)
        crash_all(play, 2, SIGKILL);
    else
        for (unsigned i = 0; i < 2; i++)
            play_worker_exit(play_worker_find(play, i), 0);
    play_pass(play, PROBATION_MS);
    case_expect_ok(client);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    play_destroy(play);
}
END_TEST

/* The new workers crash before any of them accepts: the workers from before accept all the time,
 * and the dropped path is bound again. */
START_TEST(test_all_crash_before_they_accept)
{
    struct play *play = begin(2);
    struct play_client *client;

    play->forked = never_accepts;
    client = case_command(play, "reload");
    ck_assert_str_eq(case_status(play, "generations.1.state"), "starting");
    play->forked = NULL;
    crash_all(play, 2, SIGSEGV);
    play_settle(play);
    expect_back(client);
    check_before(play, 3);
    play_destroy(play);
}
END_TEST

/* Sessions from before the reload go on in the old workers. */
START_TEST(test_sessions_go_on)
{
    struct play *play = begin(1);
    struct play_client *session = play_connect(play), *client;

    play_settle(play);
    play->forked = crash_accepting;
    client = play_control(play, "control", "reload");
    while (play_worker_find(play, 0)->phase != PLAY_WORKER_READY)
        ck_assert(play_step(play));
    play->forked = NULL;
    play_pass(play, 100);
    expect_back(client);
    ck_assert(!session->ended);
    check_before(play, 3); /* no worker of generation 1 is left but for the session */
    play_destroy(play);
}
END_TEST

START_TEST(test_fails_again_and_again)
{
    struct play *play = begin(1);

    for (unsigned i = 0; i < 4; i++) {
        struct play_client *client = case_command(play, "reload");

        play_worker_crash(play_worker_find(play, 0), SIGSEGV);
        play_settle(play);
        expect_back(client);
        check_before(play, 3 + 2 * i);
        play_pass(play, 2000);
    }
    play_configure(play, 1, "", BEFORE);
    case_reload(play);
    play_destroy(play);
}
END_TEST

/* A worker that holds the address which has to be bound again hears nothing: the way back waits
 * for it, for so long; then the address cannot be bound, and the new configuration stays. */
START_TEST(test_way_back_waits_for_listeners)
{
    struct play *play = begin(1);
    struct play_worker *before = play_worker_find(play, 0);
    struct play_client *client;

    before->deaf = true;
    client = case_command(play, "reload");
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_settle(play);
    case_expect_waiting(client);
    ck_assert_str_eq(case_status(play, "state"), "reloading");
    if (_i == 0) {
        play_pass(play, RELEASE_MS - 1);
        case_expect_waiting(client);
        play_pass(play, 1);
        case_expect_failure(client, "\"in_force\":\"new\"");
        ck_assert_uint_eq(case_generation(play), 2);
    } else {
        play_pass(play, 2500);
        before->deaf = false; /* the listeners are released now */
        play_pass(play, 1);
        expect_back(client);
        check_before(play, 3);
    }
    play_destroy(play);
}
END_TEST

/* The new configuration has given up no address: nothing is to be bound again, and the way back
 * waits for nobody. */
START_TEST(test_way_back_with_the_same_listeners)
{
    static const char stream[] = "server { listen $A:7001; echo; }";
    struct play *play = case_start(1, "", stream);
    struct play_client *client;

    play_worker_find(play, 0)->deaf = true;
    play_configure(play, 1, "worker_shutdown_timeout 60s;", stream);
    client = case_command(play, "reload");
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_settle(play);
    expect_back(client);
    ck_assert_uint_eq(case_generation(play), 3);
    ck_assert(case_is_served(play));
    play_destroy(play);
}
END_TEST

/* Another process has taken the path: the new configuration stays in force, and the reply says
 * so. */
START_TEST(test_way_back_fails)
{
    struct play *play = begin(2);
    struct play_client *client = case_command(play, "reload");
    int fd = case_listen(play, "before");

    crash_all(play, 2, SIGSEGV);
    play_pass(play, 5000);
    case_expect_failure(client, "\"in_force\":\"new\"");
    ck_assert(
        play_has_logged(play, "could not be started again: the new configuration stays in force"));
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.state"), "accepting");
    ck_assert_str_eq(case_status(play, "state"), "running");
    close(fd);
    play_destroy(play);
}
END_TEST

/* The new workers crash before they accept, and the workers of the way back do not start. Workers
 * from before the reload accept until a new worker does; the next reload does not wait for their
 * sessions, if bounded. */
START_TEST(test_replaced_workers_drain_when_no_way_leads_back)
{
    struct play *play = case_start(1, _i == 0 ? "" : "max_generations 1;", "");
    struct play_client *session = play_connect(play), *client;
    struct play_worker *before = play_worker_find(play, 0);

    play_settle(play);
    play->forked = never_accepts;
    client = case_command(play, "reload");
    play->forked = fail_start;
    crash_all(play, 1, SIGSEGV);
    play_settle(play);
    case_expect_failure(client, "\"in_force\":\"new\"");
    play->forked = NULL;
    if (_i == 0)
        ck_assert_int_eq(before->phase, PLAY_WORKER_ACCEPTS);
    play_pass(play, 5000);
    ck_assert_int_eq(session->ended, _i != 0);
    if (_i == 0)
        ck_assert_int_eq(before->phase, PLAY_WORKER_DRAINS);
    ck_assert_uint_eq(case_generation(play), 2);
    case_reload(play);
    play_destroy(play);
}
END_TEST

/* The new workers crash before they accept, and no way leads back: the new configuration is in
 * force, and the daemon is found where that configuration says. */
START_TEST(test_names_are_of_the_configuration_in_force)
{
    struct play *play = case_start(1, "", BEFORE);
    struct play_client *client;
    int fd;

    play_write(play, "conf",
        "daemon off; error_log $D/error.log info; pid $D/after.pid; control unix:$D/after.control;"
        "sandbox off; worker_processes 1; events { } stream { " AFTER " }");
    play->forked = never_accepts;
    client = case_command(play, "reload");
    play->forked = NULL;
    fd = case_listen(play, "before");
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_pass(play, 10000);
    case_expect_failure(client, "\"in_force\":\"new\"");
    ck_assert(case_has(play, "after.pid") && !case_has(play, "pid"));
    ck_assert(!case_has(play, "control"));
    ck_assert_str_eq(case_status_of(play, "after.control", "generations.0.number"), "2");
    close(fd);
    play_destroy(play);
}
END_TEST

/* The restarted generation crashes too: without a further configuration it serves, with replaced
 * workers. */
START_TEST(test_there_is_one_way_back)
{
    struct play *play = begin(1);
    struct play_client *client;

    play->forked = crash_accepting;
    client = case_command(play, "reload");
    play_settle(play);
    expect_back(client);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "3");
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.state"), "waiting");
    play->forked = NULL;
    play_pass(play, 2000);
    check_before(play, 3);
    play_destroy(play);
}
END_TEST

/* The next reload ends the probation before, as a success. */
START_TEST(test_reload_ends_probation)
{
    struct play *play = begin(1);
    struct play_client *clients[5];

    for (unsigned i = 0; i < 5; i++)
        clients[i] = case_command(play, "reload");
    for (unsigned i = 0; i < 4; i++)
        case_expect_ok(clients[i]);
    case_expect_waiting(clients[4]);
    play_pass(play, PROBATION_MS);
    case_expect_ok(clients[4]);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "6");
    play_destroy(play);
}
END_TEST

/* A worker has crashed, and the other may too: the next reload waits for the end. */
START_TEST(test_reload_waits_after_a_crash)
{
    struct play *play = begin(2);
    struct play_client *first = case_command(play, "reload"), *second;

    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_settle(play);
    second = case_command(play, "reload");
    case_expect_waiting(first);
    play_pass(play, PROBATION_MS - 1);
    case_expect_waiting(first);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    play_pass(play, 1);
    case_expect_ok(first);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "3");
    case_expect_waiting(second);
    play_destroy(play);
}
END_TEST

/* The end of the daemon is not kept waiting, and the configuration that serves counts as good. */
START_TEST(test_end_ends_probation)
{
    static const int signals[] = { SIGQUIT, SIGTERM };
    struct play *play = begin(2);
    struct play_process *master = play_main(play);
    struct play_client *client = case_command(play, "reload");

    play_signal(master, signals[_i]);
    play_settle(play);
    case_expect_ok(client);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    play_destroy(play);
}
END_TEST

/* The end does not wait for the way back either, and the reload has failed. */
START_TEST(test_end_while_way_back_waits)
{
    static const int signals[] = { SIGQUIT, SIGTERM };
    struct play *play = begin(1);
    struct play_process *master = play_main(play);
    struct play_worker *before = play_worker_find(play, 0);
    struct play_client *client;

    before->deaf = true;
    client = case_command(play, "reload");
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_settle(play);
    play_signal(master, signals[_i]);
    play_settle(play);
    case_expect_failure(client, "has crashed within 1000 ms of its commit");
    ck_assert_ptr_null(strstr(client->line, "in_force"));
    before->deaf = false;
    play_pass(play, 3000);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_reload_is_replied_to_after_probation);
    tcase_add_test(tcase, test_all_crash_before_its_end);
    tcase_add_test(tcase, test_all_crash_after_its_end);
    tcase_add_test(tcase, test_crashes_add_up);
    tcase_add_test(tcase, test_one_crash_is_not_all);
    tcase_add_loop_test(tcase, test_sigkill_is_no_crash, 0, 2);
    tcase_add_test(tcase, test_all_crash_before_they_accept);
    tcase_add_test(tcase, test_sessions_go_on);
    tcase_add_test(tcase, test_fails_again_and_again);
    tcase_add_loop_test(tcase, test_way_back_waits_for_listeners, 0, 2);
    tcase_add_test(tcase, test_way_back_with_the_same_listeners);
    tcase_add_test(tcase, test_way_back_fails);
    tcase_add_loop_test(tcase, test_replaced_workers_drain_when_no_way_leads_back, 0, 2);
    tcase_add_test(tcase, test_names_are_of_the_configuration_in_force);
    tcase_add_test(tcase, test_there_is_one_way_back);
    tcase_add_test(tcase, test_reload_ends_probation);
    tcase_add_test(tcase, test_reload_waits_after_a_crash);
    tcase_add_loop_test(tcase, test_end_ends_probation, 0, 2);
    tcase_add_loop_test(tcase, test_end_while_way_back_waits, 0, 2);
}

TEST_MAIN("probation", add_tests)
