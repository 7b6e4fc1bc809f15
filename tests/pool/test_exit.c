/* SPDX-License-Identifier: BSD-2-Clause */
/* Deaths of workers: the cause counted, and the time of the next fork, in every phase of the worker
 * and of its generation. */
#include "channel/channel.h"
#include "plays/case.h"

#include <signal.h>
#include <sys/socket.h>

#define EARLY_MS 1000
#define RESPAWN_MS 100

/* Ends a worker, and returns the milliseconds until a replacement is forked. */
static uint64_t crash_worker(struct play *play, unsigned index, int number)
{
    play_worker_crash(play_worker_find(play, index), number);
    return case_pass_to_fork(play);
}

START_TEST(test_early_crash_delays_next_start)
{
    struct play *play = case_start(2, "", "");

    play_pass(play, EARLY_MS - 1);
    ck_assert_uint_eq(crash_worker(play, 0, SIGSEGV), RESPAWN_MS);
    case_expect_deaths(play, "signal", 1);
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.state"), "accepting");
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.restarts"), "1");
    ck_assert_str_eq(case_status(play, "generations.0.workers.1.restarts"), "0");
    play_destroy(play);
}
END_TEST

START_TEST(test_late_crash_is_replaced_at_once)
{
    struct play *play = case_start(2, "", "");

    play_pass(play, EARLY_MS);
    ck_assert_uint_eq(crash_worker(play, 1, SIGSEGV), CASE_AT_ONCE_MS);
    case_expect_deaths(play, "signal", 1);
    ck_assert_str_eq(case_status(play, "generations.0.workers.1.restarts"), "1");
    play_destroy(play);
}
END_TEST

/* SIGKILL is counted as a signal, and delays nothing, however often it comes. */
START_TEST(test_sigkill_never_delays)
{
    struct play *play = case_start(1, "", "");

    for (unsigned i = 1; i <= 10; i++) {
        ck_assert_uint_eq(crash_worker(play, 0, SIGKILL), CASE_AT_ONCE_MS);
        case_expect_deaths(play, "signal", i);
    }
    ck_assert_str_eq(case_status(play, "state"), "running");
    play_destroy(play);
}
END_TEST

/* Ends by a worker itself: last words, exit code, cause, and whether it is a crash. */
static const struct {
    enum heartbeat_end end;
    int code;
    const char *cause; /* "": not counted */
    bool crash;
} exits[] = {
    { HEARTBEAT_RETURNED, 0, "", false },
    { HEARTBEAT_RETURNED, 1, "start_failed", true },
    { HEARTBEAT_LIVES, 0, "exit", true },
    { HEARTBEAT_LIVES, 3, "exit", true },
    { HEARTBEAT_THREAD_LEFT, 0, "exit", true },
    { HEARTBEAT_WAIT_FAILED, 1, "wait_failed", true },
};

START_TEST(test_exit_has_cause)
{
    struct play *play = case_start(1, "", "");

    play_worker_end(play_worker_find(play, 0), exits[_i].end, exits[_i].code);
    ck_assert_uint_eq(case_pass_to_fork(play), exits[_i].crash ? RESPAWN_MS : CASE_AT_ONCE_MS);
    case_expect_deaths(play, exits[_i].cause, *exits[_i].cause != '\0');
    play_destroy(play);
}
END_TEST

/* A person ends a worker by a signal: no crash, and a replacement serves. */
START_TEST(test_worker_told_by_others_is_replaced)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGQUIT };
    struct play *play = case_start(1, "", "");

    play_signal(play_worker_find(play, 0)->process, signals[_i]);
    ck_assert_uint_eq(case_pass_to_fork(play), CASE_AT_ONCE_MS);
    case_expect_deaths(play, "", 0);
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.state"), "accepting");
    play_destroy(play);
}
END_TEST

