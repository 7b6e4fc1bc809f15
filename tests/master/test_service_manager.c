/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the service manager about starts, reloads, ends and upgrades: always from the main
 * process, which is unique at any time. */
#include "plays/case.h"
#include "plays/manager.h"

#include "tls/profile.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SERVING "STATUS=Serving: 2 workers, generation "
#define OPERATOR 4711 /* the pid of a shell */

/* The next message that is of interest. */
static void expect(struct play_manager *manager, const char *text)
{
    play_pass(manager->play, 10);
    ck_assert_str_eq(play_manager_next(manager), text);
}

static void expect_quiet(struct play_manager *manager)
{
    expect(manager, "");
}

/* A serving daemon of two workers with keepers; the messages of its start were taken. */
static struct play *start(struct play_manager **manager, uint64_t watchdog_us, bool other)
{
    static struct tls_profile profile;
    static const struct tls_profiles profiles = { .list = &profile, .n = 1 };
    struct play *play = play_create(1);

    play->tls = &profiles;
    *manager = play_manager_create(play, watchdog_us, other);
    play_configure(play, 2, "worker_start_timeout 4s; worker_shutdown_timeout 60s;", "");
    case_serve(play);
    play_pass(play, 10);
    ck_assert_str_eq(play_manager_wait(*manager, "STATUS="), SERVING "1");
    ck_assert_str_eq(play_manager_next(*manager), "READY=1");
    expect_quiet(*manager);
    return play;
}

static void keep_session(struct play *play, unsigned index)
{
    play_worker_find(play, index)->keeps_sessions = true;
}

/* A signal of the manager, or of an operator. */
static void end(struct play *play, int number, bool by_manager)
{
    play_signal_from(play_main(play), number, by_manager ? 1 : OPERATOR);
    play_settle(play);
}

START_TEST(test_start_is_told_when_it_serves)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);

    ck_assert_uint_eq(manager->stored_n, 1);
    end(play, SIGTERM, true);
    expect(manager, "STOPPING=1");
    expect(manager, "STATUS=Stopping: 2 workers");
    play_pass(play, 1000);
    ck_assert(!case_has(play, "pid") && !case_has(play, "control"));
    ck_assert_uint_eq(play_count_masters(play), 0);
    play_destroy(play);
}
END_TEST

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

/* The manager is not told of a start that fails, nor before the workers are ready. */
START_TEST(test_failed_start_is_not_ready)
{
    struct play *play = play_create(1);
    struct play_manager *manager = play_manager_create(play, 0, false);
    struct play_process *master;

    play_configure(play, 2, _i == 0 ? "worker_start_timeout 4s;" : "mistake;", "");
    play->forked = never_ready;
    master = play_start(play);
    play_pass(play, 3999);
    ck_assert_int_eq(master->exited, _i == 1);
    play_pass(play, 2000);
    ck_assert(master->exited);
    ck_assert_uint_eq(manager->message_n, 0);
    ck_assert_uint_eq(manager->stored_n, 0);
    play_destroy(play);
}
END_TEST

/* RELOADING=1 has the monotonic time of the reload's beginning. */
static void expect_reloading(struct play_manager *manager, uint64_t ms)
{
    char text[96];

    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)ms * 1000);
    ck_assert_str_eq(play_manager_next(manager), text);
    ck_assert_str_eq(
        play_manager_next(manager), "STATUS=Reloading; serving: 2 workers, generation 1");
}

START_TEST(test_reload_is_told)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);
    uint64_t begun = play->clock.mono_ms;

    keep_session(play, 0);
    if (_i == 0)
        end(play, SIGHUP, true);
    else
        case_command(play, "reload");
    play_pass(play, 999);
    expect_reloading(manager, begun);
    ck_assert_uint_eq(play_manager_count(manager, "READY=1"), 0);
    play_pass(play, 1);
    ck_assert_str_eq(play_manager_wait(manager, SERVING "2"), SERVING "2, 1 draining");
    ck_assert_str_eq(play_manager_next(manager), "READY=1");
    expect_quiet(manager);
    play_destroy(play);
}
END_TEST

