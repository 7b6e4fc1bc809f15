/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket: requests are executed, and the answer is their result. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ECHO "server { listen 127.0.0.1:$0; echo; }"
#define EVENTS_AND_ECHO "events {} stream { " ECHO " }\n"

/* Asks for a reload on a connection that stays open; the socket may move. */
static struct json_value ask_reload(struct daemon *daemon)
{
    return control_ask(daemon, "reload");
}

static int run_command(struct daemon *daemon, const char *order)
{
    return daemon_run(daemon, "-s", order, "-c", "forkbeard.conf", NULL);
}

/* Status */

static void check_worker(const struct daemon *daemon, struct json_value worker, unsigned slot)
{
    pid_t workers[4];

    ck_assert_uint_eq(proc_children(daemon->pid, workers, 4), 2);
    ck_assert(proc_has(workers, 2, (pid_t)control_number(worker, "pid")));
    ck_assert_int_eq(control_number(worker, "slot"), slot);
    ck_assert_str_eq(control_text(worker, "state"), "accepting");
    ck_assert_int_ge(control_number(worker, "uptime_ms"), 0);
    ck_assert_int_eq(control_number(worker, "restarts"), 0);
    ck_assert_int_eq(control_number(worker, "worker_connections_used"), 0);
    ck_assert_int_ge(control_number(worker, "cpu_ms"), 0);
    ck_assert_int_gt(control_number(worker, "memory"), 65536);
    ck_assert_int_gt(control_number(worker, "descriptors_max"), 3);
}

START_TEST(status_while_idle)
{
    struct daemon *daemon = daemon_start_new(2,
        "worker_processes 2; events {} stream { " ECHO
        " server { listen [::1]:$1 backlog=33; listen unix:$D/socket; echo; } }");
    struct json_value status, generation;

    client_reset(client_open(daemon->ports[0]));
    WAIT_FOR(control_number(json_member(control_ask(daemon, "status"), "totals"), "handled") == 1);
    status = control_ask(daemon, "status");
    ck_assert(control_is_ok(status));
    ck_assert_int_eq(control_number(status, "pid"), daemon->pid);
    ck_assert_str_eq(control_text(status, "state"), "running");
    ck_assert_ptr_nonnull(strstr(control_text(status, "configuration"), "/forkbeard.conf"));
    ck_assert_uint_eq(strlen(control_text(status, "started")), strlen("2026-11-21T09:30:00Z"));
    ck_assert_uint_eq(json_member(status, "reload").n, strlen("null"));

    ck_assert_uint_eq(control_count(status, "generations"), 1);
    generation = control_at(status, "generations", 0);
    ck_assert_int_eq(control_number(generation, "number"), 1);
    ck_assert_str_eq(control_text(generation, "state"), "live");
    ck_assert_uint_eq(control_count(generation, "workers"), 2);
    check_worker(daemon, control_at(generation, "workers", 0), 0);
    check_worker(daemon, control_at(generation, "workers", 1), 1);
    ck_assert_int_eq(control_number(json_member(status, "totals"), "accepts"), 1);

    ck_assert_uint_eq(control_count(status, "listeners"), 3);
    ck_assert_int_eq(control_number(control_at(status, "listeners", 0), "backlog"), 511);
    ck_assert_int_eq(control_number(control_at(status, "listeners", 1), "backlog"), 33);
    ck_assert_str_eq(control_text(control_at(status, "listeners", 2), "type"), "unix");
    ck_assert_uint_eq(json_member(control_at(status, "listeners", 2), "backlog").n, 4);
    daemon_finish(daemon);
}
END_TEST

static struct json_value find_state(struct json_value status, const char *state)
{
    for (unsigned i = 0; i < control_count(status, "generations"); i++)
        if (strcmp(control_text(control_at(status, "generations", i), "state"), state) == 0)
            return control_at(status, "generations", i);
    ck_abort_msg("no generation is %s", state);
}

