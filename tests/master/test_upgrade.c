/* SPDX-License-Identifier: BSD-2-Clause */
/* Upgrades: another master process beside the first, the way forward and back, and reloads of
 * either process. */
#include "plays/case.h"

#include <signal.h>
#include <unistd.h>

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
    ck_assert_ptr_nonnull(strstr(case_status(play, "upgrade.control"), OLD));
    ck_assert_str_eq(strrchr(case_status_of(play, OLD, "upgrade.control"), '/'), "/control");
    ck_assert(case_is_served(play));
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
    case_signal(old, SIGQUIT);
    ck_assert(!old->exited && !session->ended);
    ck_assert(case_is_served(play));
    play_client_close(play, session);
    play_settle(play);
    ck_assert(old->exited);
    ck_assert_int_eq(play_exit_code(old), 0);
    case_expect_alone(new);
    ck_assert(!case_has(play, OLD) && !case_has(play, "pid.oldbin"));
    case_signal(new, SIGINT);
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
    case_expect_alone(old);
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

    case_signal(old, SIGQUIT);
    descriptors = play_count_descriptors(new);
    for (int i = 0; i < 10; i++) {
        struct play_process *other;

        case_expect_ok(case_command(play, "upgrade"));
        other = play_main(play);
        case_signal(i % 2 == 0 ? other : new, SIGQUIT);
        if (i % 2 != 0)
            new = other;
        play_client_close_all(play);
        play_pass(play, 1000);
        case_expect_alone(new);
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

    case_signal(old, SIGWINCH);
    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_str_eq(case_status_of(play, OLD, "generations.0.state"), "draining");
    case_signal(old, SIGHUP);
    play_pass(play, 1000);
    ck_assert_uint_eq(play_count_workers(play), 4);
    ck_assert_ptr_eq(play_main(play), new); /* whose names they are yet */
    case_signal(new, SIGQUIT);
    case_expect_alone(old);
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
    case_signal(old, SIGWINCH);
    play_kill(new, SIGKILL);
    play_pass(play, 2000);
    if (session != NULL) {
        ck_assert(!session->ended);
        play_client_close(play, session);
        play_settle(play);
    }
    case_expect_alone(old);
    play_destroy(play);
}
END_TEST

/* Reloads of one of two processes */

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

START_TEST(test_either_reloads)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);

    case_reload_of(play, _i == 0 ? "control" : OLD);
    ck_assert_uint_eq(play_count_workers(play), 4);
    ck_assert(case_is_served(play));
    case_signal(_i == 0 ? old : new, SIGQUIT);
    case_expect_alone(_i == 0 ? new : old);
    ck_assert_uint_eq(case_generation(play), 2);
    play_destroy(play);
}
END_TEST

#define OTHER_NAMES                                                                                \
    "daemon off; sandbox off; error_log $D/error.log info; pid $D/other.pid; worker_processes 2;"  \
    "control unix:$D/other; events { } stream { server { listen unix:$D/socket; echo; } }"

/* The new process gets the old process's names after the old process has gone. By then the reload
 * has ended, or its workers still start. */
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
    case_signal(new, SIGQUIT);
    for (unsigned i = 0; i < 2; i++)
        play_worker_find(play, i)->never_ready = false;
    play_pass(play, 1000);
    case_expect_ok(client);
    ck_assert(case_has(play, "other.pid") && !case_has(play, "pid") && !case_has(play, "control"));
    ck_assert(!case_has(play, OLD) && !case_has(play, "pid.oldbin"));
    ck_assert_str_eq(case_status_of(play, "other", "state"), "running");
    case_signal(old, SIGINT);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* A foreign process has a name by then: all names stay, and the old process serves. */
START_TEST(test_names_that_cannot_move)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);

    play_write(play, "conf", OTHER_NAMES);
    play_write(play, "other", "no socket");
    case_reload_of(play, OLD);
    case_signal(new, SIGQUIT);
    ck_assert(play_has_logged(play, "exists and is not a socket"));
    ck_assert(!case_has(play, "other.pid") && !case_has(play, "other.pid.lock"));
    case_expect_alone(old);
    play_destroy(play);
}
END_TEST

/* The lock of the first name is the old process's alone when the new one has moved. */
START_TEST(test_names_of_the_new_one_move)
{
    struct play_process *old, *new;
    struct play *play = upgrade(&old, &new);

    play_write(play, "conf", OTHER_NAMES);
    case_reload(play);
    ck_assert(case_has(play, "other.pid"));
    case_signal(old, SIGQUIT);
    ck_assert(old->exited);
    ck_assert(!case_has(play, "pid") && !case_has(play, "pid.lock") && !case_has(play, "control"));
    ck_assert(!case_has(play, OLD) && !case_has(play, "pid.oldbin"));
    ck_assert_str_eq(case_status_of(play, "other", "state"), "running");
    case_signal(new, SIGINT);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* Paths of only one of the two masters go with the master; a shared path stays. */
START_TEST(test_paths_of_one)
{
    struct play *play = case_start(2, "", "server { listen unix:$D/first; echo; }");
    struct play_process *old = play_main(play), *new;

    play_configure(play, 2, "", "server { listen unix:$D/second; echo; }");
    case_expect_ok(case_command(play, "upgrade"));
    new = play_main(play);
    ck_assert(case_has(play, "first") && case_has(play, "second"));
    case_signal(_i == 0 ? old : new, SIGQUIT);
    ck_assert_int_eq(case_has(play, "first"), _i == 1);
    ck_assert_int_eq(case_has(play, "second"), _i == 0);
    ck_assert(case_is_served(play));
    case_signal(_i == 0 ? new : old, SIGINT);
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

/* A reload of the new process gives up a path shared with the old process. The new workers crash
 * before they accept, and the way back fails, because the old process has the path: the old process
 * learns of its sole ownership, and removes the path at its end. */
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

/* Two processes give up a shared unix socket: one by a committed reload before the new workers
 * serve, the second because of its end. */
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
    worker->deaf = true; /* the worker does not hear the order to accept */
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
    tcase_add_loop_test(tcase, test_either_reloads, 0, 2);
    tcase_add_loop_test(tcase, test_names_move_later, 0, 2);
    tcase_add_test(tcase, test_names_that_cannot_move);
    tcase_add_test(tcase, test_names_of_the_new_one_move);
    tcase_add_loop_test(tcase, test_paths_of_one, 0, 2);
    tcase_add_test(tcase, test_path_is_removed_after_a_failed_way_back);
}

TEST_MAIN("upgrade", add_tests)