/* A client waiting without a living worker is served by the next worker. */
START_TEST(test_client_waits_for_next_worker)
{
    struct play *play = case_start(1, "", "");
    struct play_client *client;

    play_worker_crash(play_worker_find(play, 0), SIGBUS);
    client = play_connect(play);
    ck_assert_ptr_nonnull(client);
    play_pass(play, RESPAWN_MS - 1);
    ck_assert(!client->replied);
    play_pass(play, 1);
    ck_assert(client->replied);
    play_destroy(play);
}
END_TEST

/* Silent harm of a worker to the listeners does not outlive the worker. */
START_TEST(test_death_mends_listeners)
{
    struct play *play = case_start(2, "", "");
    struct play_client *client;

    ck_assert_int_eq(shutdown(play_worker_find(play, 0)->listeners[0], SHUT_RDWR), 0);
    play_worker_crash(play_worker_find(play, 0), SIGKILL);
    play_pass(play, EARLY_MS);
    ck_assert_uint_eq(play_worker_find(play, 1)->received[MESSAGE_LISTENER], 1);
    client = play_connect(play);
    ck_assert_ptr_nonnull(client);
    play_settle(play);
    ck_assert(client->replied);
    play_destroy(play);
}
END_TEST

/* GENERATION_STARTING */

/* The first worker forked from here on does not finish its start. */
static void never_ready(struct play *play, struct play_process *process)
{
    process->worker->never_ready = true;
    play->forked = NULL;
}

/* A reload with two workers: the first is ready, the second not. */
static struct play *begin_start(struct play_client **client)
{
    struct play *play = case_start(2, "", "");

    play->forked = never_ready;
    *client = case_command(play, "reload");
    case_expect_waiting(*client);
    ck_assert_uint_eq(play_count_workers(play), 4);
    return play;
}

/* A crash before the commit takes the new generation back, whether that worker was ready or not. */
START_TEST(test_crash_before_commit_fails_reload)
{
    struct play_client *client;
    struct play *play = begin_start(&client);

    play_worker_crash(play_worker_find(play, (unsigned)_i), SIGSEGV);
    play_pass(play, 2000);
    case_expect_failure(client, "a worker process could not start");
    ck_assert_uint_eq(play_count_workers(play), 2);
    case_expect_deaths(play, "signal", 1);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "1");
    ck_assert_str_eq(case_status(play, "state"), "running");
    play_destroy(play);
}
END_TEST

/* SIGKILL before the commit is somebody's decision: the process is replaced, and the reload goes
 * on. */
START_TEST(test_sigkill_before_commit_is_replaced)
{
    struct play_client *client;
    struct play *play = begin_start(&client);

    play_worker_crash(play_worker_find(play, 0), SIGKILL);
    ck_assert_uint_eq(case_pass_to_fork(play), CASE_AT_ONCE_MS);
    play_pass(play, 1000);
    case_expect_ok(client);
    case_expect_deaths(play, "signal", 1);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    play_destroy(play);
}
END_TEST

/* GENERATION_COMMITTED and GENERATION_REPLACED */

static void never_accepts(struct play *play, struct play_process *process)
{
    process->worker->never_accepts = true;
    play->forked = NULL;
}

/* A committed reload: one of the new workers does not accept yet, the old workers do. */
static struct play *commit(struct play_client **client)
{
    struct play *play = case_start(2, "", "");

    play->forked = never_accepts;
    *client = case_command(play, "reload");
    case_expect_waiting(*client);
    ck_assert_str_eq(case_status(play, "generations.0.state"), "draining"); /* not replaced now */
    ck_assert_str_eq(case_status(play, "generations.1.state"), "starting");
    ck_assert_str_eq(case_status(play, "generations.1.workers.0.state"), "ready");
    return play;
}

/* A worker of a generation that has committed is replaced, and the reload goes on. */
START_TEST(test_crash_after_commit_is_replaced)
{
    struct play_client *client;
    struct play *play = commit(&client);

    ck_assert_uint_eq(crash_worker(play, 0, SIGSEGV), RESPAWN_MS);
    play_pass(play, 1000);
    case_expect_ok(client);
    case_expect_deaths(play, "signal", 1);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    play_destroy(play);
}
END_TEST

