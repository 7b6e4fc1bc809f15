/* SPDX-License-Identifier: BSD-2-Clause */
/* `env_substitution` in a daemon without an environment. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Variables set only in the started daemon. */
static void set_variables(void)
{
    setenv("RUN", "forkbeard", 1);
    setenv("WORD", "hunter2", 1);
}

static void configure_daemon(struct daemon *daemon, const char *text)
{
    daemon_write(daemon, "forkbeard.conf",
        "env_substitution on; error_log error.log ${LEVEL-notice}; pid ${RUN}.pid; events {}\n"
        "stream { server { listen 127.0.0.1:$0; return \"%s\"; } }",
        text);
}

static const char *reply_of(const struct daemon *daemon)
{
    return client_read_all(client_open(daemon->ports[0]));
}

START_TEST(a_reload_has_the_environment_of_the_start)
{
    struct daemon *daemon = daemon_create(1);
    pid_t worker;

    configure_daemon(daemon, "${WORD}");
    daemon->before_exec = set_variables;
    daemon_start(daemon);
    ck_assert_str_eq(reply_of(daemon), "hunter2");
    configure_daemon(daemon, "${WORD} again, and ${OTHER:-a default}");
    daemon_signal(daemon, SIGHUP);
    WAIT_FOR(strcmp(reply_of(daemon), "hunter2 again, and a default") == 0);

    /* absent from environments that others may see */
    WAIT_FOR(proc_children(daemon->pid, &worker, 1) == 1 && proc_child_n(daemon->pid) == 1);
    ck_assert_ptr_null(strstr(proc_text(worker, "environ"), "hunter2"));
    ck_assert_ptr_null(strstr(proc_text(daemon->pid, "environ"), "hunter2"));

    daemon_expects(daemon, "the environment variable \"NONE\" is not set");
    daemon_expects(daemon, "reload failed");
    configure_daemon(daemon, "${NONE}");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "\"NONE\" is not set");
    daemon_wait_log(daemon, "reload failed");
    ck_assert_str_eq(reply_of(daemon), "hunter2 again, and a default");
    ck_assert_uint_eq(daemon_count_log(daemon, "hunter2"), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(its_way_is_found_by_the_environment)
{
    static const char *const arguments[][3] = { { "-s", "reload", NULL }, { "status", NULL },
        { "-s", "quit", NULL } };
    struct daemon *daemon = daemon_create(1);

    configure_daemon(daemon, "${WORD}");
    daemon->before_exec = set_variables;
    daemon_start(daemon);
    /* a daemon with another environment says so */
    daemon->before_exec = NULL;
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "the environment variable \"RUN\" is not set"));

    daemon->before_exec = set_variables;
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
        ck_assert_int_eq(
            daemon_run(daemon, "-c", "forkbeard.conf", arguments[i][0], arguments[i][1], NULL), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_dump_is_what_was_written)
{
    struct daemon *daemon = daemon_create(1);

    configure_daemon(daemon, "${WORD}");
    daemon->before_exec = set_variables;
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-Tq", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "return \"${WORD}\""));
    ck_assert_ptr_null(strstr(daemon->out, "hunter2"));
    ck_assert_str_eq(daemon->err, "");
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    if (!is_wrapped()) /* whose environment /proc would show */
        tcase_add_test(tcase, a_reload_has_the_environment_of_the_start);
    tcase_add_test(tcase, its_way_is_found_by_the_environment);
    tcase_add_test(tcase, the_dump_is_what_was_written);
}

TEST_MAIN("environment", add_tests)
