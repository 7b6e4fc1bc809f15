/* SPDX-License-Identifier: BSD-2-Clause */
/* A graceful end: the names left to the next start, the way back ("resume"), or a child for the
 * sessions ("leave"; the child is tested in tests/pool/test_orphans.c). */
#include "plays/case.h"

#include <signal.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define RELEASE_MS 2000 /* how long the end waits for workers with listeners */
#define AWAIT_MS 2500   /* how long a start waits for the pid file */

/* The name of the control socket of a quitting process. */
static const char *aside(const struct play_process *master, const char *name)
{
    static char text[64];

    snprintf(text, sizeof(text), "%s.quit.%d", name, (int)master->pid);
    return text;
}

/* Opens a session with the daemon now listening. */
static struct play_client *open_session(struct play *play)
{
    struct play_client *session = play_connect(play);

    ck_assert_ptr_nonnull(session);
    play_settle(play);
    ck_assert(session->replied);
    return session;
}

/* A daemon with a session, told to quit. */
static struct play *quit_one(struct play_process **master, struct play_client **session)
{
    struct play *play = case_start(1, "", "");

    *master = play_main(play);
    *session = open_session(play);
    case_expect_ok(case_command(play, "quit"));
    ck_assert(!(*master)->exited && !(*session)->ended);
    return play;
}

static void expect_exit(struct play_process *master, struct play_client *session)
{
    struct play *play = master->play;

    play_client_close(play, session);
    play_settle(play);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
}

static void expect_serving(struct play *play, const struct play_process *master)
{
    ck_assert_ptr_eq(play_main(play), master);
    ck_assert_str_eq(case_status(play, "state"), "running");
    play_client_close(play, open_session(play));
}

/* Names */

