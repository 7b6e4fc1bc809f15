/* SPDX-License-Identifier: BSD-2-Clause */
/* Upgrades: another master process beside the first, each way in which a start of it fails, and what
 * follows when one of the two ends, or both, in each phase. */
#include "plays/case.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define START_MS 4000 /* worker_start_timeout */
#define GRACE_MS 5000
#define KILL_MS 2000
#define OLD "control.oldbin"

static struct play *start(void)
{
    return case_start(2, "worker_start_timeout 4s;", "");
}

/* Finds the master process that is not this one. */
static struct play_process *find_other(struct play *play, const struct play_process *master)
{
    struct play_process *process;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->is_master && !process->exited && process != master)
            return process;
    return NULL;
}

/* Starts a new process beside a daemon, which serves. */
static struct play *upgrade(struct play_process **old, struct play_process **new)
{
    struct play *play = start();

    *old = play_main(play);
    case_expect_ok(case_command(play, "upgrade"));
    *new = play_main(play);
    (*new)->kept = true;
    ck_assert_ptr_ne(*new, *old);
    return play;
}

static bool is_served(struct play *play)
{
    struct play_client *client = play_connect(play);
    bool served;

    if (client == NULL)
        return false;
    play_settle(play);
    served = client->replied;
    play_client_close(play, client);
    return served;
}

/* This process alone serves, and has the names. */
static void expect_alone(struct play_process *master)
{
    struct play *play = master->play;

    ck_assert_uint_eq(play_count_masters(play), 1);
    ck_assert_ptr_eq(play_main(play), master);
    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_str_eq(case_status(play, "upgrade"), "null");
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert(is_served(play));
}

static void give_signal(struct play *play, struct play_process *process, int number)
{
    play_signal(process, number);
    play_settle(play);
}

/* Forward and back */

START_TEST(test_new_binary_serves_beside)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);

    ck_assert_uint_eq(play_count_masters(play), 2);
    ck_assert_uint_eq(play_count_workers(play), 4);
    ck_assert_str_eq(case_status(play, "upgrade.role"), "new");
    ck_assert_int_eq(atoi(case_status(play, "upgrade.other")), old->pid);
    ck_assert_str_eq(case_status_of(play, OLD, "upgrade.role"), "old");
    ck_assert_str_eq(case_status_of(play, OLD, "upgrade.serves"), "true");
    ck_assert_int_eq(atoi(case_status_of(play, OLD, "upgrade.other")), new->pid);
    ck_assert(is_served(play));
    play_destroy(play);
}
END_TEST

/* The old process lets its sessions end. */
START_TEST(test_forward)
{
    struct play *play = start();
    struct play_client *session = play_connect(play);
    struct play_process *old = play_main(play), *new;

    play_settle(play);
    case_expect_ok(case_command(play, "upgrade"));
    new = play_main(play);
    give_signal(play, old, SIGQUIT);
    ck_assert(!old->exited && !session->ended);
    ck_assert(is_served(play));
    play_client_close(play, session);
    play_settle(play);
    ck_assert(old->exited);
    ck_assert_int_eq(play_exit_code(old), 0);
    expect_alone(new);
    ck_assert(!case_has(play, OLD) && !case_has(play, "pid.oldbin"));
    give_signal(play, new, SIGINT);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* The new process is told to end, by each signal. */
START_TEST(test_back)
{
    static const int signals[] = { SIGQUIT, SIGTERM, SIGINT, SIGKILL, SIGSEGV };
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);
    bool killed = _i >= 3;

    if (killed)
        play_kill(new, signals[_i]);
    else
        play_signal(new, signals[_i]);
    play_pass(play, 1000);
    ck_assert(new->exited);
    ck_assert_int_eq(play_exit_code(new), killed ? 128 + signals[_i] : 0);
    expect_alone(old);
    ck_assert(!case_has(play, OLD) && !case_has(play, "pid.oldbin"));
    case_expect_ok(case_command(play, "upgrade")); /* once more */
    play_destroy(play);
}
END_TEST

