/* SPDX-License-Identifier: BSD-2-Clause */
/* Late workers: each deadline is met to the millisecond, and the cause is counted. */
#include "plays/case.h"

#include <signal.h>

#define SHUTDOWN_MS 3000
#define START_MS 4000
#define MORE_MS 1000  /* beyond worker_shutdown_timeout */
#define CLOSE_MS 2000 /* to end at once */
#define LOST_MS 1000  /* to end, once the channel is closed */
#define TIMEOUTS "worker_start_timeout 4s; worker_shutdown_timeout 3s;"

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

static void never_ready_and_deaf(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = process->worker->deaf = true;
}

static void never_accepts(struct play *play, struct play_process *process)
{
    process->worker->never_accepts = true;
    play->forked = NULL;
}

/* Passes time until a client has a reply; returns the milliseconds. */
static uint64_t pass_to_reply(struct play *play, const struct play_client *client)
{
    uint64_t begin = play->clock.mono_ms;

    while (!client->replied)
        ck_assert(play_pass_to_deadline(play));
    return play->clock.mono_ms - begin;
}

/* The process is killed by SIGKILL after `ms`. */
static void expect_kill(struct play_process *process, uint64_t ms)
{
    ck_assert_uint_eq(case_pass_to_exit(process), ms);
    ck_assert_int_eq(play_exit_code(process), 128 + SIGKILL);
}

/* Start */

START_TEST(test_start_late_fails_reload)
{
    struct play *play = case_start(2, TIMEOUTS, "");
    unsigned descriptors = play_count_descriptors(play_main(play));
    struct play_client *client;

    play->forked = never_ready;
    client = case_command(play, "reload");
    ck_assert_str_eq(case_status(play, "state"), "reloading");
    ck_assert_str_eq(case_status(play, "generations.1.workers.0.state"), "starting");
    ck_assert_uint_eq(pass_to_reply(play, client), START_MS);
    case_expect_failure(client, "was not ready within worker_start_timeout (4000 ms)");
    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_str_eq(case_status(play, "generations.0.number"), "1");
    ck_assert_str_eq(case_status(play, "generations.1.number"), "");
    play_client_close_all(play);
    play_settle(play);
    ck_assert_uint_eq(play_count_descriptors(play_main(play)), descriptors);
    play->forked = NULL;
    case_reload(play);
    play_destroy(play);
}
END_TEST

/* Workers of a start taken back are killed if they do not end. */
START_TEST(test_workers_of_late_start_are_killed)
{
    struct play *play = case_start(1, TIMEOUTS, "");
    struct play_client *client;
    struct play_process *late;

    play->forked = never_ready_and_deaf;
    client = case_command(play, "reload");
    late = play_worker_find(play, 0)->process;
    ck_assert_uint_eq(pass_to_reply(play, client), START_MS);
    ck_assert_uint_eq(play_count_workers(play), 2);
    expect_kill(late, CLOSE_MS);
    case_expect_deaths(play, "stop_timeout", 1);
    play_destroy(play);
}
END_TEST

/* A late replacement is killed, and the delay grows with each replacement. */
START_TEST(test_late_replacement_is_replaced)
{
    struct play *play = case_start(2, TIMEOUTS, "");

    play->forked = never_ready;
    play_worker_crash(play_worker_find(play, 0), SIGKILL);
    ck_assert_uint_eq(case_pass_to_fork(play), CASE_AT_ONCE_MS);
    ck_assert_uint_eq(case_pass_to_fork(play), START_MS + 100);
    ck_assert_uint_eq(case_pass_to_fork(play), START_MS + 200);
    ck_assert_str_eq(case_status(play, "deaths.start_timeout"), "2");
    ck_assert_str_eq(case_status(play, "deaths.signal"), "1");
    play->forked = NULL;
    play_pass(play, START_MS + 400);
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.state"), "accepting");
    play_destroy(play);
}
END_TEST