START_TEST(status_while_draining)
{
    struct daemon *daemon = daemon_start_new(1, EVENTS_AND_ECHO);
    int client = client_open(daemon->ports[0]);
    struct json_value status, worker, answer;

    client_echo(client, "begun");
    answer = ask_reload(daemon);
    ck_assert(control_is_ok(answer));
    ck_assert_int_eq(control_number(answer, "generation"), 2);
    client_echo(client, "goes on");
    status = control_ask(daemon, "status");
    ck_assert_uint_eq(control_count(status, "generations"), 2);
    worker = control_at(find_state(status, "draining"), "workers", 0);
    ck_assert_str_eq(control_text(worker, "state"), "draining");
    ck_assert_int_eq(control_number(worker, "connections"), 1);
    ck_assert_int_eq(control_number(worker, "requests"), 2);
    worker = control_at(find_state(status, "live"), "workers", 0);
    ck_assert_int_eq(control_number(worker, "connections"), 0);
    ck_assert_int_eq(control_number(json_member(status, "totals"), "active"), 1);
    ck_assert(control_is_ok(json_member(status, "reload")));
    close(client);
    WAIT_FOR(control_count(control_ask(daemon, "status"), "generations") == 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(status_of_queues)
{
    struct daemon *daemon =
        daemon_start_new(1, "events {} stream { server { listen 127.0.0.1:$0 backlog=2; echo; } }");
    struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_port = htons(daemon->ports[0]),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    pid_t worker;
    int clients[8];

    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    proc_freeze(worker);
    for (int i = 0; i < 8; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(clients[i], (struct sockaddr *)&address, sizeof(address));
    }
    /* the kernel accepts one more than the backlog */
    WAIT_FOR(
        control_number(control_at(control_ask(daemon, "status"), "listeners", 0), "queue") == 3);
    WAIT_FOR(
        control_number(control_at(control_ask(daemon, "status"), "listeners", 0), "drops") > 0);
    for (int i = 0; i < 8; i++)
        close(clients[i]);
    ck_assert_int_eq(kill(worker, SIGCONT), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(status_for_people)
{
    struct daemon *daemon = daemon_start_new(1, "worker_processes 2; " EVENTS_AND_ECHO);
    char line[128];

    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_str_eq(daemon->err, "");
    snprintf(line, sizeof(line), "master process %d, running, up ", (int)daemon->pid);
    ck_assert_ptr_nonnull(strstr(daemon->out, line));
    ck_assert_ptr_nonnull(strstr(daemon->out, "\nGENERATION  STATE "));
    ck_assert_ptr_nonnull(strstr(daemon->out, "\n         1  live "));
    snprintf(line, sizeof(line), "\n127.0.0.1:%u ", daemon->ports[0]);
    ck_assert_ptr_nonnull(strstr(daemon->out, line));

    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "status", "--json", NULL), 0);
    ck_assert(control_is_ok(json_parse(daemon->out, strlen(daemon->out))));
    daemon_finish(daemon);
}
END_TEST

/* Failing reloads. `line` and `column` are of the message, 0: absent. */
static const struct {
    const char *configuration, *text;
    int line, column;
} mistakes[] = {
    { "events {}\nstream {\n    " ECHO "\n    wrong;\n}\n", "unknown directive \"wrong\"", 6, 5 },
    { "events {}\nstream {\n    " ECHO "\n    wrong;\n worker_processes 2; }\n",
        "\"worker_processes\" directive is not allowed here", 7, 2 },
    { "events {}\nstream {\n    " ECHO "\n", "unexpected end of file", 0, 0 },
    { "stream { " ECHO " }\n", "no \"events\" section", 0, 0 },
    { "events {} stream { " ECHO "\n server { listen 127.0.0.1:$1; } }\n",
        "failed (98: Address already in use)", 4, 18 },
    { "error_log nowhere/error.log; " EVENTS_AND_ECHO,
        "nowhere/error.log\" failed (2: No such file or directory)", 0, 0 },
    { "worker_processes 3; working_directory nowhere; " EVENTS_AND_ECHO,
        "/nowhere\") failed (2: No such file or directory)", 0, 0 },
    { "load_module " MODULES_PATH "/crashes_loaded.so;\n" EVENTS_AND_ECHO,
        ".so\" crashed while it was loaded: signal 11 (Segmentation fault) in /", 0, 0 },
    { "load_module " MODULES_PATH "/stranger.so;\n" EVENTS_AND_ECHO, "is not a Forkbeard module", 3,
        13 },
};

/* By the socket, and by -s. */
START_TEST(reload_fails)
{
    struct daemon *daemon = daemon_start_new(2, EVENTS_AND_ECHO);
    struct json_value answer, message;
    char place[64];

    ck_assert_int_eq(listen(daemon->reservations[1], 1), 0);
    daemon_expects(daemon, "[emerg]");
    daemon_configure(daemon, "%s", mistakes[_i].configuration);
    answer = ask_reload(daemon);
    ck_assert(!control_is_ok(answer));
    ck_assert_str_ne(control_text(answer, "error"), "");
    message = control_message(answer, mistakes[_i].text);
    ck_assert_str_eq(control_text(message, "level"), "emerg");
    if (mistakes[_i].line != 0) {
        ck_assert_int_eq(control_number(message, "line"), mistakes[_i].line);
        ck_assert_int_eq(control_number(message, "column"), mistakes[_i].column);
        ck_assert_ptr_nonnull(strstr(control_text(message, "file"), "/forkbeard.conf"));
        ck_assert_ptr_nonnull(strchr(control_text(message, "excerpt"), '^'));
        snprintf(
            place, sizeof(place), "forkbeard.conf:%d:%d\n", mistakes[_i].line, mistakes[_i].column);
    }
    ck_assert_int_eq(run_command(daemon, "reload"), 1);
    ck_assert_msg(strstr(daemon->err, mistakes[_i].text) != NULL, "%s", daemon->err);
    ck_assert(mistakes[_i].line == 0 || strstr(daemon->err, place) != NULL);
    ck_assert_ptr_nonnull(
        strstr(daemon->err, "[error] reload failed: the previous configuration stays in force\n"));
    ck_assert(!control_is_ok(json_member(control_ask(daemon, "status"), "reload")));
    ck_assert_int_eq(control_number(control_ask(daemon, "status"), "reloads_failed"), 2);
    WAIT_FOR(proc_child_n(daemon->pid) == 1);

    daemon_configure(daemon, EVENTS_AND_ECHO);
    ck_assert_int_eq(run_command(daemon, "reload"), 0);
    ck_assert_str_eq(daemon->err, "");
    ck_assert(control_is_ok(json_member(control_ask(daemon, "status"), "reload")));
    ck_assert_int_eq(control_number(control_ask(daemon, "status"), "reloads"), 3);
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "\nreloads since the start: 3, 2 failed\n"));
    daemon_finish(daemon);
}
END_TEST

