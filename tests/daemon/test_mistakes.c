/* SPDX-License-Identifier: BSD-2-Clause */
/* The mistakes of a module that debug_modules finds: each is a line of the error log, and the end
 * of the process; and without the directive a module is served as ever. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MISTAKEN "load_module " MODULES_PATH "/mistaken.so;"
#define SERVER(directives) "stream { server { listen 127.0.0.1:$0; mistaken; " directives " } }"

static const struct {
    const char *name, *report;
} mistakes[] = {
#define MISTAKE(name, report) { #name, report },
#include "module/mistakes.def"
#undef MISTAKE
};

#define MISTAKES ((int)(sizeof(mistakes) / sizeof(mistakes[0])))

static void expect_report(struct daemon *daemon, const char *report)
{
    char expected[256];

    snprintf(expected, sizeof(expected), "#0: protocol \"mistaken\" %s\n", report);
    ck_assert_msg(strstr(daemon_text(daemon, "error.log"), expected) != NULL, "%s\nand not\n%s",
        daemon_text(daemon, "error.log"), expected);
}

/* Returns the client with the request for the mistake. */
static int make_mistake(const struct daemon *daemon, const char *name)
{
    int client = client_open(daemon->ports[0]), next;
    char line[64];

    snprintf(line, sizeof(line), "%s\n", name);
    client_send(client, line);
    if (strcmp(name, "reused_slot") == 0) {
        client_expect_gone(client);
        next = client_open(daemon->ports[0]);
        client_send(next, "go\n");
        close(next);
    }
    return client;
}

START_TEST(each_mistake_is_named)
{
    struct daemon *daemon = daemon_create(1);
    int code, client;

    daemon->before_exec = daemon_ignore_leaks;
    daemon_configure(
        daemon, "master_process off; debug_modules on; " MISTAKEN "events { } " SERVER(""));
    daemon_start(daemon);
    daemon_expects(daemon, mistakes[_i].report);
    daemon_owns(daemon, "forkbeard.pid");
    daemon_owns(daemon, "forkbeard.pid.lock");
    daemon_owns(daemon, "forkbeard.sock");
    client = make_mistake(daemon, mistakes[_i].name);
    code = daemon_wait(daemon);
    ck_assert_msg(code == 128 + SIGABRT || code == 128 + SIGSEGV || code == 128 + SIGBUS,
        "%s ends with %d", mistakes[_i].name, code);
    close(client);
    expect_report(daemon, mistakes[_i].report);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_worker_is_replaced)
{
    struct daemon *daemon =
        daemon_start_new(1, "debug_modules on; " MISTAKEN "events { } " SERVER(""));

    daemon_expects(daemon, "called fb_write() with NULL as a connection");
    daemon_expects(daemon, "exited on signal 6");
    daemon_expects(daemon, "a worker process died at once");
    close(make_mistake(daemon, "null_conn"));
    daemon_wait_log(daemon, "protocol \"mistaken\" called fb_write() with NULL as a connection");
    daemon_wait_log(daemon, "in callback \"data\" of protocol \"mistaken\"");
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

/* Someone else's signal is no crash of a protocol, and ends the process at once. */
START_TEST(a_signal_is_taken)
{
    struct daemon *daemon = daemon_create(1);

    daemon->before_exec = daemon_ignore_leaks;
    daemon_configure(
        daemon, "master_process off; debug_modules on; " MISTAKEN "events { } " SERVER(""));
    daemon_start(daemon);
    daemon_owns(daemon, "forkbeard.pid");
    daemon_owns(daemon, "forkbeard.pid.lock");
    daemon_owns(daemon, "forkbeard.sock");
    daemon_signal(daemon, SIGSEGV);
    ck_assert_int_eq(daemon_wait(daemon), 128 + SIGSEGV);
    daemon_finish(daemon);
}
END_TEST

/* Mistakes of the configuration. */
static const struct {
    const char *directives, *report;
} configurations[] = {
    { "mistaken_at conf_done;", "called fb_wall_ms() in conf_done" },
    { "mistaken_set;", "called fb_address_text() with NULL as address" },
    { "mistaken_set;", "called fb_mono_ms() in `set`" },
};

START_TEST(a_configuration_is_refused)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "debug_modules on; " MISTAKEN "events { } stream { server { listen 127.0.0.1:$0; mistaken; "
        "%s } }",
        configurations[_i].directives);
    daemon_expects(daemon, "protocol \"mistaken\" called ");
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_msg(strstr(daemon->err, configurations[_i].report) != NULL, "%s", daemon->err);
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_master_goes_on)
{
    struct daemon *daemon = daemon_start_new(
        1, "debug_modules on; " MISTAKEN "events { } " SERVER("mistaken_at conf_accepted;"));

    daemon_expects(daemon, "called fb_worker_count() in conf_accepted");
    daemon_wait_log(daemon, "protocol \"mistaken\" called fb_worker_count() in conf_accepted");
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_directive_stands_before_modules)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, MISTAKEN "debug_modules on; events { } " SERVER(""));
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(
        strstr(daemon->err, "\"debug_modules\" must stand before the first \"load_module\""));
    daemon_finish(daemon);
}
END_TEST

/* Bytes passed to a call are not looked at. */
START_TEST(nothing_is_checked_without_it)
{
    struct daemon *daemon = daemon_start_new(1, MISTAKEN "events { } " SERVER(""));
    int client = client_open(daemon->ports[0]);

    client_send(client, "close_write\n");
    client_expect_end(client);
    close(client);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, each_mistake_is_named, 0, MISTAKES);
    tcase_add_test(tcase, a_worker_is_replaced);
    tcase_add_test(tcase, a_signal_is_taken);
    tcase_add_loop_test(
        tcase, a_configuration_is_refused, 0, sizeof(configurations) / sizeof(configurations[0]));
    tcase_add_test(tcase, the_master_goes_on);
    tcase_add_test(tcase, the_directive_stands_before_modules);
    tcase_add_test(tcase, nothing_is_checked_without_it);
}

TEST_MAIN("mistakes", add_tests)