/* The worker does not reply to MESSAGE_ACCEPT: it is killed, and the reload goes on. */
START_TEST(test_accept_late_is_killed)
{
    struct play *play = case_start(2, TIMEOUTS, "");
    struct play_client *client;

    play->forked = never_accepts;
    client = case_command(play, "reload");
    expect_kill(play_worker_find(play, 0)->process, START_MS);
    case_expect_waiting(client);
    ck_assert_uint_eq(case_pass_to_fork(play), 100);
    play_settle(play);
    case_expect_ok(client); /* a second after the commit has passed */
    case_expect_deaths(play, "start_timeout", 1);
    play_destroy(play);
}
END_TEST

START_TEST(test_start_has_no_deadline)
{
    struct play *play = case_start(1, "worker_start_timeout 0;", "");
    struct play_client *client;

    play->forked = never_ready;
    client = case_command(play, "reload");
    play_pass(play, 300000);
    case_expect_waiting(client);
    ck_assert_uint_eq(play_count_workers(play), 2);
    play_destroy(play);
}
END_TEST

/* Drain */

static void quit(struct play *play)
{
    play_signal(play_main(play), SIGQUIT);
    play_settle(play);
}

static void reload(struct play *play)
{
    ck_assert_ptr_nonnull(case_command(play, "reload"));
}

static void drain(struct play *play)
{
    play_signal(play_main(play), SIGWINCH);
    play_settle(play);
}

/* The worker gets the order from a foreign sender, and reports to the master the release of all
 * listeners. */
static void tell_worker(struct play *play)
{
    play_signal(play_worker_find(play, 0)->process, SIGQUIT);
    play_settle(play);
}

static const struct {
    void (*begin)(struct play *play);
    bool may_be_deaf;
} drains[] = { { quit, true }, { reload, true }, { drain, true }, { tell_worker, false } };

#define DRAINS (int)(sizeof(drains) / sizeof(drains[0]))

/* Endless sessions, and a deaf worker. */
START_TEST(test_drain_late_is_killed)
{
    struct play *play = case_start(1, TIMEOUTS, "");
    struct play_worker *worker = play_worker_find(play, 0);

    worker->keeps_sessions = true;
    worker->deaf = _i >= DRAINS;
    if (!worker->deaf || drains[_i % DRAINS].may_be_deaf) {
        drains[_i % DRAINS].begin(play);
        expect_kill(worker->process, SHUTDOWN_MS + MORE_MS);
        ck_assert(play_has_logged(play, "it had not ended 1 s after worker_shutdown_timeout"));
        if (drains[_i % DRAINS].begin != quit)
            case_expect_deaths(play, "shutdown_timeout", 1);
    }
    play_destroy(play);
}
END_TEST

START_TEST(test_drain_has_no_deadline)
{
    struct play *play = case_start(1, "worker_shutdown_timeout off;", "");
    struct play_worker *worker = play_worker_find(play, 0);

    worker->keeps_sessions = true;
    drains[_i].begin(play);
    play_pass(play, 3600000);
    ck_assert(!worker->process->exited);
    play_destroy(play);
}
END_TEST

/* A replacement still starting at the daemon's end drains after its start, and has the time of a
 * drain from then on, with or without its report of the drain. */
START_TEST(test_drain_begins_after_start)
{
    struct play *play = case_start(1, "worker_start_timeout 2s; worker_shutdown_timeout 3s;", "");
    struct play_worker *worker;

    play->forked = never_ready;
    play_worker_crash(play_worker_find(play, 0), SIGKILL);
    case_pass_to_fork(play);
    quit(play);
    play_pass(play, 1500);
    worker = play_worker_find(play, 0);
    worker->never_ready = false;
    worker->keeps_sessions = true;
    while (_i == 1 && worker->phase == PLAY_WORKER_STARTS)
        ck_assert(play_step(play));
    worker->deaf = _i == 1;
    play_settle(play);
    ck_assert_int_eq(worker->phase, _i == 0 ? PLAY_WORKER_DRAINS : PLAY_WORKER_READY);
    expect_kill(worker->process, SHUTDOWN_MS + MORE_MS);
    play_destroy(play);
}
END_TEST

/* End at once */