START_TEST(test_names_are_left_to_next_start)
{
    struct play_process *old, *next;
    struct play_client *session;
    struct play *play = quit_one(&old, &session);

    ck_assert(!case_has(play, "pid") && !case_has(play, "pid.lock"));
    ck_assert(!case_has(play, "control") && !case_has(play, "socket"));
    ck_assert(case_has(play, aside(old, "pid")) && case_has(play, aside(old, "control")));
    ck_assert_str_eq(case_status_of(play, aside(old, "control"), "state"), "quitting");
    ck_assert_str_eq(
        case_status_of(play, aside(old, "control"), "generations.0.state"), "draining");
    next = play_start(play);
    play_settle(play);
    expect_serving(play, next);
    ck_assert(!session->ended);
    expect_exit(old, session);
    ck_assert(!case_has(play, aside(old, "pid")) && !case_has(play, aside(old, "control")));
    expect_serving(play, next);
    play_signal(next, SIGINT);
    play_settle(play);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

START_TEST(test_several_drain_at_once)
{
    struct play *play = case_start(1, "", "");
    struct play_process *masters[3];
    struct play_client *sessions[3];

    for (int i = 0; i < 3; i++) {
        masters[i] = play_main(play);
        sessions[i] = open_session(play);
        case_expect_ok(case_command(play, "quit"));
        play_start(play);
        play_settle(play);
    }
    ck_assert_uint_eq(play_count_masters(play), 4);
    expect_exit(masters[1], sessions[1]);
    ck_assert(!masters[0]->exited && !masters[2]->exited);
    expect_exit(masters[2], sessions[2]);
    expect_exit(masters[0], sessions[0]);
    expect_serving(play, play_main(play));
    play_destroy(play);
}
END_TEST

/* A deaf worker holds its listeners: the reply and the lock wait for the worker, at most two
 * seconds. */
START_TEST(test_quit_waits_for_listeners)
{
    struct play *play = case_start(2, "", "");
    struct play_worker *deaf = play_worker_find(play, 0);
    struct play_process *master = play_main(play);
    struct play_client *client;

    deaf->deaf = true;
    client = case_command(play, "quit");
    ck_assert(!case_has(play, "pid") && case_has(play, "pid.lock"));
    if (_i == 0) {
        play_pass(play, RELEASE_MS - 1);
        case_expect_waiting(client);
        play_pass(play, 1);
    } else {
        play_pass(play, 700);
        case_expect_waiting(client);
        deaf->keeps_sessions = true;
        deaf->deaf = false;
        play_settle(play);
    }
    case_expect_ok(client);
    ck_assert(!case_has(play, "pid.lock"));
    ck_assert(!master->exited);
    play_destroy(play);
}
END_TEST

/* A start waits for a taken lock, for a while. */
START_TEST(test_start_waits_for_lock)
{
    struct play *play = case_start(1, "", "");
    struct play_process *old = play_main(play), *next;

    play_signal(old, SIGSTOP); /* the signal waits */
    play_signal(old, SIGQUIT);
    next = play_start(play);
    play_pass(play, AWAIT_MS / 2);
    ck_assert(!next->exited);
    ck_assert(play_has_logged(play, "has the pid file"));
    if (_i == 0) {
        play_signal(old, SIGCONT);
        play_pass(play, 100);
        expect_serving(play, next);
    } else {
        play_pass(play, AWAIT_MS);
        ck_assert(next->exited);
        ck_assert_int_eq(play_exit_code(next), EX_TEMPFAIL);
        play_signal(old, SIGCONT);
        play_settle(play);
        case_expect_nothing(play);
    }
    play_destroy(play);
}
END_TEST

/* A killed process leaves its names, and the next start removes the names. */
START_TEST(test_killed_one_leaves_its_names)
{
    struct play_process *old, *next;
    struct play_client *session;
    struct play *play = quit_one(&old, &session);

    play_signal(old, SIGKILL);
    play_settle(play);
    ck_assert(case_has(play, aside(old, "pid")));
    play_client_close(play, session);
    play_settle(play);
    next = play_start(play);
    play_settle(play);
    ck_assert(!case_has(play, aside(old, "pid")) && !case_has(play, aside(old, "control")));
    play_signal(next, SIGINT);
    play_settle(play);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* Commands to a process that quits */

START_TEST(test_commands_while_quitting)
{
    static const struct {
        const char *command, *says; /* NULL: it is carried out */
        bool ends;
    } rows[] = { { "quit", NULL, false }, { "reload", "the daemon is ending", false },
        { "upgrade", "the daemon is ending", false }, { "reopen", NULL, false },
        { "stop", NULL, true } };
    struct play_process *master;
    struct play_client *session, *client;
    struct play *play = quit_one(&master, &session);

    client = case_command_to(play, aside(master, "control"), rows[_i].command);
    if (rows[_i].says == NULL)
        case_expect_ok(client);
    else
        case_expect_failure(client, rows[_i].says);
    ck_assert_int_eq(master->exited, rows[_i].ends);
    ck_assert_int_eq(session->ended, rows[_i].ends);
    if (!rows[_i].ends)
        expect_exit(master, session);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* Clients who have asked for a quit stay connected until the process has exited. */
START_TEST(test_client_of_quit_sees_the_exit)
{
    struct play *play = case_start(1, "", "");
    struct play_client *session = open_session(play), *client = case_command(play, "quit");

    case_expect_ok(client);
    play_pass(play, 1000);
    ck_assert(!client->ended);
    play_client_close(play, session);
    play_settle(play);
    ck_assert(client->ended);
    play_destroy(play);
}
END_TEST

/* Resume */

static void resume(struct play_process *master, bool by_command, struct play_client **client)
{
    struct play *play = master->play;

    *client = NULL;
    if (by_command)
        *client = case_command_to(play, aside(master, "control"), "resume");
    else
        play_signal(master, SIGHUP);
    play_settle(play);
}

START_TEST(test_resume)
{
    struct play_process *master;
    struct play_client *session, *client;
    struct play *play = quit_one(&master, &session);

    for (unsigned i = 0; i < 3; i++) {
        resume(master, _i == 0, &client);
        play_pass(play, 1000);
        if (client != NULL)
            case_expect_ok(client);
        expect_serving(play, master);
        ck_assert(!case_has(play, aside(master, "pid")));
        ck_assert_uint_eq(case_generation(play), 2 + i);
        ck_assert(!session->ended);
        if (i < 2)
            case_expect_ok(case_command(play, "quit"));
    }
    case_reload(play);
    play_signal(master, SIGINT);
    play_settle(play);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

START_TEST(test_resume_without_quit)
{
    struct play *play = case_start(1, "", "");

    case_expect_failure(case_command(play, "resume"), "the daemon is not shutting down");
    expect_serving(play, play_main(play));
    play_destroy(play);
}
END_TEST

/* The configuration has a mistake, or a worker does not start: the end goes on, and may be taken
 * back later. */
START_TEST(test_resume_fails)
{
    struct play_process *master;
    struct play_client *session, *client;
    struct play *play = quit_one(&master, &session);

    if (_i == 0)
        play_configure(play, 1, "mistake;", "");
    else
        play->failures.fork = 1;
    resume(master, true, &client);
    case_expect_failure(client, _i == 0 ? "mistake" : "fork() failed");
    ck_assert(play_has_logged(play, "resume failed"));
    ck_assert(!case_has(play, "pid") && !case_has(play, "pid.lock") && !case_has(play, "control"));
    ck_assert_str_eq(case_status_of(play, aside(master, "control"), "state"), "quitting");
    play_configure(play, 1, "", "");
    resume(master, true, &client);
    play_pass(play, 1000);
    case_expect_ok(client);
    expect_serving(play, master);
    play_destroy(play);
}
END_TEST

/* Another process serves by then. */
START_TEST(test_resume_beside_next_start)
{
    struct play_process *old, *next;
    struct play_client *session, *client;
    struct play *play = quit_one(&old, &session);
    char says[64];

    next = play_start(play);
    play_settle(play);
    snprintf(says, sizeof(says), "master process %d runs", (int)next->pid);
    resume(old, true, &client);
    case_expect_failure(client, says);
    resume(old, false, &client);
    ck_assert(!session->ended && !old->exited);
    expect_serving(play, next);
    play_signal(next, SIGQUIT);
    play_settle(play);
    ck_assert(next->exited);
    resume(old, true, &client);
    play_pass(play, 1000);
    case_expect_ok(client);
    expect_serving(play, old);
    play_destroy(play);
}
END_TEST

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

/* A second end while the new workers start: by SIGQUIT the first goes on. */
START_TEST(test_resume_is_given_up)
{
    static const int signals[] = { SIGQUIT, SIGINT, SIGTERM };
    struct play_process *master;
    struct play_client *session, *client;
    struct play *play = quit_one(&master, &session);

    play->forked = never_ready;
    resume(master, true, &client);
    case_expect_waiting(client);
    play_signal(master, signals[_i]);
    play_settle(play);
    ck_assert(client->replied && !play_client_is_ok(client));
    ck_assert_int_eq(master->exited, _i != 0);
    ck_assert_int_eq(session->ended, _i != 0);
    play->forked = NULL;
    if (_i == 0) {
        ck_assert(!case_has(play, "pid") && !case_has(play, "control"));
        resume(master, true, &client);
        play_pass(play, 1000);
        case_expect_ok(client);
        expect_serving(play, master);
    } else {
        case_expect_nothing(play);
    }
    play_destroy(play);
}
END_TEST

/* The last session ends while the new workers start: the process goes on. */
START_TEST(test_resume_outlives_last_session)
{
    struct play_process *master;
    struct play_client *session, *client;
    struct play *play = quit_one(&master, &session);

    play->forked = never_ready;
    resume(master, true, &client);
    play_client_close(play, session);
    play_settle(play);
    ck_assert(!master->exited);
    play_worker_find(play, 0)->never_ready = false;
    play_pass(play, 1000);
    case_expect_ok(client);
    expect_serving(play, master);
    play_destroy(play);
}
END_TEST

/* The signal comes together with the end of the last worker. */
START_TEST(test_resume_with_the_last_exit)
{
    struct play_process *master;
    struct play_client *session;
    struct play *play = quit_one(&master, &session);

    play_client_close(play, session);
    while (play_count_workers(play) > 0)
        ck_assert(play_step(play));
    play_signal(master, SIGHUP);
    play_pass(play, 1000);
    ck_assert(!master->exited);
    expect_serving(play, master);
    play_destroy(play);
}
END_TEST

/* A reload that was asked for before the quit is not a resume. */
START_TEST(test_reload_before_quit_is_dropped)
{
    struct play *play = case_start(1, "", "");
    struct play_process *master = play_main(play);
    struct play_client *session = open_session(play), *client = NULL;

    if (_i == 0) {
        play_signal(master, SIGHUP);
        play_signal(master, SIGQUIT);
    } else {
        client = play_control(play, "control", "reload");
        play_control(play, "control", "quit");
    }
    play_pass(play, 3000);
    ck_assert(!play_has_logged(play, "resuming"));
    ck_assert(client == NULL || client->replied);
    ck_assert_str_eq(case_status_of(play, aside(master, "control"), "state"), "quitting");
    expect_exit(master, session);
    play_destroy(play);
}
END_TEST

/* Leave */

/* A stop together with the leave, or after it, ends all at once. */
START_TEST(test_leave_and_stop)
{
    struct play *play = case_start(1, "", "");
    struct play_process *master = play_main(play);
    struct play_client *session = open_session(play);

    if (_i == 2) /* both commands are found by one wake-up */
        play_control(play, "control", "stop");
    play_control(play, "control", "leave");
    if (_i == 0)
        play_control(play, "control", "stop");
    else if (_i == 1)
        play_signal(master, SIGINT);
    play_pass(play, 1000);
    ck_assert(session->ended);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

START_TEST(test_leave_beside_another_master)
{
    struct play *play = case_start(1, "", "");

    case_expect_ok(case_command(play, "upgrade"));
    case_expect_failure(
        case_command(play, "leave"), "another master process runs, and the upgrade");
    ck_assert_uint_eq(play_count_masters(play), 2);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_names_are_left_to_next_start);
    tcase_add_test(tcase, test_several_drain_at_once);
    tcase_add_loop_test(tcase, test_quit_waits_for_listeners, 0, 2);
    tcase_add_loop_test(tcase, test_start_waits_for_lock, 0, 2);
    tcase_add_test(tcase, test_killed_one_leaves_its_names);
    tcase_add_loop_test(tcase, test_commands_while_quitting, 0, 5);
    tcase_add_test(tcase, test_client_of_quit_sees_the_exit);
    tcase_add_loop_test(tcase, test_resume, 0, 2);
    tcase_add_test(tcase, test_resume_without_quit);
    tcase_add_loop_test(tcase, test_resume_fails, 0, 2);
    tcase_add_test(tcase, test_resume_beside_next_start);
    tcase_add_loop_test(tcase, test_resume_is_given_up, 0, 3);
    tcase_add_test(tcase, test_resume_outlives_last_session);
    tcase_add_test(tcase, test_resume_with_the_last_exit);
    tcase_add_loop_test(tcase, test_reload_before_quit_is_dropped, 0, 2);
    tcase_add_loop_test(tcase, test_leave_and_stop, 0, 3);
    tcase_add_test(tcase, test_leave_beside_another_master);
}

TEST_MAIN("quit", add_tests)