/* Workers of the generation before accept until the new ones do, and are not replaced. */
START_TEST(test_crash_of_replaced_is_not_replaced)
{
    struct play_client *client;
    struct play *play = commit(&client);
    struct play_process *process;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->worker != NULL && process->worker->index == 1) {
            ck_assert_int_eq(process->worker->phase, PLAY_WORKER_ACCEPTS);
            play_worker_crash(process->worker, SIGSEGV);
            break;
        }
    play_pass(play, 500);
    ck_assert_uint_eq(play_count_workers(play), 3);
    case_expect_deaths(play, "signal", 1);
    ck_assert_str_eq(case_status(play, "generations.0.workers.1.state"), "ended");
    case_expect_waiting(client);
    play_destroy(play);
}
END_TEST

/* GENERATION_DRAINING and GENERATION_CLOSING, and a pool that ends */

/* A daemon of one worker with a session, of the generation before the serving one. */
static struct play_worker *drain_worker(struct play **play, const char *main)
{
    struct play_worker *worker;

    *play = case_start(1, main, "");
    worker = play_worker_find(*play, 0);
    play_connect(*play);
    play_settle(*play);
    case_reload(*play);
    ck_assert_int_eq(worker->phase, PLAY_WORKER_DRAINS);
    return worker;
}

/* The generation is swept, and no other process takes the place of the worker. */
START_TEST(test_crash_of_draining_is_not_replaced)
{
    struct play *play;
    struct play_worker *worker = drain_worker(&play, "");

    ck_assert_str_eq(case_status(play, "generations.0.workers.0.state"), "draining");
    play_worker_crash(worker, SIGSEGV);
    play_pass(play, 500);
    ck_assert_uint_eq(play_count_workers(play), 1);
    case_expect_deaths(play, "signal", 1);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "2");
    ck_assert_str_eq(case_status(play, "generations.1.number"), "");
    play_destroy(play);
}
END_TEST

START_TEST(test_crash_while_daemon_ends_is_not_replaced)
{
    struct play *play = case_start(2, "", "");
    struct play_process *master = play_main(play);

    play_connect(play);
    play_connect(play);
    play_settle(play);
    play_worker_find(play, 0)->keeps_sessions = play_worker_find(play, 1)->keeps_sessions = true;
    play_signal(master, SIGQUIT);
    play_settle(play);
    ck_assert_uint_eq(play_count_workers(play), 2);
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_pass(play, 500);
    ck_assert_uint_eq(play_count_workers(play), 1);
    ck_assert(!master->exited);
    play_worker_crash(play_worker_find(play, 1), SIGSEGV);
    play_settle(play);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_early_crash_delays_next_start);
    tcase_add_test(tcase, test_late_crash_is_replaced_at_once);
    tcase_add_test(tcase, test_sigkill_never_delays);
    tcase_add_loop_test(tcase, test_exit_has_cause, 0, sizeof(exits) / sizeof(exits[0]));
    tcase_add_loop_test(tcase, test_worker_told_by_others_is_replaced, 0, 3);
    tcase_add_test(tcase, test_client_waits_for_next_worker);
    tcase_add_test(tcase, test_death_mends_listeners);
    tcase_add_loop_test(tcase, test_crash_before_commit_fails_reload, 0, 2);
    tcase_add_test(tcase, test_sigkill_before_commit_is_replaced);
    tcase_add_test(tcase, test_crash_after_commit_is_replaced);
    tcase_add_test(tcase, test_crash_of_replaced_is_not_replaced);
    tcase_add_test(tcase, test_crash_of_draining_is_not_replaced);
    tcase_add_test(tcase, test_crash_while_daemon_ends_is_not_replaced);
}

TEST_MAIN("exit", add_tests)