/* Forward and back again and again: no descriptor is left in either process. */
START_TEST(test_nothing_is_left)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);
    unsigned descriptors;

    give_signal(play, old, SIGQUIT);
    descriptors = play_count_descriptors(new);
    for (int i = 0; i < 10; i++) {
        struct play_process *other;

        case_expect_ok(case_command(play, "upgrade"));
        other = play_main(play);
        give_signal(play, i % 2 == 0 ? other : new, SIGQUIT);
        if (i % 2 != 0)
            new = other;
        play_client_close_all(play);
        play_pass(play, 1000);
        expect_alone(new);
        play_settle(play);
        ck_assert_uint_le(play_count_descriptors(new), descriptors);
    }
    play_destroy(play);
}
END_TEST

/* nginx's way: the old workers drain, and fresh ones take over again. */
START_TEST(test_back_with_fresh_workers)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);

    give_signal(play, old, SIGWINCH);
    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_str_eq(case_status_of(play, OLD, "generations.0.state"), "draining");
    give_signal(play, old, SIGHUP);
    play_pass(play, 1000);
    ck_assert_uint_eq(play_count_workers(play), 4);
    ck_assert_ptr_eq(play_main(play), new); /* whose names they are yet */
    give_signal(play, new, SIGQUIT);
    expect_alone(old);
    play_destroy(play);
}
END_TEST

/* The new process dies when the old one's workers have drained; a session may be left. */
START_TEST(test_drained_old_one_comes_back)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;
    struct play_client *session = NULL;

    if (_i == 1) {
        session = play_connect(play);
        play_settle(play);
    }
    case_expect_ok(case_command(play, "upgrade"));
    new = play_main(play);
    give_signal(play, old, SIGWINCH);
    play_kill(new, SIGKILL);
    play_pass(play, 2000);
    if (session != NULL) {
        ck_assert(!session->ended);
        play_client_close(play, session);
        play_settle(play);
    }
    expect_alone(old);
    play_destroy(play);
}
END_TEST

/* Failures of the new process's start */

static void expect_rolled_back(
    struct play_process *old, const struct play_client *client, const char *says)
{
    struct play *play = old->play;
    struct play_process *process;

    case_expect_failure(client, says);
    ck_assert(play_has_logged(play, "upgrade failed, process"));
    TAILQ_FOREACH (process, &play->processes, link)
        if (process->worker != NULL)
            process->worker->never_ready = false;
    play_pass(play, 3000); /* workers of a process that was killed end */
    expect_alone(old);
    ck_assert(!case_has(play, OLD) && !case_has(play, "pid.oldbin"));
    play_configure(play, 2, "", "");
    case_expect_ok(case_command(play, "upgrade"));
    play_destroy(play);
}

START_TEST(test_mistake_of_the_configuration)
{
    struct play *play = start();
    struct play_process *old = play_main(play);

    play_configure(play, 2, "mistake;", "");
    expect_rolled_back(old, case_command(play, "upgrade"), "mistake");
}
END_TEST

START_TEST(test_address_of_the_new_one_is_in_use)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *client;
    int fd = case_listen(play, "taken");

    play_configure(play, 2, "", "server { listen unix:$D/taken; echo; }");
    client = case_command(play, "upgrade");
    play_pass(play, 5000);
    close(fd);
    expect_rolled_back(old, client, "the socket is in use");
}
END_TEST

START_TEST(test_single_process_is_refused)
{
    struct play *play = start();
    struct play_process *old = play_main(play);

    play_configure(play, 2, "master_process off;", "");
    expect_rolled_back(
        old, case_command(play, "upgrade"), "cannot be changed for a configuration with");
}
END_TEST

/* Calls of the old process and of its child. */
START_TEST(test_call_fails)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    const char *says = "fork()";

    if (_i == 0) {
        play->failures.fork = 1;
    } else if (_i == 1) {
        play->failures.execute = 1;
        says = "execve() \\\"/forkbeard\\\" failed (2: No such file";
    }
    expect_rolled_back(old, case_command(play, "upgrade"), says);
}
END_TEST

static void fail_start(struct play *play, struct play_process *process)
{
    process->worker->fails_start = true;
    play->forked = NULL;
}

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

START_TEST(test_worker_of_the_new_one_does_not_start)
{
    struct play *play = start();
    struct play_process *old = play_main(play);

    play->forked = fail_start;
    expect_rolled_back(old, case_command(play, "upgrade"), "a worker process could not start");
}
END_TEST

