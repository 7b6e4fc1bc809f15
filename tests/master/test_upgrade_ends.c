/* SPDX-License-Identifier: BSD-2-Clause */
/* Upgrades in which a process ends, or both, by any signal, in any phase and in any order: the
 * remaining process serves and has the names, or nothing is left. */
#include "net/address_parse.h"
#include "plays/case.h"
#include "plays/sessions.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define KILL_MS 2000
#define CLIENTS 32
#define OLD "control.oldbin" /* the control socket of the old process */

static struct play *start(void)
{
    return case_start(2, "worker_start_timeout 4s;", "");
}

/* Starts a new process beside a daemon. */
static struct play *upgrade(struct play_process **old, struct play_process **new)
{
    struct play *play = start();

    *old = play_main(play);
    *new = case_upgrade(play);
    return play;
}

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

static const int ending[] = { SIGQUIT, SIGTERM, SIGINT };

/* The old process is told to end during the start of the new process: both end. */
START_TEST(test_end_while_the_new_one_starts)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;
    struct play_client *client;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    new = case_find_other(old);
    new->kept = true;
    if (_i >= 3)
        play_signal(new, SIGSTOP);
    case_signal(old, ending[_i % 3]);
    if (_i >= 3) {
        ck_assert(!old->exited);
        play_pass(play, KILL_MS);
    }
    play_pass(play, 1000);
    ck_assert(client->replied || client->ended);
    ck_assert(!play_client_is_ok(client));
    ck_assert(new->exited && old->exited);
    ck_assert_int_eq(play_exit_code(old), 0);
    play_pass(play, 60000); /* workers of a killed new process end by themselves */
    if (_i < 3)
        case_expect_nothing(play);
    else
        ck_assert_uint_eq(play_count_masters(play), 0);
    play_destroy(play);
}
END_TEST

/* Ends the old process after every step of the new process's start. */
START_TEST(test_old_process_is_killed_during_start)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;

    play_signal(old, SIGUSR2);
    while ((new = case_find_other(old)) == NULL)
        ck_assert(play_step(play));
    for (int i = 0; i < _i; i++)
        play_step(play);
    play_signal(old, SIGKILL);
    play_settle(play);
    play_pass(play, 1000);
    ck_assert(!new->exited);
    ck_assert_ptr_eq(play_main(play), new);
    ck_assert_uint_eq(play_count_workers(play), 2);
    play_destroy(play);
}
END_TEST

/* Either process is told to end after every step of an upgrade: the survivor serves and has the
 * names; no process survives if the old process was told before the new process served. */
START_TEST(test_one_ends_in_each_step)
{
    bool ends_old = _i % 2 == 0;
    int number = ending[_i / 2 % 3], steps = _i / 6;
    struct play *play = start();
    struct play_process *old = play_main(play), *new, *left;
    struct play_client *client = play_control(play, "control", "upgrade");

    while ((new = case_find_other(old)) == NULL)
        ck_assert(play_step(play));
    new->kept = true;
    for (int i = 0; i < steps; i++)
        play_step(play);
    play_signal(ends_old ? old : new, number);
    play_pass(play, 5000);
    ck_assert(client->replied || client->ended);
    ck_assert((ends_old ? old : new)->exited);
    left = ends_old ? new : old;
    if (!left->exited)
        case_expect_alone(left);
    else
        ck_assert(ends_old);
    if (!left->exited)
        case_signal(left, SIGINT);
    play_pass(play, 5000);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* Two signals end the two processes, in either order or at once. */
START_TEST(test_both_end)
{
    int first = ending[_i % 3], second = ending[_i / 3 % 3], order = _i / 9;
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);

    play_signal(order % 2 == 0 ? old : new, first);
    if (order < 2)
        play_settle(play);
    play_signal(order % 2 == 0 ? new : old, second);
    play_pass(play, 5000);
    ck_assert(old->exited && new->exited);
    ck_assert_int_eq(play_exit_code(old), 0);
    ck_assert_int_eq(play_exit_code(new), 0);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* The sessions of this process's workers end. */
static void end_sessions(struct play_process *master)
{
    struct play *play = master->play;
    struct play_process *process;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->worker != NULL && process->parent == master)
            process->worker->keeps_sessions = false;
    play_pass(play, 1000);
}