/* The status names what the client was told, until a reload succeeds. */
START_TEST(test_failure_is_told_and_stays)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);
    const char *failed = "STATUS=Reload failed: unknown directive \"mistake\" in ";
    char text[320];

    play_configure(play, 2, "mistake;", "");
    for (int i = 0; i < 2; i++) {
        uint64_t begun = play->clock.mono_ms;

        end(play, SIGHUP, true);
        expect_reloading(manager, begun);
        snprintf(text, sizeof(text), "%s", play_manager_next(manager));
        ck_assert_msg(strncmp(text, failed, strlen(failed)) == 0, "%s", text);
        ck_assert_ptr_nonnull(strstr(text, "; serving: 2 workers, generation 1"));
        ck_assert_str_eq(play_manager_next(manager), "READY=1");
        play_worker_crash(play_worker_find(play, 0), SIGKILL);
        play_pass(play, 100);
        ck_assert_str_ne(play_manager_next(manager), text); /* with a worker less for a moment */
        ck_assert_str_eq(play_manager_next(manager), text);
    }
    play_configure(play, 2, "", "");
    end(play, SIGHUP, true);
    play_pass(play, 1000);
    ck_assert_str_eq(play_manager_wait(manager, SERVING), SERVING "2");
    ck_assert_str_eq(play_manager_next(manager), "READY=1");
    play_destroy(play);
}
END_TEST

static void crash_accepting(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->crashes_accepting = true;
}

START_TEST(test_crashing_and_drained_are_told)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);

    play->forked = crash_accepting;
    for (unsigned i = 0; i < 2; i++)
        play_worker_crash(play_worker_find(play, i), SIGSEGV);
    play_pass(play, 250);
    ck_assert_str_ne(play_manager_wait(manager, "STATUS=Crashing, nobody serves: "), "");
    play->forked = NULL;
    play_pass(play, 3000);
    ck_assert_str_ne(play_manager_wait(manager, SERVING "1"), "");
    keep_session(play, 0);
    end(play, SIGWINCH, false);
    ck_assert_str_ne(play_manager_wait(manager, "STATUS=Not accepting: "), "");
    play_destroy(play);
}
END_TEST

/* Ends */

START_TEST(test_drain_is_told)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);

    keep_session(play, 0);
    end(play, SIGQUIT, true);
    ck_assert_str_eq(play_manager_next(manager), "STOPPING=1");
    ck_assert_str_eq(play_manager_next(manager),
        "STATUS=Draining: the sessions of 2 workers may end by themselves");
    expect(manager, "STATUS=Draining: the sessions of 1 worker may end by themselves");
    ck_assert_uint_eq(manager->stored_n, 1); /* for the next start */
    ck_assert(case_has(play, "socket"));
    play_destroy(play);
}
END_TEST

/* A quit of an operator may be taken back: the manager, who would kill what is left some time
 * after an end, is not told of one. The copies of sockets would be in the way of the next start. */
START_TEST(test_quit_may_be_taken_back)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);
    struct play_process *master = play_main(play);
    struct play_client *client;
    char name[64];

    keep_session(play, 0);
    if (_i == 0)
        case_expect_ok(case_command(play, "quit"));
    else
        end(play, SIGQUIT, false);
    expect(manager, "STATUS=Draining: the sessions of 2 workers may end by themselves");
    expect(manager, "STATUS=Draining: the sessions of 1 worker may end by themselves");
    ck_assert_uint_eq(manager->stored_n, 0);
    ck_assert(!case_has(play, "socket")); /* a path without a socket */
    snprintf(name, sizeof(name), "control.quit.%d", (int)master->pid);
    client = case_command_to(play, name, "resume");
    play_pass(play, 1000);
    case_expect_ok(client);
    ck_assert_str_eq(play_manager_wait(manager, SERVING "2"), SERVING "2, 1 draining");
    ck_assert_str_eq(play_manager_next(manager), "READY=1");
    ck_assert_uint_eq(play_manager_count(manager, "STOPPING"), 0);
    play_destroy(play);
}
END_TEST

/* Watchdog */

START_TEST(test_watchdog_is_fed)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 2000000, _i == 1);

    play_pass(play, 10000);
    ck_assert_uint_eq(play_manager_count(manager, "WATCHDOG=1"), _i == 0 ? 10 : 0);
    play_destroy(play);
}
END_TEST

