/* SPDX-License-Identifier: BSD-2-Clause */
/* Exit codes of a start that fails: 75 for what may pass by itself, so that a service manager tries
 * again, and 1 for a mistake of the configuration, and where both are in the way. */
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/resources.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#define ECHO "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n"

/* Variants: in the foreground, in the background, without a master. */
static const char *const variants[] = { "daemon off;", "daemon on;", "daemon off;" };
static const char *const directives[] = { "", "", "master_process off; " };

static int start_code(struct daemon *daemon, int variant)
{
    int code = daemon_run(daemon, "-c", "forkbeard.conf", "-g", variants[variant], NULL);

    proc_reap_orphans();
    return code;
}

static int test_code(struct daemon *daemon)
{
    return daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL);
}

START_TEST(port_in_use_may_pass)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "%s" ECHO, directives[_i]);
    daemon_expects(daemon, "failed (98: Address already in use)");
    ck_assert_int_eq(listen(daemon->reservations[0], 1), 0);
    ck_assert_int_eq(start_code(daemon, _i), EX_TEMPFAIL);
    daemon_finish(daemon);
}
END_TEST

/* Without a network no server of names can be asked. */
static void leave_network(void)
{
    if (unshare(CLONE_NEWNET) == -1 && unshare(CLONE_NEWUSER | CLONE_NEWNET) == -1)
        _exit(77);
}

START_TEST(name_may_be_resolved_later)
{
    static const char *const places[] = {
        "events {} stream { server { listen host.example.com:7007; echo; } }",
        "error_log syslog:server=host.example.com; events {} stream { }",
    };
    struct daemon *daemon = daemon_create(0);

    daemon->before_exec = leave_network;
    daemon_configure(daemon, "%s", places[_i]);
    if (test_code(daemon) != 77) {
        ck_assert_int_eq(test_code(daemon), EX_TEMPFAIL);
        ck_assert_ptr_nonnull(strstr(daemon->err, "Temporary failure in name resolution"));
        ck_assert_int_eq(start_code(daemon, 0), EX_TEMPFAIL);
        ck_assert_int_eq(start_code(daemon, 1), EX_TEMPFAIL);
        daemon_configure(daemon, "%s nonsense;", places[_i]);
        ck_assert_int_eq(test_code(daemon), 1);
        ck_assert_int_eq(start_code(daemon, 0), 1);
    }
    daemon_finish(daemon);
}
END_TEST

START_TEST(mistake_does_not_pass)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "%s nonsense;" ECHO, directives[_i]);
    ck_assert_int_eq(listen(daemon->reservations[0], 1), 0);
    ck_assert_int_eq(start_code(daemon, _i), 1);
    ck_assert_int_eq(test_code(daemon), 1);
    daemon_finish(daemon);
}
END_TEST

/* The pid file of a killed daemon names a foreign process by now. _i: 1 without a control socket, 2
 * with an old one's pid file as well; 3 and its lock exists. */
START_TEST(a_stale_pid_file)
{
    static const char *const commands[] = { "reload", "reopen", "stop", "quit", "upgrade" };
    struct daemon *daemon = daemon_create(1);
    pid_t other = fork();

    if (other == 0) {
        pause();
        _exit(0);
    }
    ck_assert_int_gt(other, 0);
    daemon_configure(daemon, "%s" ECHO, _i % 2 == 1 ? "control off; " : "");
    daemon_write(daemon, "forkbeard.pid", "%d\n", (int)other);
    if (_i >= 2)
        daemon_write(daemon, "forkbeard.pid.oldbin", "%d\n", (int)other);
    if (_i == 3)
        daemon_write(daemon, "forkbeard.pid.lock", "%d\n", (int)other);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        ck_assert_int_eq(daemon_run(daemon, "-s", commands[i], "-c", "forkbeard.conf", NULL), 1);
        ck_assert_msg(
            strstr(daemon->err, "no daemon runs with the pid file") != NULL, "%s", daemon->err);
        ck_assert_ptr_eq(strchr(daemon->err, '\n'), strrchr(daemon->err, '\n'));
    }
    ck_assert_int_eq(
        daemon_run(daemon, "-s", "stop", "--wait", "1s", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_int_eq(daemon_run(daemon, "upgrade", "status", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "no daemon runs"));
    ck_assert_int_ne(proc_state(other), 0);
    ck_assert_int_ne(proc_state(other), 'Z');
    ck_assert_int_eq(kill(other, SIGKILL), 0);
    ck_assert_int_eq(proc_wait(other), 128 + SIGKILL);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, port_in_use_may_pass, 0, 3);
    tcase_add_loop_test(tcase, name_may_be_resolved_later, 0, 2);
    tcase_add_loop_test(tcase, mistake_does_not_pass, 0, 3);
    tcase_add_loop_test(tcase, a_stale_pid_file, 0, 4);
}

TEST_MAIN("exit codes", add_tests)
