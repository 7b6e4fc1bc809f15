/* SPDX-License-Identifier: BSD-2-Clause */
/* Error logs of stream {} and server {}: their lines, and a life like the main log's. All
 * destinations of a log get equal lines. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/log_receiver.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEGUN " connected to 127.0.0.1:"
#define ENDED "client disconnected, "
#define SERVER(port, rest) "server { listen 127.0.0.1:$" #port "; echo; " rest " }"

static const char *const kinds[] = { "", "master_process off; " };

/* Lines with the text in a file of the daemon's. */
static unsigned count_lines(struct daemon *daemon, const char *name, const char *text)
{
    unsigned n = 0;

    if (!daemon_has(daemon, name))
        return 0;
    for (const char *at = daemon_text(daemon, name); (at = strstr(at, text)) != NULL; n++)
        at += strlen(text);
    return n;
}

/* Runs a session, and waits until the line of its end is in the file. */
static void run_session(struct daemon *daemon, unsigned port, const char *name)
{
    unsigned before = count_lines(daemon, name, ENDED);

    client_run_session(daemon->ports[port]);
    WAIT_FOR(count_lines(daemon, name, ENDED) == before + 1);
}

static void own_files(struct daemon *daemon)
{
    daemon_owns(daemon, "a.log");
    daemon_owns(daemon, "b.log");
    daemon_owns(daemon, "c.log");
    daemon_owns(daemon, "main.log");
}

START_TEST(lines_of_sessions_go_to_their_servers_log)
{
    struct daemon *daemon = daemon_create(4);

    own_files(daemon);
    daemon_expects(daemon, "access forbidden");
    daemon_configure(daemon,
        "%sevents {} stream { error_log a.log info;" SERVER(0, "")
            SERVER(1, "error_log b.log info; error_log c.log error; error_log a.log crit;") SERVER(
                2, "error_log c.log error; deny all;") SERVER(3, "error_log $D/main.log;") "}",
        kinds[_i]);
    daemon_start(daemon);
    run_session(daemon, 0, "a.log");
    run_session(daemon, 1, "b.log");
    client_expect_gone(client_open(daemon->ports[2]));
    WAIT_FOR(count_lines(daemon, "c.log", "[error] ") == 1);
    client_run_session(daemon->ports[3]);
    ck_assert_uint_eq(count_lines(daemon, "a.log", "\n"), 2);
    ck_assert_uint_eq(count_lines(daemon, "a.log", BEGUN), 1);
    ck_assert_uint_eq(count_lines(daemon, "b.log", "\n"), 2);
    ck_assert_uint_eq(count_lines(daemon, "c.log", "\n"), 1);
    ck_assert_uint_eq(count_lines(daemon, "c.log", "access forbidden by rule"), 1);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(daemon_count_log(daemon, "client "), 0);
    ck_assert_uint_eq(count_lines(daemon, "a.log", "exit"), 0);
    daemon_finish(daemon);
}
END_TEST

/* Servers logging to one file share a single descriptor, at all levels. */
START_TEST(a_file_is_opened_once)
{
    struct daemon *daemon = daemon_create(3);
    unsigned descriptors;

    own_files(daemon);
    daemon_configure(daemon,
        "events {} stream { error_log a.log info;" SERVER(0, "") SERVER(1, "") SERVER(2, "") "}");
    daemon_start(daemon);
    descriptors = proc_descriptors(daemon->pid);
    daemon_configure(daemon,
        "events {} stream { error_log a.log info;" SERVER(0, "error_log a.log notice;")
            SERVER(1, "error_log a.log debug;") SERVER(2, "error_log a.log;") "}");
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    run_session(daemon, 1, "a.log");
    daemon_finish(daemon);
}
END_TEST

START_TEST(reopened_and_reloaded)
{
    struct daemon *daemon = daemon_create(1);
    char *away;

    own_files(daemon);
    daemon_owns(daemon, "a.old");
    daemon_configure(
        daemon, "%sevents {} stream {" SERVER(0, "error_log a.log info;") "}", kinds[_i]);
    daemon_start(daemon);
    run_session(daemon, 0, "a.log");
    away = strdup(daemon_path(daemon, "a.old"));
    ck_assert_int_eq(rename(daemon_path(daemon, "a.log"), away), 0);
    free(away);
    daemon_signal(daemon, SIGUSR1);
    WAIT_FOR(daemon_has(daemon, "a.log"));
    for (int64_t until = deadline_ms(); count_lines(daemon, "a.log", ENDED) == 0; pause_briefly()) {
        ck_assert_msg(now_ms() < until, "no line arrives");
        client_run_session(daemon->ports[0]);
    }
    if (_i == 0) {
        daemon_configure(daemon, "events {} stream {" SERVER(0, "error_log b.log info;") "}");
        ck_assert(control_is_ok(control_ask(daemon, "reload")));
        run_session(daemon, 0, "b.log");
    }
    daemon_finish(daemon);
}
END_TEST

/* A further line of a flood, however long it takes; whether the lines were summed up. */
static bool is_summed_up(struct daemon *daemon)
{
    client_run_session(daemon->ports[0]);
    return count_lines(daemon, "a.log", "were suppressed in the last ") > 0;
}