/* Workers of the new process are late: it fails by itself, and says why. */
START_TEST(test_worker_of_the_new_one_is_late)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *client;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    play->forked = NULL;
    play_pass(play, START_MS - 1);
    case_expect_waiting(client);
    ck_assert_str_eq(case_status(play, "state"), "upgrading");
    ck_assert_str_eq(case_status(play, "upgrade.serves"), "false");
    play_pass(play, 1);
    expect_rolled_back(old, client, "was not ready within worker_start_timeout");
}
END_TEST

/* The new process dies before it serves. */
START_TEST(test_new_one_dies)
{
    static const struct {
        int number;
        bool handled;
        const char *says;
    } rows[] = { { SIGSEGV, false, "exited on signal 11" },
        { SIGKILL, false, "exited on signal 9" }, { SIGTERM, true, "exited with code 1" },
        { SIGQUIT, true, "exited with code 1" } };
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *client;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    play->forked = NULL;
    if (rows[_i].handled)
        play_signal(find_other(play, old), rows[_i].number);
    else
        play_kill(find_other(play, old), rows[_i].number);
    play_settle(play);
    expect_rolled_back(old, client, rows[_i].says);
}
END_TEST

/* The new process does nothing at all: SIGTERM after its time, and SIGKILL two seconds later. */
START_TEST(test_new_one_hangs)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;
    struct play_client *client, *second;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    play->forked = NULL;
    new = find_other(play, old);
    new->kept = true;
    play_signal(new, SIGSTOP);
    play_pass(play, START_MS + GRACE_MS);
    ck_assert_int_ne(new->pending[SIGTERM], 0);
    case_expect_waiting(client);
    second = case_command(play, "upgrade");
    case_expect_failure(second, "is being rolled back");
    play_pass(play, KILL_MS - 1);
    ck_assert(!new->exited);
    play_pass(play, 1);
    ck_assert(new->exited);
    ck_assert_int_eq(play_exit_code(new), 128 + SIGKILL);
    expect_rolled_back(old, client, "did not serve within worker_start_timeout and 5000 ms");
}
END_TEST

START_TEST(test_second_upgrade_is_refused)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;
    struct play_client *client, *second;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    second = case_command(play, "upgrade");
    case_expect_failure(second, "does not serve yet; wait for it");
    case_expect_waiting(client);
    for (unsigned i = 0; i < 2; i++)
        play_worker_find(play, i)->never_ready = false;
    play_settle(play);
    case_expect_ok(client);
    new = play_main(play);
    case_expect_failure(case_command(play, "upgrade"), "the old binary, process");
    case_expect_failure(case_command_to(play, OLD, "upgrade"), "the new binary, process");
    play->forked = NULL;
    ck_assert_uint_eq(play_count_masters(play), 2);
    ck_assert(!old->exited && !new->exited);
    play_destroy(play);
}
END_TEST

/* The other process lets its sessions end: a further upgrade has to wait for that. */
START_TEST(test_upgrade_while_the_other_drains)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *session = play_connect(play);

    play_settle(play);
    case_expect_ok(case_command(play, "upgrade"));
    give_signal(play, old, SIGQUIT);
    ck_assert(!session->ended && !old->exited);
    case_expect_failure(case_command(play, "upgrade"), "still lets its sessions end");
    play_client_close(play, session);
    play_settle(play);
    case_expect_ok(case_command(play, "upgrade"));
    play_destroy(play);
}
END_TEST

/* Ends */

static const int ending[] = { SIGQUIT, SIGTERM, SIGINT };

/* The old process is told to end while the new one starts: it takes the new one along. */
START_TEST(test_end_while_the_new_one_starts)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;
    struct play_client *client;

    play->forked = never_ready;
    client = case_command(play, "upgrade");
    new = find_other(play, old);
    new->kept = true;
    if (_i >= 3)
        play_signal(new, SIGSTOP);
    give_signal(play, old, ending[_i % 3]);
    if (_i >= 3) {
        ck_assert(!old->exited);
        play_pass(play, KILL_MS);
    }
    play_pass(play, 1000);
    ck_assert(client->replied || client->ended);
    ck_assert(!play_client_is_ok(client));
    ck_assert(new->exited && old->exited);
    ck_assert_int_eq(play_exit_code(old), 0);
    play_pass(play, 60000); /* workers of the new one, if it was killed, end by themselves */
    if (_i < 3)
        case_expect_nothing(play);
    else
        ck_assert_uint_eq(play_count_masters(play), 0);
    play_destroy(play);
}
END_TEST

