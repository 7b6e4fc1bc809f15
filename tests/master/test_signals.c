/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals of the master process: the end by SIGTERM, SIGINT and SIGQUIT, in sequence too, and the
 * effect of SIGWINCH, SIGHUP and SIGUSR1. */
#include "plays/case.h"

#include "process/signals.h"

#include <signal.h>
#include <unistd.h>

/* A daemon with one worker, and an endless session. */
static struct play *begin(const char *main)
{
    struct play *play = case_start(1, main, "");

    ck_assert_ptr_nonnull(play_connect(play));
    play_settle(play);
    return play;
}

static void give_signal(struct play *play, struct play_process *process, int number)
{
    play_signal(process, number);
    play_settle(play);
}

static void expect_exit(struct play_process *master)
{
    struct play *play = master->play;

    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    case_expect_nothing(play);
    play_destroy(play);
}

START_TEST(test_ends_at_once)
{
    static const int signals[] = { SIGTERM, SIGINT };
    struct play *play = begin("");
    struct play_process *master = play_main(play);

    give_signal(play, master, signals[_i]);
    expect_exit(master);
}
END_TEST

/* SIGTERM as configured, SIGQUIT always. */
START_TEST(test_ends_gracefully)
{
    struct play *play = begin(_i == 0 ? "" : "sigterm_shutdown graceful;");
    struct play_process *master = play_main(play);

    give_signal(play, master, _i == 0 ? SIGQUIT : SIGTERM);
    ck_assert(!case_has(play, "pid") && !case_has(play, "pid.lock")); /* for the next start */
    play_pass(play, 10000);
    ck_assert(!master->exited);
    ck_assert_ptr_null(play_connect(play));
    ck_assert(!TAILQ_FIRST(&play->clients)->ended);
    play_client_close_all(play);
    play_settle(play);
    expect_exit(master);
}
END_TEST

/* A graceful end, then a second signal: an end at once, or no change. */
static const struct {
    int first, second;
    bool at_once;
} pairs[] = {
    { SIGQUIT, SIGQUIT, false },
    { SIGQUIT, SIGTERM, false }, /* the first SIGTERM */
    { SIGQUIT, SIGINT, true },
    { SIGTERM, SIGTERM, true },
    { SIGTERM, SIGINT, true },
    { SIGTERM, SIGQUIT, false },
    { SIGQUIT, SIGUSR1, false },
    { SIGQUIT, SIGWINCH, false },
    { SIGQUIT, SIGUSR2, false },
};

START_TEST(test_second_signal)
{
    struct play *play = begin("sigterm_shutdown graceful;");
    struct play_process *master = play_main(play);

    give_signal(play, master, pairs[_i].first);
    play_pass(play, 1000);
    give_signal(play, master, pairs[_i].second);
    ck_assert_int_eq(master->exited, pairs[_i].at_once);
    if (!pairs[_i].at_once) {
        play_pass(play, 1000);
        ck_assert(!master->exited);
        play_client_close_all(play);
        play_pass(play, 1);
    }
    expect_exit(master);
}
END_TEST

/* The directive of the configuration in force counts. */
START_TEST(test_reload_changes_sigterm)
{
    struct play *play = begin("");
    struct play_process *master = play_main(play);

    play_configure(play, 1, "sigterm_shutdown graceful;", "");
    case_reload(play);
    give_signal(play, master, SIGTERM);
    ck_assert(!master->exited);
    give_signal(play, master, SIGTERM);
    expect_exit(master);
}
END_TEST

/* Workers drain without replacement; the master process goes on, and SIGHUP starts new workers. */
START_TEST(test_winch_drains)
{
    struct play *play = begin("");
    struct play_process *master = play_main(play);
    struct play_client *session = TAILQ_FIRST(&play->clients), *client;

    give_signal(play, master, SIGWINCH);
    ck_assert_str_eq(case_status(play, "state"), "not accepting");
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.state"), "draining");
    client = play_connect(play); /* waits in the queue of the listener */
    ck_assert_ptr_nonnull(client);
    play_pass(play, 5000);
    ck_assert(!client->replied && !session->ended);
    give_signal(play, master, SIGHUP);
    play_pass(play, 5000);
    ck_assert(client->replied && !session->ended);
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert_uint_eq(case_generation(play), 2);
    play_destroy(play);
}
END_TEST

