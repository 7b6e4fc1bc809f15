/* SPDX-License-Identifier: BSD-2-Clause */
/* The hooks of a protocol in the master: which servers' configurations are told to be in force, and
 * in which order, by the lines of a module (tests/module/witness.c). */
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define WITNESS "load_module " MODULES_PATH "/witness.so;"
#define SAYS "witness: "

/* Checks the module's output so far: the ends of its lines, separated by commas. */
static void expect_told(struct daemon *daemon, const char *expected)
{
    const char *line = daemon_text(daemon, "error.log");
    char told[1000] = "";

    while ((line = strstr(line, SAYS)) != NULL) {
        size_t n = strlen(told);

        line += strlen(SAYS);
        snprintf(told + n, sizeof(told) - n, "%s%.*s", n > 0 ? ", " : "", (int)strcspn(line, "\n"),
            line);
    }
    ck_assert_str_eq(told, expected);
}

static void configure(struct daemon *daemon, const char *main, const char *servers)
{
    daemon_configure(daemon, "%s" WITNESS "events {} stream { %s }", main, servers);
}

static bool reload_daemon(struct daemon *daemon)
{
    return control_is_ok(control_ask(daemon, "reload"));
}

#define ONE "server { listen 127.0.0.1:$0; witness one; }"
#define TWO "server { listen 127.0.0.1:$1; witness two; }"
#define THREE "server { listen 127.0.0.1:$0; witness three; }"
#define ONE_TWO "one is accepted, two is accepted"

START_TEST(a_reload_changes_what_is_in_force)
{
    struct daemon *daemon = daemon_create(2);

    configure(daemon, "", ONE TWO);
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_null(strstr(daemon->err, SAYS));
    daemon_start(daemon);
    expect_told(daemon, ONE_TWO);
    configure(daemon, "", THREE);
    ck_assert(reload_daemon(daemon));
    expect_told(daemon, ONE_TWO ", three is accepted, one is gone, two is gone");
    configure(daemon, "", "server { listen 127.0.0.1:$0; echo; }");
    ck_assert(reload_daemon(daemon));
    expect_told(daemon, ONE_TWO ", three is accepted, one is gone, two is gone, three is gone");
    configure(daemon, "", ONE);
    ck_assert(reload_daemon(daemon));
    daemon_stop(daemon, SIGTERM);
    expect_told(daemon, ONE_TWO ", three is accepted, one is gone, two is gone, three is gone, "
                                "one is accepted, one is gone");
    daemon_finish(daemon);
}
END_TEST

/* A mistake, an unavailable address, workers failing at the start. */
START_TEST(a_reload_that_fails_changes_nothing)
{
    static const struct {
        const char *main, *server, *line;
    } failures[] = {
        { "", "server { listen 127.0.0.1:$0; witness two; nonsense; }", "nonsense" },
        { "", "server { listen unix:$D/none/such; witness two; }", "/none/such failed" },
        { "working_directory nowhere; ", "server { listen 127.0.0.1:$0; witness two; }",
            "a worker process could not start" },
    };
    struct daemon *daemon = daemon_create(2);

    configure(daemon, "", ONE);
    daemon_start(daemon);
    configure(daemon, failures[_i].main, failures[_i].server);
    daemon_expects(daemon, failures[_i].line);
    daemon_expects(daemon, "nowhere");
    daemon_expects(daemon, "reload failed");
    ck_assert(!reload_daemon(daemon));
    expect_told(daemon, "one is accepted");
    daemon_stop(daemon, SIGTERM);
    expect_told(daemon, "one is accepted, one is gone");
    daemon_finish(daemon);
}
END_TEST

/* At the start: nothing was accepted, and nothing goes. */
START_TEST(a_start_that_fails_tells_nothing)
{
    struct daemon *daemon = daemon_create(1);

    configure(daemon, "working_directory nowhere; ", ONE);
    daemon_expects(daemon, "nowhere");
    daemon_expects(daemon, "a worker process could not start");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-g", "daemon off;", NULL), 1);
    expect_told(daemon, "");
    daemon_finish(daemon);
}
END_TEST

START_TEST(what_comes_back_is_accepted_again)
{
    struct daemon *daemon = daemon_create(2);

    configure(daemon, "", ONE);
    daemon_start(daemon);
    daemon_expects(daemon, ""); /* crashes are what this is about */
    configure(daemon, "load_module " MODULES_PATH "/trouble.so;",
        "server { listen 127.0.0.1:$0; witness two; }"
        "server { listen 127.0.0.1:$1; troubled; trouble later 300; }");
    ck_assert(!reload_daemon(daemon));
    expect_told(
        daemon, "one is accepted, two is accepted, one is gone, one is accepted, two is gone");
    daemon_stop(daemon, SIGTERM);
    expect_told(daemon, "one is accepted, two is accepted, one is gone, one is accepted, "
                        "two is gone, one is gone");
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_single_process_tells_too)
{
    struct daemon *daemon = daemon_create(1);

    configure(daemon, "master_process off; ", ONE);
    daemon_start(daemon);
    daemon_wait_log(daemon, SAYS "one is accepted"); /* after the pid file */
    expect_told(daemon, "one is accepted");
    daemon_stop(daemon, SIGTERM);
    expect_told(daemon, "one is accepted, one is gone");
    daemon_finish(daemon);
}
END_TEST

/* The newer master and the ending one report separately. */
START_TEST(both_masters_of_an_upgrade_tell)
{
    struct daemon *daemon = daemon_create(1);
    pid_t new;

    configure(daemon, "", ONE);
    daemon_start(daemon);
    new = upgrade_start(daemon);
    expect_told(daemon, "one is accepted, one is accepted");
    if (_i == 0)
        upgrade_complete(daemon, new);
    else
        upgrade_roll_back(daemon, new);
    expect_told(daemon, "one is accepted, one is accepted, one is gone");
    daemon_stop(daemon, SIGTERM);
    expect_told(daemon, "one is accepted, one is accepted, one is gone, one is gone");
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_reload_changes_what_is_in_force);
    tcase_add_loop_test(tcase, a_reload_that_fails_changes_nothing, 0, 3);
    tcase_add_test(tcase, a_start_that_fails_tells_nothing);
    tcase_add_test(tcase, what_comes_back_is_accepted_again);
    tcase_add_test(tcase, a_single_process_tells_too);
    tcase_add_loop_test(tcase, both_masters_of_an_upgrade_tell, 0, 2);
}

TEST_MAIN("conf_hooks", add_tests)