/* Ends the old process after each step of the new one's start. */
START_TEST(test_old_process_is_killed_during_start)
{
    struct play *play = start();
    struct play_process *old = play_main(play), *new;

    play_signal(old, SIGUSR2);
    while ((new = find_other(play, old)) == NULL)
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

/* Either process is told to end after each step of an upgrade: one of them is left, which serves and
 * has the names, or none, if the old one was told before the new one served. */
START_TEST(test_one_ends_in_each_step)
{
    bool ends_old = _i % 2 == 0;
    int number = ending[_i / 2 % 3], steps = _i / 6;
    struct play *play = start();
    struct play_process *old = play_main(play), *new, *left;
    struct play_client *client = play_control(play, "control", "upgrade");

    while ((new = find_other(play, old)) == NULL)
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
        expect_alone(left);
    else
        ck_assert(ends_old);
    if (!left->exited)
        give_signal(play, left, SIGINT);
    play_pass(play, 5000);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* Both are told to end, in either order or at once, each in another way. */
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

/* Both quit, and have sessions: the next start serves at once, and either ends first. */
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
    give_signal(play, _i % 2 == 0 ? old : new, SIGQUIT);
    give_signal(play, _i % 2 == 0 ? new : old, SIGQUIT);
    ck_assert(!old->exited && !new->exited);
    ck_assert(!case_has(play, "pid") && !case_has(play, "control") && !case_has(play, OLD));
    next = play_start(play);
    play_settle(play);
    ck_assert_ptr_eq(play_main(play), next);
    ck_assert(is_served(play));
    ck_assert_uint_eq(play_count_masters(play), 3);
    end_sessions(_i / 2 == 0 ? old : new);
    ck_assert_int_eq(old->exited, _i / 2 == 0);
    ck_assert_int_eq(new->exited, _i / 2 == 1);
    end_sessions(_i / 2 == 0 ? new : old);
    ck_assert(old->exited && new->exited);
    expect_alone(next);
    play_destroy(play);
}
END_TEST

/* One drains, and the other is killed: then it is alone, and leaves the names as well. */
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
    give_signal(play, drains, SIGQUIT);
    play_kill(_i == 0 ? old : new, SIGKILL);
    play_pass(play, 3000);
    ck_assert(!drains->exited);
    snprintf(name, sizeof(name), "control.quit.%d", (int)drains->pid);
    ck_assert_str_eq(case_status_of(play, name, "state"), "quitting");
    ck_assert(!case_has(play, "pid") && !case_has(play, "control"));
    play_start(play);
    play_pass(play, 3000);
    ck_assert(is_served(play));
    play_destroy(play);
}
END_TEST

/* The old process that drains beside the new one is not resumed. */
START_TEST(test_old_one_is_not_resumed)
{
    struct play *play = start();
    struct play_process *old = play_main(play);
    struct play_client *session = play_connect(play);

    play_settle(play);
    case_expect_ok(case_command(play, "upgrade"));
    give_signal(play, old, SIGQUIT);
    case_expect_failure(case_command_to(play, OLD, "resume"), "runs");
    give_signal(play, old, SIGHUP);
    ck_assert(!session->ended);
    ck_assert_uint_eq(play_count_masters(play), 2);
    play_client_close(play, session);
    play_settle(play);
    ck_assert(old->exited);
    play_destroy(play);
}
END_TEST

/* Reloads beside another process */

START_TEST(test_either_reloads)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);
    struct play_client *client = case_command_to(play, _i == 0 ? "control" : OLD, "reload");

    play_pass(play, 1000);
    case_expect_ok(client);
    ck_assert_uint_eq(play_count_workers(play), 4);
    ck_assert(is_served(play));
    give_signal(play, _i == 0 ? old : new, SIGQUIT);
    expect_alone(_i == 0 ? new : old);
    ck_assert_uint_eq(case_generation(play), 2);
    play_destroy(play);
}
END_TEST

#define OTHER_NAMES                                                                                \
    "daemon off; sandbox off; error_log $D/error.log info; pid $D/other.pid; worker_processes 2;"  \
    "control unix:$D/other; events { } stream { server { listen unix:$D/socket; echo; } }"

/* The names of the old process are the new one's meanwhile: they move when that has gone. The reload
 * has ended by then, or its workers still start. */