/* A reload by a signal is shown too. */
START_TEST(result_of_a_signal)
{
    struct daemon *daemon = daemon_start_new(1, EVENTS_AND_ECHO);

    daemon_expects(daemon, "[emerg]");
    daemon_configure(daemon, "events {} wrong;");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "reload failed");
    ck_assert_ptr_nonnull(
        strstr(control_text(json_member(control_ask(daemon, "status"), "reload"), "error"),
            "unknown directive \"wrong\" in "));
    daemon_finish(daemon);
}
END_TEST

/* Two clients ask while a foreign reload runs. A third is shown it. */
START_TEST(clients_at_once)
{
    struct daemon *daemon = daemon_create(1);
    int first, second, third, impatient;
    char late[128];

    daemon_configure(daemon, "load_module " MODULES_PATH "/hangs.so; events {} stream {"
                             " server { listen 127.0.0.1:$0; hangs; hangs_while $D/late; } }");
    daemon_start(daemon);
    daemon_write(daemon, "late", "x");
    snprintf(late, sizeof(late), "%s", daemon_path(daemon, "late"));
    first = control_open(daemon);
    control_send(first, "reload");
    WAIT_FOR(daemon_count_log(daemon, "start worker process") == 2);
    second = control_open(daemon);
    control_send(second, "reload");
    third = control_open(daemon);
    control_send(third, "reload");
    impatient = control_open(daemon);
    control_send(impatient, "reload");
    close(impatient);
    WAIT_FOR(daemon_count_log(daemon, "\"reload\" received from ") == 4);
    ck_assert_str_eq(control_text(control_ask(daemon, "status"), "state"), "reloading");
    ck_assert_uint_eq(
        control_count(find_state(control_ask(daemon, "status"), "starting"), "workers"), 1);
    ck_assert(client_is_quiet(first) && client_is_quiet(second) && client_is_quiet(third));

    ck_assert_int_eq(unlink(late), 0);
    ck_assert_int_eq(control_number(control_receive(first), "generation"), 2);
    ck_assert_int_eq(control_number(control_receive(second), "generation"), 3);
    ck_assert_int_eq(control_number(control_receive(third), "generation"), 3);
    control_send(first, "status"); /* they can go on asking */
    ck_assert_str_eq(control_text(control_receive(first), "state"), "running");
    close(first);
    close(second);
    close(third);
    daemon_finish(daemon);
}
END_TEST