/* Two processes quit, and have sessions: the next start serves at once, and either ends first. */
START_TEST(test_both_quit_with_sessions)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new, *next;

    for (unsigned i = 0; i < 2; i++)
        play_worker_find(play, i)->keeps_sessions = true;
    case_expect_ok(case_command(play, "upgrade"));
    new = play_main(play);
    new->kept = true;
    for (unsigned i = 0; i < 2; i++)
        play_worker_find(play, i)->keeps_sessions = true;
    case_signal(_i % 2 == 0 ? old : new, SIGQUIT);
    case_signal(_i % 2 == 0 ? new : old, SIGQUIT);
    ck_assert(!old->exited && !new->exited);
    ck_assert(!case_has(play, "pid") && !case_has(play, "control") && !case_has(play, OLD));
    next = play_start(play);
    play_settle(play);
    ck_assert_ptr_eq(play_main(play), next);
    ck_assert(case_is_served(play));
    ck_assert_uint_eq(play_count_masters(play), 3);
    end_sessions(_i / 2 == 0 ? old : new);
    ck_assert_int_eq(old->exited, _i / 2 == 0);
    ck_assert_int_eq(new->exited, _i / 2 == 1);
    end_sessions(_i / 2 == 0 ? new : old);
    ck_assert(old->exited && new->exited);
    case_expect_alone(next);
    play_destroy(play);
}
END_TEST

/* A process drains, and the second is killed: then the first is alone, and leaves the names as
 * well. */
START_TEST(test_other_is_killed_while_one_drains)
{
    struct play_process *old, *new, *drains;
    struct play *play = upgrade(&old, &new);
    struct play_process *process;
    char name[64];

    drains = _i == 0 ? new : old;
    TAILQ_FOREACH (process, &play->processes, link)
        if (process->worker != NULL && process->parent == drains)
            process->worker->keeps_sessions = true;
    case_signal(drains, SIGQUIT);
    play_kill(_i == 0 ? old : new, SIGKILL);
    play_pass(play, 3000);
    ck_assert(!drains->exited);
    snprintf(name, sizeof(name), "control.quit.%d", (int)drains->pid);
    ck_assert_str_eq(case_status_of(play, name, "state"), "quitting");
    ck_assert(!case_has(play, "pid") && !case_has(play, "control"));
    play_start(play);
    play_pass(play, 3000);
    ck_assert(case_is_served(play));
    play_destroy(play);
}
END_TEST

/* The old process, draining beside the new process, is not resumed. */
START_TEST(test_old_one_is_not_resumed)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *session = play_connect(play);

    play_settle(play);
    case_expect_ok(case_command(play, "upgrade"));
    case_signal(old, SIGQUIT);
    case_expect_failure(case_command_to(play, OLD, "resume"), "runs");
    case_signal(old, SIGHUP);
    ck_assert(!session->ended);
    ck_assert_uint_eq(play_count_masters(play), 2);
    play_client_close(play, session);
    play_settle(play);
    ck_assert(old->exited);
    play_destroy(play);
}
END_TEST

/* The old process has drained, and its reload has committed but does not serve yet when the new
 * process ends: the reload's workers serve, and no others. A session may be left. */
START_TEST(test_end_beside_a_committed_reload)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;
    struct play_client *session = _i >= 4 ? play_connect(play) : NULL;
    struct play_worker *worker;

    play_settle(play);
    new = case_upgrade(play);
    case_signal(old, SIGWINCH);
    play_signal(old, SIGHUP);
    do {
        ck_assert(play_step(play));
        worker = play_worker_find(play, 0);
    } while (worker->phase != PLAY_WORKER_READY);
    worker->deaf = true; /* MESSAGE_ACCEPT is not heard */
    play_settle(play);
    ck_assert_uint_eq(play_worker_find(play, 1)->phase, PLAY_WORKER_ACCEPTS);
    if (_i % 4 == 3)
        play_kill(new, SIGKILL);
    else
        play_signal(new, ending[_i % 4]);
    play_pass(play, 1000);
    ck_assert(new->exited);
    play_worker_recover(worker);
    play_pass(play, 2000);
    if (session != NULL) {
        ck_assert(!session->ended);
        play_client_close(play, session);
        play_settle(play);
    }
    case_expect_alone(old);
    ck_assert_uint_eq(case_generation(play), 2);
    play_destroy(play);
}
END_TEST