START_TEST(test_names_move_later)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);
    struct play_client *client;

    play_write(play, "conf", OTHER_NAMES);
    play->forked = _i == 1 ? never_ready : NULL;
    client = case_command_to(play, OLD, "reload");
    play->forked = NULL;
    play_pass(play, 1000);
    if (_i == 0)
        case_expect_ok(client);
    ck_assert(!case_has(play, "other.pid") && !case_has(play, "other"));
    give_signal(play, new, SIGQUIT);
    for (unsigned i = 0; i < 2; i++)
        play_worker_find(play, i)->never_ready = false;
    play_pass(play, 1000);
    case_expect_ok(client);
    ck_assert(case_has(play, "other.pid") && !case_has(play, "pid") && !case_has(play, "control"));
    ck_assert(!case_has(play, OLD) && !case_has(play, "pid.oldbin"));
    ck_assert_str_eq(case_status_of(play, "other", "state"), "running");
    give_signal(play, old, SIGINT);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* Another process has a name by then: all stay where they are, and the old process serves. */
START_TEST(test_names_that_cannot_move)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);
    struct play_client *client;

    play_write(play, "conf", OTHER_NAMES);
    play_write(play, "other", "no socket");
    client = case_command_to(play, OLD, "reload");
    play_pass(play, 1000);
    case_expect_ok(client);
    give_signal(play, new, SIGQUIT);
    ck_assert(play_has_logged(play, "exists and is not a socket"));
    ck_assert(!case_has(play, "other.pid") && !case_has(play, "other.pid.lock"));
    expect_alone(old);
    play_destroy(play);
}
END_TEST

/* The lock of the first name is the old process's alone when the new one has moved. */
START_TEST(test_names_of_the_new_one_move)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);
    struct play_client *client;

    play_write(play, "conf", OTHER_NAMES);
    client = case_command(play, "reload");
    play_pass(play, 1000);
    case_expect_ok(client);
    ck_assert(case_has(play, "other.pid"));
    give_signal(play, old, SIGQUIT);
    ck_assert(old->exited);
    ck_assert(!case_has(play, "pid") && !case_has(play, "pid.lock") && !case_has(play, "control"));
    ck_assert(!case_has(play, OLD) && !case_has(play, "pid.oldbin"));
    ck_assert_str_eq(case_status_of(play, "other", "state"), "running");
    give_signal(play, new, SIGINT);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* A third process is refused, whichever of the two has the pid file. */
START_TEST(test_third_process_is_refused)
{
    struct play_process *old, *new, *third;
    struct play *play = upgrade(&old, &new);
    char says[64];

    for (int i = 0; i < 2; i++) {
        third = play_start(play);
        play_pass(play, 5000);
        ck_assert(third->exited);
        ck_assert_int_eq(play_exit_code(third), EX_TEMPFAIL);
        snprintf(
            says, sizeof(says), "another master process %d runs", (int)(i == 0 ? new : old)->pid);
        ck_assert(play_has_logged(play, says));
        ck_assert(is_served(play));
        if (i == 0)
            give_signal(play, new, SIGQUIT);
    }
    expect_alone(old);
    play_destroy(play);
}
END_TEST