/* A client that waits for a reload when the end comes is told so. */
START_TEST(end_while_clients_wait)
{
    static const char *const orders[] = { "stop", "quit" };
    struct daemon *daemon = daemon_create(1);
    int first, second;

    daemon_configure(daemon, "load_module " MODULES_PATH "/hangs.so; events {} stream {"
                             " server { listen 127.0.0.1:$0; hangs; hangs_while $D/late; } }");
    daemon_start(daemon);
    daemon_write(daemon, "late", "x");
    daemon_expects(daemon, "exited on signal 9");
    first = control_open(daemon);
    control_send(first, "reload");
    WAIT_FOR(daemon_count_log(daemon, "start worker process") == 2);
    second = control_open(daemon);
    control_send(second, "reload");
    WAIT_FOR(daemon_count_log(daemon, "\"reload\" received from ") == 2);
    ck_assert_int_eq(run_command(daemon, orders[_i]), 0);
    ck_assert(!control_is_ok(control_receive(first)));
    ck_assert_str_eq(control_text(control_receive(second), "error"), "the daemon is ending");
    ck_assert_int_eq(daemon_wait(daemon), 0);
    close(first);
    close(second);
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    daemon_finish(daemon);
}
END_TEST

/* Begins a reload with a reader of the configuration stopped while "$D/late" exists. */
static int hang_reading(struct daemon *daemon)
{
    int client;

    daemon_write(daemon, "late", "x");
    daemon_configure(daemon,
        "load_module " MODULES_PATH "/hangs.so; events {} stream {"
        " server { listen 127.0.0.1:$0; hangs; hangs_reading_while $D/late; } }");
    client = control_open(daemon);
    control_send(client, "reload");
    WAIT_FOR(strcmp(control_text(control_ask(daemon, "status"), "state"), "reloading") == 0);
    return client;
}