/* A flood is summed up in the log of the lines. */
START_TEST(a_flood_is_summed_up_in_its_log)
{
    struct daemon *daemon = daemon_create(2);

    own_files(daemon);
    daemon_configure(
        daemon, "error_log_rate_limit burst=3 interval=200ms; events {} stream {" SERVER(
                    0, "error_log a.log info;") SERVER(1, "error_log b.log info;") "}");
    daemon_start(daemon);
    client_run_session(daemon->ports[1]);
    WAIT_FOR(is_summed_up(daemon));
    WAIT_FOR(count_lines(daemon, "b.log", ENDED) == 1);
    daemon_stop(daemon, SIGTERM);
    ck_assert_uint_eq(count_lines(daemon, "b.log", "suppressed"), 0);
    ck_assert_uint_eq(daemon_count_log(daemon, "suppressed"), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(syslog_of_a_server)
{
    struct daemon *daemon = daemon_create(2);
    int receiver = log_receiver_unix(daemon, "syslog");

    own_files(daemon);
    daemon_configure(daemon,
        "events {} stream { error_log a.log info;" SERVER(0, "")
            SERVER(1, "error_log syslog:server=unix:$D/syslog,nohostname,tag=one info;") "}");
    daemon_start(daemon);
    client_run_session(daemon->ports[1]);
    ck_assert_ptr_nonnull(strstr(log_receiver_wait(receiver, ENDED), " one: "));
    run_session(daemon, 0, "a.log");
    ck_assert_uint_eq(count_lines(daemon, "a.log", ENDED), 1);
    ck_assert_uint_eq(log_receiver_drain(receiver, ""), 0);
    daemon_stop(daemon, SIGTERM);
    ck_assert_uint_eq(log_receiver_drain(receiver, ""), 0);
    log_receiver_end(daemon, "syslog", receiver);
    daemon_finish(daemon);
}
END_TEST

/* Equal lines go to all destinations of the main log, up to their level. */
START_TEST(destinations_get_the_same_lines)
{
    struct daemon *daemon = daemon_create(2);
    char *whole, *other, *rest, *line;
    unsigned n = 0;

    own_files(daemon);
    daemon_expects(daemon, "access forbidden");
    daemon_configure(daemon,
        "%serror_log a.log info; error_log b.log notice; error_log c.log error; events {} stream "
        "{" SERVER(0, "") SERVER(1, "deny all;") "}",
        kinds[_i]);
    daemon_start(daemon);
    run_session(daemon, 0, "a.log");
    client_expect_gone(client_open(daemon->ports[1]));
    WAIT_FOR(count_lines(daemon, "c.log", "access forbidden") == 1);
    if (_i == 0)
        ck_assert(control_is_ok(control_ask(daemon, "reload")));
    daemon_stop(daemon, SIGQUIT);

    other = strdup(daemon_text(daemon, "b.log"));
    rest = whole = strdup(daemon_text(daemon, "a.log"));
    while ((line = strsep(&rest, "\n")) != NULL) {
        bool is_info = strstr(line, "[info]") != NULL;

        if (*line == '\0')
            continue;
        n += !is_info;
        ck_assert_msg((strstr(other, line) == NULL) == is_info, "%s", line);
    }
    ck_assert_uint_eq(count_lines(daemon, "b.log", "\n"), n);
    ck_assert_uint_eq(count_lines(daemon, "c.log", "\n"), 1);
    free(other);
    free(whole);
    daemon_finish(daemon);
}
END_TEST

/* Clients get the next number, in the log too, whichever worker accepts, and after a reload. */
START_TEST(clients_are_numbered_over_all_workers)
{
    struct daemon *daemon = daemon_create(1);
    char number[32];

    own_files(daemon);
    daemon_configure(daemon,
        "worker_processes 3; error_log a.log info; events { accept_mutex off; }"
        " stream { server { listen 127.0.0.1:$0 reuseport; return $connection; } }");
    daemon_start(daemon);
    for (int i = 1; i <= 60; i++) {
        if (i == 31)
            ck_assert(control_is_ok(control_ask(daemon, "reload")));
        snprintf(number, sizeof(number), "%d", i);
        ck_assert_str_eq(client_read_all(client_open(daemon->ports[0])), number);
        snprintf(number, sizeof(number), ": *%d client 127.", i);
        WAIT_FOR(count_lines(daemon, "a.log", number) == 1);
    }
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, lines_of_sessions_go_to_their_servers_log, 0, 2);
    tcase_add_test(tcase, a_file_is_opened_once);
    tcase_add_loop_test(tcase, reopened_and_reloaded, 0, 2);
    tcase_add_test(tcase, a_flood_is_summed_up_in_its_log);
    tcase_add_test(tcase, syslog_of_a_server);
    tcase_add_test(tcase, clients_are_numbered_over_all_workers);
    tcase_add_loop_test(tcase, destinations_get_the_same_lines, 0, 2);
}

TEST_MAIN("daemon_server_logs", add_tests)
