/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard log`: lines of workers come and go in the log of a server with a level; a replaced
 * worker and a reload keep the operator's level until the end of the time. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SET_UNTIL_BACK "log level: info, set until taken back (forkbeard log default)\n"

/* Runs `forkbeard log`; NULL ends the arguments. */
static int run_log(struct daemon *daemon, const char *level, const char *word, const char *time)
{
    return daemon_run(daemon, "-c", "forkbeard.conf", "log", level, word, time, NULL);
}

static unsigned count_sessions(struct daemon *daemon)
{
    unsigned n = 0;
    const char *at = daemon_text(daemon, "server.log");

    for (; (at = strstr(at, "[info] ")) != NULL; n++)
        at++;
    return n;
}

/* Whether a session is logged, before its first reply. */
static bool logs_sessions(struct daemon *daemon)
{
    unsigned before = count_sessions(daemon);
    int client = client_open(daemon->ports[0]);
    bool logs;

    client_echo(client, "x");
    logs = count_sessions(daemon) > before;
    close(client);
    return logs;
}

START_TEST(lines_come_and_go)
{
    struct daemon *daemon = daemon_create(1);
    char died[64];
    pid_t worker;

    daemon_owns(daemon, "server.log");
    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0; echo; "
                             "error_log server.log error; } }");
    daemon_start(daemon);
    ck_assert(!logs_sessions(daemon));
    ck_assert_int_eq(run_log(daemon, NULL, NULL, NULL), 0);
    ck_assert_str_eq(daemon->out, "log level: as configured\n");

    ck_assert_int_eq(run_log(daemon, "info", NULL, NULL), 0);
    ck_assert_str_eq(daemon->out, SET_UNTIL_BACK);
    daemon_wait_log(daemon, "[notice]");
    ck_assert_uint_eq(daemon_count_log(daemon, "\"log info\" received from "), 1);
    WAIT_FOR(logs_sessions(daemon));
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "status", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, SET_UNTIL_BACK));

    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    snprintf(died, sizeof(died), "worker process %d exited on signal 9", (int)worker);
    daemon_expects(daemon, died);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    WAIT_FOR(daemon_count_log(daemon, "start worker process") == 2);
    ck_assert(logs_sessions(daemon));
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    ck_assert(logs_sessions(daemon));

    ck_assert_int_eq(run_log(daemon, "default", NULL, NULL), 0);
    ck_assert_str_eq(daemon->out, "log level: as configured\n");
    WAIT_FOR(!logs_sessions(daemon));

    ck_assert_int_eq(run_log(daemon, "info", "for", "1s"), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "log level: info, set until 20"));
    WAIT_FOR(daemon_count_log(daemon, "the time of \"log info\" has passed") == 1);
    WAIT_FOR(!logs_sessions(daemon));
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "events", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "log_level             the time of \"log info\""));
    daemon_finish(daemon);
}
END_TEST

START_TEST(refused)
{
    struct daemon *daemon =
        daemon_start_new(1, "events {} stream { server { listen 127.0.0.1:$0; echo; } }");

    ck_assert_int_eq(run_log(daemon, "verbose", NULL, NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "unknown level \"verbose\", expected debug, info, "));
    ck_assert_int_eq(run_log(daemon, "info", "for", "30d"), 1);
    ck_assert_ptr_nonnull(
        strstr(daemon->err, "\"for 30d\": expected a time from 1s to 7d, as 10m"));
    ck_assert_int_eq(run_log(daemon, "info", "for", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "expected \"log level for time\""));
    ck_assert_int_eq(run_log(daemon, "for", "10m", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "\"log for 10m\", expected \"log level for time\""));
    ck_assert_int_eq(run_log(daemon, NULL, NULL, NULL), 0);
    ck_assert_str_eq(daemon->out, "log level: as configured\n");
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, lines_come_and_go);
    tcase_add_test(tcase, refused);
}

TEST_MAIN("log level", add_tests)
