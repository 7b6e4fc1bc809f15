/* SPDX-License-Identifier: BSD-2-Clause */
/* Failed starts: the exit code is 75 for passing obstacles, and for nothing else; a line names the
 * obstacle; nothing is left, and a second daemon is undisturbed. Starts with failing workers are in
 * tests/pool/test_start.c. */
#include "plays/case.h"

#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

#define START_MS 4000

/* A play without a daemon, and with the configuration. */
static struct play *begin(const char *main, const char *stream)
{
    struct play *play = play_create(1);

    play_configure(play, 2, main, stream);
    return play;
}

/* The process exits with `code`, after logging `says`. */
static void expect_failure(struct play_process *process, int code, const char *says)
{
    struct play *play = process->play;

    play_pass(play, 10000);
    ck_assert(process->exited);
    ck_assert_int_eq(play_exit_code(process), code);
    ck_assert_msg(play_has_logged(play, says), "%s", play_read(play, "stderr"));
}

static const struct {
    const char *main, *stream, *says;
} mistakes[] = {
    { "mistake;", "", "unknown directive \"mistake\"" },
    { "error_log $D/nowhere/x.log;", "", "nowhere/x.log" },
    { "", "server { listen unix:$D/nowhere/x; echo; }", "nowhere/x failed (2: No such file" },
    { "", "server { listen unix:$D/conf; echo; }", "exists and is not a socket" },
    { "", "server { listen unix:$D/conf; listen unix:$D/taken; echo; }", "exists and is not" },
    { "mistake;", "server { listen unix:$D/taken; echo; }", "unknown directive" },
    { "load_module nowhere.so;", "", "nowhere.so" },
};

/* A mistake, alone or beside a passing obstacle. */
START_TEST(test_mistake_does_not_pass)
{
    struct play *play = begin(mistakes[_i].main, mistakes[_i].stream);
    int fd = case_listen(play, "taken");

    expect_failure(play_start(play), EXIT_FAILURE, mistakes[_i].says);
    ck_assert(!case_has(play, "pid") && !case_has(play, "socket") && !case_has(play, "control"));
    close(fd);
    play_destroy(play);
}
END_TEST

START_TEST(test_address_in_use_may_pass)
{
    struct play *play = begin("", "server { listen unix:$D/taken; echo; }");
    int fd = case_listen(play, "taken");

    expect_failure(play_start(play), EX_TEMPFAIL, "the socket is in use");
    ck_assert(case_has(play, "taken")); /* it is another's */
    ck_assert(!case_has(play, "pid") && !case_has(play, "socket") && !case_has(play, "control"));
    close(fd);
    play_destroy(play);
}
END_TEST

