/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers that all die at once: the log and the status say that nobody serves, and when one does
 * again. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 2
#define ALERT                                                                                      \
    "no worker process serves: all 2 of generation 1 crash as they start, the last one exited "

/* Makes workers crash, one client after the other, until all wait to be forked again. */
static void crash_all(struct daemon *daemon)
{
    while (daemon_count_log(daemon, ALERT) == 0) {
        int client = client_open(daemon->ports[0]);

        client_expect_gone(client);
        close(client);
    }
}

START_TEST(nobody_serves)
{
    struct daemon *daemon = daemon_start_new(1,
        "worker_processes %d; load_module " MODULES_PATH "/trouble.so; events { accept_mutex off; }"
        "stream { server { listen 127.0.0.1:$0; troubled; trouble client abort; } }",
        WORKERS);
    struct json_value status;

    daemon_expects(daemon, "exited on signal 6");
    daemon_expects(daemon, "died at once");
    daemon_expects(daemon, "held back");
    crash_all(daemon);
    ck_assert_uint_eq(
        daemon_count_log(daemon, ALERT "on signal 6 (Aborted), the next one starts in "), 1);
    status = control_ask(daemon, "status");
    ck_assert_str_eq(control_text(status, "state"), "crashing");
    ck_assert_str_eq(control_text(control_at(status, "generations", 0), "state"), "crashing");
    daemon_wait_log(daemon, "worker processes serve again");
    status = control_ask(daemon, "status");
    ck_assert_str_eq(control_text(status, "state"), "running");
    ck_assert_str_eq(control_text(control_at(status, "generations", 0), "state"), "live");
    ck_assert_uint_eq(daemon_count_log(daemon, ALERT), 1);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* A new configuration ends it. */
START_TEST(a_reload_ends_it)
{
    struct daemon *daemon = daemon_start_new(1,
        "worker_processes 1; load_module " MODULES_PATH "/trouble.so; events { }"
        "stream { server { listen 127.0.0.1:$0; troubled; trouble later 300; } }");

    daemon_expects(daemon, "exited on signal 14");
    daemon_expects(daemon, "died at once");
    daemon_wait_log(daemon, "no worker process serves: all 1 of generation 1 crash as they start");
    daemon_configure(daemon, "events { } stream { server { listen 127.0.0.1:$0; echo; } }");
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_str_eq(control_text(control_ask(daemon, "status"), "state"), "running");
    ck_assert_uint_eq(daemon_count_log(daemon, "worker processes serve again"), 1);
    ck_assert_uint_eq(daemon_count_log(daemon, "no worker process serves"), 1);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, nobody_serves);
    tcase_add_test(tcase, a_reload_ends_it);
}

TEST_MAIN("backoff", add_tests)