/* A slow configuration does not block the master. */
START_TEST(a_long_check_is_waited_for)
{
    struct daemon *daemon = daemon_start_new(1, EVENTS_AND_ECHO);
    int client = hang_reading(daemon);

    daemon_expects(daemon, "exited on signal 9");
    kill((pid_t)control_number(
             control_at(find_state(control_ask(daemon, "status"), "live"), "workers", 0), "pid"),
        SIGKILL);
    WAIT_FOR(daemon_count_log(daemon, "start worker process") == 2);
    ck_assert(client_is_quiet(client));
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    ck_assert_int_eq(control_number(control_receive(client), "generation"), 2);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(an_end_does_not_wait_for_a_check)
{
    static const char *const orders[] = { "stop", "quit" };
    struct daemon *daemon = daemon_start_new(1, EVENTS_AND_ECHO);
    int client = hang_reading(daemon);

    ck_assert_int_eq(run_command(daemon, orders[_i]), 0);
    ck_assert_str_eq(control_text(control_receive(client), "error"), "the daemon is ending");
    close(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(quit_is_seen_to_its_end)
{
    struct daemon *daemon = daemon_start_new(1, EVENTS_AND_ECHO);
    int session = client_open(daemon->ports[0]), client = control_open(daemon), other;
    char aside[64];

    client_echo(session, "begun");
    control_send(client, "quit");
    ck_assert(control_is_ok(control_receive(client)));
    WAIT_FOR(client_error(daemon->ports[0]) == ECONNREFUSED); /* the reply is bounded */
    snprintf(aside, sizeof(aside), "forkbeard.sock.quit.%d", (int)daemon->pid);
    other = client_open_unix(daemon_path(daemon, aside));
    control_send(other, "status");
    ck_assert_str_eq(control_text(control_receive(other), "state"), "quitting");
    control_send(other, "reload");
    ck_assert_str_eq(control_text(control_receive(other), "error"), "the daemon is ending");
    close(other);
    ck_assert(client_is_quiet(client));
    client_echo(session, "goes on");
    if (_i == 0)
        close(session);
    else
        ck_assert_int_eq(run_command(daemon, "stop"), 0);
    client_expect_end(client);
    ck_assert(!daemon_has(daemon, aside));
    close(client);
    if (_i == 1) {
        client_expect_gone(session);
        close(session);
    }
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(reopen)
{
    struct daemon *daemon = daemon_create(1);
    struct json_value answer;
    char old[128], away[128];

    snprintf(old, sizeof(old), "%s", daemon_path(daemon, "logs"));
    snprintf(away, sizeof(away), "%s", daemon_path(daemon, "away"));
    ck_assert_int_eq(mkdir(old, 0755), 0);
    daemon_configure(daemon, "error_log logs/error.log; " EVENTS_AND_ECHO);
    daemon_start(daemon);
    ck_assert_int_eq(unlink(daemon_path(daemon, "logs/error.log")), 0);
    answer = control_ask(daemon, "reopen");
    ck_assert(control_is_ok(answer));
    ck_assert(daemon_has(daemon, "logs/error.log"));
    ck_assert_int_eq(run_command(daemon, "reopen"), 0);
    ck_assert_str_eq(daemon->err, "");

    daemon_expects(daemon, "the old file stays in use");
    ck_assert_int_eq(rename(old, away), 0);
    answer = control_ask(daemon, "reopen");
    ck_assert(!control_is_ok(answer));
    ck_assert_ptr_nonnull(strstr(control_text(answer, "error"),
        "logs/error.log\" failed, the old file stays in use (2: No such file or directory)"));
    ck_assert_int_eq(run_command(daemon, "reopen"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "the old file stays in use"));
    ck_assert_ptr_nonnull(strstr(daemon->err, "[error] reopen failed\n"));
    daemon_stop(daemon, SIGTERM);
    ck_assert_int_eq(unlink(daemon_path(daemon, "away/error.log")), 0);
    ck_assert_int_eq(rmdir(away), 0);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, status_while_idle);
    tcase_add_test(tcase, status_while_draining);
    tcase_add_test(tcase, status_of_queues);
    tcase_add_test(tcase, status_for_people);
    tcase_add_loop_test(tcase, reload_fails, 0, sizeof(mistakes) / sizeof(mistakes[0]));
    tcase_add_test(tcase, result_of_a_signal);
    tcase_add_test(tcase, clients_at_once);
    tcase_add_loop_test(tcase, end_while_clients_wait, 0, 2);
    tcase_add_test(tcase, a_long_check_is_waited_for);
    tcase_add_loop_test(tcase, an_end_does_not_wait_for_a_check, 0, 2);
    tcase_add_loop_test(tcase, quit_is_seen_to_its_end, 0, 2);
    tcase_add_test(tcase, reopen);
}

TEST_MAIN("control", add_tests)