START_TEST(test_address_of_no_interface_may_pass)
{
    struct play *play = begin("", "server { listen 192.0.2.77:7007; echo; }");

    expect_failure(play_start(play), EX_TEMPFAIL, "Cannot assign requested address");
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* The address becomes free while the start waits. */
START_TEST(test_address_is_waited_for)
{
    struct play *play = begin("", "server { listen unix:$D/taken; echo; }");
    int fd = case_listen(play, "taken");
    struct play_process *master = play_start(play);

    play_pass(play, 1000);
    ck_assert(!master->exited);
    ck_assert(play_has_logged(play, "another process listens on unix:"));
    close(fd);
    play_pass(play, 1000);
    ck_assert_ptr_eq(play_main(play), master);
    play_destroy(play);
}
END_TEST

/* A second daemon with the pid file, control socket or listener of the first. */
START_TEST(test_second_daemon_leaves_the_first)
{
    static const char *const says[] = { "another master process", "is in use: give this daemon",
        "the socket is in use" };
    static const char *const confs[] = {
        "pid $D/pid; control unix:$D/own.control; events { } stream { server { listen unix:$D/own; "
        "echo; } }",
        "pid $D/own.pid; control unix:$D/control; events { } stream { server { listen unix:$D/own; "
        "echo; } }",
        "pid $D/own.pid; control unix:$D/own.control; events { } stream { server { listen "
        "unix:$D/socket; echo; } }",
    };
    struct play *play = case_start(2, "", "");
    struct play_process *first = play_main(play);
    struct play_client *client;
    char conf[512];

    snprintf(conf, sizeof(conf), "daemon off; sandbox off; error_log $D/error.log; %s", confs[_i]);
    play_write(play, "conf", conf);
    expect_failure(play_start(play), EX_TEMPFAIL, says[_i]);
    ck_assert_ptr_eq(play_main(play), first);
    ck_assert(!case_has(play, "own") && !case_has(play, "own.pid"));
    ck_assert(!case_has(play, "own.control"));
    client = play_connect(play);
    ck_assert_ptr_nonnull(client);
    play_settle(play);
    ck_assert(client->replied);
    ck_assert_str_eq(case_status(play, "state"), "running");
    play_signal(first, SIGINT);
    play_settle(play);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

/* A worker is late: the start fails at the timeout, and no client is served until then. */
START_TEST(test_late_worker)
{
    struct play *play = begin("worker_start_timeout 4s;", "");
    struct play_process *master;

    play->forked = never_ready;
    master = play_start(play);
    play_pass(play, START_MS - 1);
    ck_assert(!master->exited);
    ck_assert_ptr_null(play_main(play)); /* the pid file says that it serves */
    ck_assert_ptr_null(play_connect(play));
    play_pass(play, 1);
    ck_assert(master->exited);
    ck_assert(play_has_logged(play, "was not ready within worker_start_timeout (4000 ms)"));
    ck_assert_int_eq(play_exit_code(master), EXIT_FAILURE);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

static void never_ready_and_deaf(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = process->worker->deaf = true;
}

/* SIGHUP before the daemon serves, or while the workers of a start that has failed are ended: no
 * reload begins. */
START_TEST(test_failed_start_does_not_reload)
{
    struct play *play = begin("worker_start_timeout 4s;", "");
    struct play_process *master;
    pid_t last;

    play->forked = never_ready_and_deaf;
    master = play_start(play);
    play_pass(play, _i == 0 ? 1000 : START_MS + 1000);
    ck_assert(!master->exited);
    play_configure(play, 2, "", "");
    play->forked = NULL;
    last = play->last_pid;
    play_signal(master, SIGHUP);
    play_pass(play, START_MS + 3000);
    ck_assert_int_eq(play->last_pid, last);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), EXIT_FAILURE);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* The process that checks the configuration hangs: the start fails after a minute. */
START_TEST(test_check_of_start_hangs)
{
    struct play *play = begin("", "");
    struct play_process *master = play_start(play);

    play_signal(case_step_to_fork(play, PROCESS_CHECK), SIGSTOP);
    play_pass(play, 59999);
    ck_assert(!master->exited);
    expect_failure(master, EXIT_FAILURE, "did not finish during the check");
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

START_TEST(test_check_of_start_is_not_forked)
{
    struct play *play = begin("", "");

    play->failures.fork = 1;
    expect_failure(play_start(play), EXIT_FAILURE, "fork() failed while checking");
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(
        tcase, test_mistake_does_not_pass, 0, sizeof(mistakes) / sizeof(mistakes[0]));
    tcase_add_test(tcase, test_address_in_use_may_pass);
    tcase_add_test(tcase, test_address_of_no_interface_may_pass);
    tcase_add_test(tcase, test_address_is_waited_for);
    tcase_add_loop_test(tcase, test_second_daemon_leaves_the_first, 0, 3);
    tcase_add_test(tcase, test_late_worker);
    tcase_add_loop_test(tcase, test_failed_start_does_not_reload, 0, 2);
    tcase_add_test(tcase, test_check_of_start_hangs);
    tcase_add_test(tcase, test_check_of_start_is_not_forked);
}

TEST_MAIN("start", add_tests)
