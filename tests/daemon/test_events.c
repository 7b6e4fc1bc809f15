/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard events`: past events, and with -f new events until the daemon ends. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a follower with output to run.out and run.err. */
static pid_t follow(struct daemon *daemon, const char *option)
{
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0)
        _exit(daemon_run(daemon, "events", "-f", "-c", "forkbeard.conf", option, NULL));
    return pid;
}

static bool is_shown(struct daemon *daemon, const char *what)
{
    return daemon_has(daemon, "run.out") && strstr(daemon_text(daemon, "run.out"), what) != NULL;
}

START_TEST(events_are_shown_and_followed)
{
    static const char *const options[] = { NULL, "--json" };
    struct daemon *daemon =
        daemon_start_new(1, "events {} stream { server { listen 127.0.0.1:$0; echo; } }");
    char died[64];
    pid_t worker, follower;

    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    snprintf(died, sizeof(died), "worker process %d exited on signal 9", (int)worker);
    daemon_expects(daemon, died);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    WAIT_FOR(daemon_count_log(daemon, "start worker process") == 2);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    ck_assert_int_eq(daemon_run(daemon, "events", "-c", "forkbeard.conf", options[_i], NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "master_start"));
    ck_assert_ptr_nonnull(strstr(daemon->out, died));
    ck_assert_ptr_nonnull(strstr(daemon->out, "generation 2 serves in place of generation 1"));
    ck_assert_str_eq(daemon->err, "");

    follower = follow(daemon, options[_i]);
    WAIT_FOR(is_shown(daemon, "generation 2 serves in place of generation 1"));
    ck_assert(!is_shown(daemon, "generation 3"));
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    WAIT_FOR(is_shown(daemon, "generation 3 serves in place of generation 2"));
    daemon_stop(daemon, SIGQUIT);
    ck_assert_int_eq(proc_wait(follower), 0);
    ck_assert(is_shown(daemon, "master_exit"));
    ck_assert_ptr_nonnull(
        strstr(daemon_text(daemon, "run.err"), "[notice] the daemon's master process has ended\n"));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, events_are_shown_and_followed, 0, 2);
}

TEST_MAIN("events", add_tests)