/* A stopped master process feeds the watchdog no more. */
START_TEST(test_stopped_master_feeds_nothing)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 2000000, false);

    play_signal(play_main(play), SIGSTOP);
    play_pass(play, 10000);
    ck_assert_uint_eq(play_manager_count(manager, "WATCHDOG=1"), 0);
    play_destroy(play);
}
END_TEST

/* Upgrades: at any time exactly one process is the main process */

static struct play_process *upgrade(struct play *play, struct play_manager *manager)
{
    struct play_process *old = play_main(play), *new;
    char main_is[32];

    case_expect_ok(case_command(play, "upgrade"));
    play_pass(play, 100);
    new = play_main(play);
    new->kept = true;
    ck_assert_ptr_ne(new, old);
    snprintf(main_is, sizeof(main_is), "MAINPID=%d", (int)new->pid);
    ck_assert_str_eq(play_manager_wait(manager, "MAINPID="), main_is);
    ck_assert_str_eq(play_manager_wait(manager, "STATUS="), SERVING "1");
    ck_assert_str_eq(play_manager_next(manager), "READY=1");
    ck_assert_int_eq(manager->main, new->pid);
    ck_assert_uint_eq(manager->ignored, 0);
    expect_quiet(manager);
    return new;
}

START_TEST(test_upgrade_is_told)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 2000000, false);
    struct play_process *old = play_main(play), *new = upgrade(play, manager);

    ck_assert_uint_eq(manager->stored_n, 1); /* the new one's */
    ck_assert_str_eq(case_status(play, "upgrade.main"), "true");
    ck_assert_str_eq(case_status_of(play, "control.oldbin", "upgrade.main"), "false");
    play_pass(play, 10000);
    ck_assert_uint_eq(
        play_manager_count(manager, "WATCHDOG=1"), 10); /* signs of life of the new process alone */
    play_signal_from(old, SIGQUIT, OPERATOR);
    play_pass(play, 1000);
    ck_assert(old->exited);
    ck_assert_int_eq(manager->main, new->pid);
    ck_assert_uint_eq(manager->stored_n, 1);
    ck_assert_uint_eq(manager->ignored, 0);
    play_destroy(play);
}
END_TEST

/* The new process goes back: the old one is the main process again, and says so. */
START_TEST(test_rollback_is_told)
{
    static const int signals[] = { SIGQUIT, SIGTERM, SIGKILL };
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);
    struct play_process *old = play_main(play), *new = upgrade(play, manager);

    play_signal_from(new, signals[_i], OPERATOR);
    play_pass(play, 1000);
    ck_assert(new->exited);
    if (_i < 2) {
        ck_assert_int_eq(manager->main, old->pid);
        ck_assert_str_ne(play_manager_wait(manager, SERVING "1"), "");
        ck_assert_str_eq(play_manager_next(manager), "READY=1");
        ck_assert_uint_eq(manager->stored_n, 1);
    } else { /* the manager's main process was killed: it ends the service, and is told nothing */
        ck_assert_int_eq(manager->main, new->pid);
    }
    play_destroy(play);
}
END_TEST

/* The manager is told nothing when the new process does not come to serve. */
START_TEST(test_failed_upgrade_is_not_told)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);
    struct play_process *old = play_main(play);

    play_configure(play, 2, "mistake;", "");
    ck_assert(!play_client_is_ok(case_command(play, "upgrade")));
    ck_assert_int_eq(manager->main, old->pid);
    expect_quiet(manager);
    ck_assert_uint_eq(manager->ignored, 0);
    ck_assert_uint_eq(manager->stored_n, 1);
    play_destroy(play);
}
END_TEST

/* The manager ends the service and knows only the new process: both end. */
START_TEST(test_manager_ends_both)
{
    static const int signals[] = { SIGTERM, SIGQUIT, SIGINT };
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);
    struct play_process *old = play_main(play), *new = upgrade(play, manager);

    end(play, signals[_i], true);
    ck_assert_str_eq(play_manager_next(manager), "STOPPING=1");
    play_pass(play, 3000);
    ck_assert(old->exited && new->exited);
    ck_assert_uint_eq(play_count_workers(play), 0);
    play_destroy(play);
}
END_TEST