/* The kernel sends SIGWINCH when a terminal is resized: not a command. */
START_TEST(test_winch_of_terminal)
{
    struct play *play = begin("");

    play_signal_from(play_main(play), SIGWINCH, SIGNALS_BY_KERNEL);
    play_settle(play);
    ck_assert_str_eq(case_status(play, "state"), "running");
    play_destroy(play);
}
END_TEST

START_TEST(test_winch_then_end)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGQUIT };
    struct play *play = begin("");
    struct play_process *master = play_main(play);

    give_signal(play, master, SIGWINCH);
    give_signal(play, master, signals[_i]);
    ck_assert_int_eq(master->exited, signals[_i] != SIGQUIT);
    play_client_close_all(play);
    play_settle(play);
    expect_exit(master);
}
END_TEST

START_TEST(test_logs_are_opened_again)
{
    struct play *play = begin("");
    char *text;

    ck_assert_int_eq(unlink(play_path(play, "error.log")), 0);
    give_signal(play, play_main(play), SIGUSR1);
    ck_assert(case_has(play, "error.log"));
    give_signal(play, play_main(play), SIGUSR1);
    text = play_read(play, "error.log");
    ck_assert_str_ne(text, "");
    free(text);
    play_destroy(play);
}
END_TEST

/* The log of the configuration cannot be opened any more: who has asked is told. */
START_TEST(test_log_cannot_be_opened_again)
{
    struct play *play = begin("");

    ck_assert_int_eq(unlink(play_path(play, "error.log")), 0);
    ck_assert_int_eq(symlink("nowhere/error.log", play_path(play, "error.log")), 0);
    case_expect_failure(case_command(play, "reopen"), "error.log");
    ck_assert_int_eq(unlink(play_path(play, "error.log")), 0);
    case_expect_ok(case_command(play, "reopen"));
    play_destroy(play);
}
END_TEST

/* A signal after each step of the start: the process exits, and leaves nothing. */
START_TEST(test_end_during_start)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGQUIT };
    struct play *play = play_create(1);
    struct play_process *master;

    play_configure(play, 2, "sigterm_shutdown graceful;", "");
    master = play_start(play);
    for (int i = 0; i < _i / 3; i++)
        play_step(play);
    play_signal(master, signals[_i % 3]);
    play_pass(play, 5000);
    ck_assert(master->exited);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

/* Before its service the daemon has nothing to drain: a graceful end by SIGTERM is an immediate
 * end. */
START_TEST(test_term_before_it_serves)
{
    struct play *play = play_create(1);
    struct play_process *master;

    play_configure(play, 2, "sigterm_shutdown graceful;", "");
    play->forked = never_ready;
    master = play_start(play);
    play_settle(play);
    ck_assert_uint_eq(play_count_workers(play), 2);
    give_signal(play, master, SIGTERM);
    ck_assert(master->exited);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_ends_at_once, 0, 2);
    tcase_add_loop_test(tcase, test_ends_gracefully, 0, 2);
    tcase_add_loop_test(tcase, test_second_signal, 0, sizeof(pairs) / sizeof(pairs[0]));
    tcase_add_test(tcase, test_reload_changes_sigterm);
    tcase_add_test(tcase, test_winch_drains);
    tcase_add_test(tcase, test_winch_of_terminal);
    tcase_add_loop_test(tcase, test_winch_then_end, 0, 3);
    tcase_add_test(tcase, test_logs_are_opened_again);
    tcase_add_test(tcase, test_log_cannot_be_opened_again);
    tcase_add_loop_test(tcase, test_end_during_start, 0, 3 * 14);
    tcase_add_test(tcase, test_term_before_it_serves);
}

TEST_MAIN("signals", add_tests)