START_TEST(test_close_late_is_killed)
{
    static const int signals[] = { SIGTERM, SIGINT };
    struct play *play = case_start(2, TIMEOUTS, "");
    struct play_process *master = play_main(play);
    struct play_worker *worker = play_worker_find(play, 0);

    worker->deaf = true;
    play_signal(master, signals[_i]);
    play_settle(play);
    ck_assert_uint_eq(play_count_workers(play), 1);
    expect_kill(worker->process, CLOSE_MS);
    ck_assert(play_has_logged(play, "it had not ended 2 s after it was told to"));
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    play_destroy(play);
}
END_TEST

/* A fast end after a graceful one does not wait for the drain. */
START_TEST(test_close_is_sooner_than_drain)
{
    struct play *play = case_start(1, TIMEOUTS, "");
    struct play_process *master = play_main(play);
    struct play_worker *worker = play_worker_find(play, 0);

    worker->deaf = true;
    quit(play);
    play_pass(play, 500);
    play_signal(master, SIGINT);
    expect_kill(worker->process, CLOSE_MS);
    play_destroy(play);
}
END_TEST

/* The drain's deadline stays if earlier. */
START_TEST(test_drain_is_sooner_than_close)
{
    struct play *play = case_start(1, TIMEOUTS, "");
    struct play_process *master = play_main(play);
    struct play_worker *worker = play_worker_find(play, 0);

    worker->deaf = true;
    quit(play);
    play_pass(play, SHUTDOWN_MS);
    play_signal(master, SIGINT);
    expect_kill(worker->process, MORE_MS);
    ck_assert(play_has_logged(play, "1 s after worker_shutdown_timeout"));
    play_destroy(play);
}
END_TEST

/* Channel */

START_TEST(test_channel_lost_is_killed)
{
    struct play *play = case_start(2, TIMEOUTS, "");
    struct play_worker *worker = play_worker_find(play, 0);

    worker->keeps_sessions = true;
    play_worker_close_channel(worker);
    expect_kill(worker->process, LOST_MS);
    case_expect_deaths(play, "channel_lost", 1);
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.restarts"), "0");
    ck_assert_uint_eq(
        case_pass_to_fork(play), CASE_AT_ONCE_MS); /* a worker with a life of a second */
    play_destroy(play);
}
END_TEST

/* A worker with an end in time has closed its channel like every process. */
START_TEST(test_channel_closed_at_exit)
{
    struct play *play = case_start(1, TIMEOUTS, "");
    struct play_worker *worker = play_worker_find(play, 0);

    play_worker_close_channel(worker);
    play_pass(play, LOST_MS - 1);
    play_worker_exit(worker, 0);
    play_settle(play);
    case_expect_deaths(play, "", 0);
    play_destroy(play);
}
END_TEST

/* A draining worker with a lost channel has no longer time. */
START_TEST(test_channel_lost_is_sooner_than_drain)
{
    struct play *play = case_start(1, TIMEOUTS, "");
    struct play_worker *worker = play_worker_find(play, 0);

    worker->keeps_sessions = true;
    quit(play);
    play_worker_close_channel(worker);
    expect_kill(worker->process, LOST_MS);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_start_late_fails_reload);
    tcase_add_test(tcase, test_workers_of_late_start_are_killed);
    tcase_add_test(tcase, test_late_replacement_is_replaced);
    tcase_add_test(tcase, test_accept_late_is_killed);
    tcase_add_test(tcase, test_start_has_no_deadline);
    tcase_add_loop_test(tcase, test_drain_late_is_killed, 0, 2 * DRAINS);
    tcase_add_loop_test(tcase, test_drain_has_no_deadline, 0, DRAINS);
    tcase_add_loop_test(tcase, test_drain_begins_after_start, 0, 2);
    tcase_add_loop_test(tcase, test_close_late_is_killed, 0, 2);
    tcase_add_test(tcase, test_close_is_sooner_than_drain);
    tcase_add_test(tcase, test_drain_is_sooner_than_close);
    tcase_add_test(tcase, test_channel_lost_is_killed);
    tcase_add_test(tcase, test_channel_closed_at_exit);
    tcase_add_test(tcase, test_channel_lost_is_sooner_than_drain);
}

TEST_MAIN("deadline", add_tests)