/* Paths that only one of the two has go with it; that of both stays. */
START_TEST(test_paths_of_one)
{
    struct play *play = case_start(2, "", "server { listen unix:$D/first; echo; }");
    struct play_process *old = play_main(play), *new;

    play_configure(play, 2, "", "server { listen unix:$D/second; echo; }");
    case_expect_ok(case_command(play, "upgrade"));
    new = play_main(play);
    ck_assert(case_has(play, "first") && case_has(play, "second"));
    give_signal(play, _i == 0 ? old : new, SIGQUIT);
    ck_assert_int_eq(case_has(play, "first"), _i == 1);
    ck_assert_int_eq(case_has(play, "second"), _i == 0);
    ck_assert(is_served(play));
    give_signal(play, _i == 0 ? new : old, SIGINT);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

#define SECOND "server { listen unix:$D/second; echo; }"

static void never_accepts(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_accepts = true;
}

/* A reload of the new process gives a path up that the old process has too. Its workers crash before
 * they accept, and no way leads back, because the old process has the path: the old process learns
 * that it has the path alone, and removes it when it ends. */
START_TEST(test_path_is_removed_after_a_failed_way_back)
{
    struct play *play = case_start(2, "", SECOND);
    struct play_process *old = play_main(play);
    struct play_client *client;

    case_expect_ok(case_command(play, "upgrade"));
    play_configure(play, 2, "", "");
    play->forked = never_accepts;
    client = case_command(play, "reload");
    play->forked = NULL;
    for (unsigned i = 0; i < 2; i++)
        play_worker_crash(play_worker_find(play, i), SIGSEGV);
    play_pass(play, 10000);
    case_expect_failure(client, "\"in_force\":\"new\"");
    ck_assert_int_eq(access(play_path(play, "second"), F_OK), 0);
    play_signal(old, SIGQUIT);
    play_settle(play);
    ck_assert(old->exited);
    ck_assert_int_eq(access(play_path(play, "second"), F_OK), -1);
    play_destroy(play);
}
END_TEST

/* Two processes give up a unix socket that both have: one by a reload that has committed and does
 * not serve yet, the other because it ends. */
START_TEST(test_shared_path_is_removed_by_one)
{
    struct play *play = play_create(1);
    struct play_process *old, *new;
    struct play_worker *worker;
    char stream[128];

    snprintf(stream, sizeof(stream), "server { listen unix:%s/second; echo; }", play->directory);
    play_configure(play, 1, "", stream);
    old = play_start(play);
    play_settle(play);
    play_signal(old, SIGUSR2);
    play_settle(play);
    new = play_main(play);
    ck_assert_ptr_ne(new, old);
    play_configure(play, 1, "", "");
    play_signal(new, SIGHUP);
    do {
        ck_assert(play_step(play));
        worker = play_worker_find(play, 0);
    } while (worker->phase != PLAY_WORKER_READY);
    worker->deaf = true; /* it does not hear that it is to accept */
    play_settle(play);
    play_signal(old, SIGQUIT);
    play_settle(play);
    ck_assert(old->exited);
    play_worker_recover(worker);
    play_pass(play, 2000);
    ck_assert_uint_eq(worker->phase, PLAY_WORKER_ACCEPTS);
    ck_assert_int_eq(access(play_path(play, "second"), F_OK), -1);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_shared_path_is_removed_by_one);
    tcase_add_test(tcase, test_new_binary_serves_beside);
    tcase_add_test(tcase, test_forward);
    tcase_add_loop_test(tcase, test_back, 0, 5);
    tcase_add_test(tcase, test_nothing_is_left);
    tcase_add_test(tcase, test_back_with_fresh_workers);
    tcase_add_loop_test(tcase, test_drained_old_one_comes_back, 0, 2);
    tcase_add_test(tcase, test_mistake_of_the_configuration);
    tcase_add_test(tcase, test_address_of_the_new_one_is_in_use);
    tcase_add_test(tcase, test_single_process_is_refused);
    tcase_add_loop_test(tcase, test_call_fails, 0, 2);
    tcase_add_test(tcase, test_worker_of_the_new_one_does_not_start);
    tcase_add_test(tcase, test_worker_of_the_new_one_is_late);
    tcase_add_loop_test(tcase, test_new_one_dies, 0, 4);
    tcase_add_test(tcase, test_new_one_hangs);
    tcase_add_test(tcase, test_second_upgrade_is_refused);
    tcase_add_test(tcase, test_third_process_is_refused);
    tcase_add_test(tcase, test_upgrade_while_the_other_drains);
    tcase_add_loop_test(tcase, test_end_while_the_new_one_starts, 0, 6);
    tcase_add_loop_test(tcase, test_old_process_is_killed_during_start, 0, 12);
    tcase_add_loop_test(tcase, test_one_ends_in_each_step, 0, 6 * 24);
    tcase_add_loop_test(tcase, test_both_end, 0, 9 * 4);
    tcase_add_loop_test(tcase, test_both_quit_with_sessions, 0, 4);
    tcase_add_loop_test(tcase, test_other_is_killed_while_one_drains, 0, 2);
    tcase_add_test(tcase, test_old_one_is_not_resumed);
    tcase_add_loop_test(tcase, test_either_reloads, 0, 2);
    tcase_add_loop_test(tcase, test_names_move_later, 0, 2);
    tcase_add_test(tcase, test_names_that_cannot_move);
    tcase_add_test(tcase, test_names_of_the_new_one_move);
    tcase_add_loop_test(tcase, test_paths_of_one, 0, 2);
    tcase_add_test(tcase, test_path_is_removed_after_a_failed_way_back);
}

TEST_MAIN("upgrade", add_tests)