/* Clients of port 7000 come; the kernel distributes the clients to the queues. */
static void open_sessions(struct play *play, struct play_sessions *sessions)
{
    struct address address;
    char name[64];

    snprintf(name, sizeof(name), "%s:7000", play->address);
    ck_assert_ptr_null(address_parse(name, 0, &address));
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct play_session *session = play_session_open(play, sessions, &address);

        ck_assert_ptr_nonnull(session);
        play_session_send(session, 10);
    }
}

static void expect_all_served(struct play_sessions *sessions)
{
    for (unsigned i = 0; i < sessions->n; i++) {
        play_session_receive(&sessions->list[i]);
        ck_assert(!sessions->list[i].ended && play_session_is_served(&sessions->list[i]));
    }
    play_session_close_all(sessions);
}

/* Queues of a single process are given to the second at a quit, during the start of a reload's
 * workers there: clients in the queues are served after the start, or its failure. */
START_TEST(test_queues_come_while_a_reload_starts)
{
    static const char queues[] = "server { listen $A:7000 reuseport; echo; }";
    static struct play_sessions sessions;
    struct play *play = case_start(1, "worker_start_timeout 4s;", queues);
    struct play_process *old = play_main(play), *new = case_upgrade(play);
    bool old_gives = _i % 2 == 0, fails = _i / 2 == 1;

    play_configure(play, 4, "worker_start_timeout 4s;", queues);
    case_reload_of(play, old_gives ? OLD : "control");
    play_configure(play, 1, "worker_start_timeout 4s;", queues);
    play->forked = never_ready;
    case_signal(old_gives ? new : old, SIGHUP);
    play->forked = NULL;
    case_signal(old_gives ? old : new, SIGQUIT);
    ck_assert((old_gives ? old : new)->exited);
    open_sessions(play, &sessions);
    if (!fails)
        play_worker_recover(play_worker_find(play, 0));
    play_pass(play, 10000);
    expect_all_served(&sessions);
    play_destroy(play);
}
END_TEST

/* In a call of the master process: has the lock of the pid file held by one more descriptor. */
static void hold_lock(struct play *play, struct play_process *process)
{
    struct stat lock, st;
    int fd = 0;

    (void)process;
    play->called = NULL;
    ck_assert_int_eq(stat(play_path(play, "pid.lock"), &lock), 0);
    while (fstat(fd, &st) == -1 || st.st_ino != lock.st_ino || st.st_dev != lock.st_dev)
        ck_assert_int_lt(++fd, 1000);
    ck_assert_int_ne(dup(fd), -1);
}

/* The remaining process quits while a foreign descriptor holds the lock, like a just forked
 * worker's: the lock's file goes all the same. */
START_TEST(test_lock_of_the_one_that_is_left)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);

    case_signal(_i == 0 ? new : old, SIGQUIT);
    play_pass(play, 1000);
    play->called = hold_lock;
    case_signal(_i == 0 ? old : new, SIGQUIT);
    ck_assert_ptr_null(play->called);
    play_pass(play, 1000);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_end_while_the_new_one_starts, 0, 6);
    tcase_add_loop_test(tcase, test_old_process_is_killed_during_start, 0, 12);
    tcase_add_loop_test(tcase, test_one_ends_in_each_step, 0, 6 * 24);
    tcase_add_loop_test(tcase, test_both_end, 0, 9 * 4);
    tcase_add_loop_test(tcase, test_both_quit_with_sessions, 0, 4);
    tcase_add_loop_test(tcase, test_lock_of_the_one_that_is_left, 0, 2);
    tcase_add_loop_test(tcase, test_other_is_killed_while_one_drains, 0, 2);
    tcase_add_test(tcase, test_old_one_is_not_resumed);
    tcase_add_loop_test(tcase, test_end_beside_a_committed_reload, 0, 8);
    tcase_add_loop_test(tcase, test_queues_come_while_a_reload_starts, 0, 4);
}

TEST_MAIN("upgrade_ends", add_tests)
