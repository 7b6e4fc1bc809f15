/* SPDX-License-Identifier: BSD-2-Clause */
/* debug_points: a worker stops or aborts at an internal error, in any sandbox; without the
 * directive it goes on. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include "base/compiler.h"

#include <signal.h>
#include <unistd.h>

#define SAYS "debug_points: the process "
#define DAMAGED " here: the accept mutex was damaged"

static const char *const sandboxes[] = { "on", "strict" };

/* A daemon with workers able to damage the accept mutex; a worker does, and may stop or end before
 * the answer has left. */
static struct daemon *start_damaged(const char *directive, const char *sandbox)
{
    struct daemon *daemon = daemon_start_new(1,
        "load_module " MODULES_PATH
        "/spoiler.so; worker_processes 2; sandbox %s; %s events { use poll; } "
        "stream { server { listen 127.0.0.1:$0; spoiler; } }",
        sandbox, directive);
    int client = client_open(daemon->ports[0]);

    daemon_expects(daemon, "the accept mutex was damaged");
    client_send(client, "o");
    close(client);
    return daemon;
}

/* The worker that has stopped; 0: none has. */
static pid_t find_stopped(const struct daemon *daemon)
{
    pid_t workers[4];
    unsigned n = proc_children(daemon->pid, workers, countof(workers));

    for (unsigned i = 0; i < n; i++)
        if (proc_state(workers[i]) == 'T')
            return workers[i];
    return 0;
}

START_TEST(a_worker_stops_for_a_debugger)
{
    struct daemon *daemon = start_damaged("debug_points stop;", sandboxes[_i]);
    pid_t stopped;

    WAIT_FOR((stopped = find_stopped(daemon)) != 0);
    daemon_wait_log(daemon, SAYS "stops" DAMAGED);
    ck_assert_int_eq(kill(stopped, SIGCONT), 0);
    WAIT_FOR(proc_state(stopped) != 'T');
    client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_worker_aborts_and_is_replaced)
{
    struct daemon *daemon = start_damaged("debug_points abort;", sandboxes[_i]);

    daemon_expects(daemon, "exited on signal 6");
    daemon_expects(daemon, "a worker process died at once");
    daemon_wait_log(daemon, SAYS "aborts" DAMAGED);
    daemon_wait_log(daemon, "exited on signal 6");
    daemon_wait_log(daemon, "start worker process");
    client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(without_the_directive_a_worker_goes_on)
{
    struct daemon *daemon = start_damaged("", sandboxes[_i]);

    daemon_wait_log(daemon, "the accept mutex was damaged");
    client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    ck_assert_uint_eq(daemon_count_log(daemon, SAYS), 0);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_worker_stops_for_a_debugger, 0, countof(sandboxes));
    tcase_add_loop_test(tcase, a_worker_aborts_and_is_replaced, 0, countof(sandboxes));
    tcase_add_loop_test(tcase, without_the_directive_a_worker_goes_on, 0, countof(sandboxes));
}

TEST_MAIN("debug_points", add_tests)