/* An operator ends the new process during the end of the old process: the manager learns of the
 * change back. */
START_TEST(test_back_to_one_that_ends)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);
    struct play_process *old = play_main(play), *new;

    keep_session(play, 0);
    new = upgrade(play, manager);
    play_signal_from(old, SIGQUIT, OPERATOR);
    play_settle(play);
    play_signal_from(new, SIGQUIT, OPERATOR);
    play_pass(play, 1000);
    ck_assert(new->exited && !old->exited);
    ck_assert_int_eq(manager->main, old->pid);
    ck_assert_str_ne(play_manager_wait(manager, "MAINPID="), "");
    ck_assert_str_eq(play_manager_next(manager), "STOPPING=1");
    ck_assert_str_ne(play_manager_wait(manager, "STATUS=Draining: "), "");
    ck_assert_uint_eq(manager->stored_n, 0);
    play_destroy(play);
}
END_TEST

/* The process that the manager has started leaves the sessions to a child, and exits at once: the
 * manager starts the service again, and hears nothing of the child. */
START_TEST(test_leave)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);
    struct play_process *left = play_main(play); /* the record becomes the child's */
    pid_t first = left->pid;
    unsigned n;

    keep_session(play, 0);
    case_expect_ok(case_command(play, "leave"));
    play_pass(play, 100);
    ck_assert(play_find(play, first)->exited && !left->exited);
    ck_assert_uint_eq(manager->stored_n, 1);
    n = manager->message_n;
    manager->main = 0;
    case_serve(play);
    ck_assert_uint_gt(manager->message_n, n);
    n = manager->ignored;
    play_worker_crash(play_worker_find(play, 0), SIGSEGV);
    play_signal(left, SIGINT);
    play_pass(play, 3000);
    ck_assert(left->exited);
    ck_assert_uint_eq(manager->ignored, n);
    play_destroy(play);
}
END_TEST

/* The manager starts the service again, and passes the stored sockets: a client connected meanwhile
 * is served. */
START_TEST(test_next_start_has_the_stored_sockets)
{
    struct play_manager *manager;
    struct play *play = start(&manager, 0, false);
    struct play_client *client;

    end(play, _i == 0 ? SIGTERM : SIGKILL, true);
    play_pass(play, 1000);
    ck_assert_uint_eq(play_count_masters(play), 0);
    ck_assert_uint_eq(manager->stored_n, 1);
    client = play_connect(play);
    ck_assert_ptr_nonnull(client);
    manager->main = 0;
    if (_i == 1) /* the kernel keeps the names of a killed process */
        ck_assert(case_has(play, "pid"));
    case_serve(play);
    play_settle(play);
    ck_assert(client->replied);
    play_pass(play, 10);
    ck_assert_uint_eq(manager->stored_n, 1);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_start_is_told_when_it_serves);
    tcase_add_loop_test(tcase, test_failed_start_is_not_ready, 0, 2);
    tcase_add_loop_test(tcase, test_reload_is_told, 0, 2);
    tcase_add_test(tcase, test_failure_is_told_and_stays);
    tcase_add_test(tcase, test_crashing_and_drained_are_told);
    tcase_add_test(tcase, test_drain_is_told);
    tcase_add_loop_test(tcase, test_quit_may_be_taken_back, 0, 2);
    tcase_add_loop_test(tcase, test_watchdog_is_fed, 0, 2);
    tcase_add_test(tcase, test_stopped_master_feeds_nothing);
    tcase_add_test(tcase, test_upgrade_is_told);
    tcase_add_loop_test(tcase, test_rollback_is_told, 0, 3);
    tcase_add_test(tcase, test_failed_upgrade_is_not_told);
    tcase_add_loop_test(tcase, test_manager_ends_both, 0, 3);
    tcase_add_test(tcase, test_back_to_one_that_ends);
    tcase_add_test(tcase, test_leave);
    tcase_add_loop_test(tcase, test_next_start_has_the_stored_sockets, 0, 2);
}

TEST_MAIN("service_manager", add_tests)
