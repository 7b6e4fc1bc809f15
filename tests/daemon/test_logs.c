/* SPDX-License-Identifier: BSD-2-Clause */
/* Destinations of the error log besides a file of text, and the limit of lines. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/log_receiver.h"
#include "daemon/proc.h"
#include "daemon/quit.h"
#include "daemon/upgrade.h"

#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ECHO "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n"
#define UNIX_LOG "error_log syslog:server=unix:$D/syslog,nohostname,tag=fb info; "
#define ENDED "client disconnected, bytes from/to client:"

static const char *const kinds[] = { "", "master_process off; " };

static struct daemon *start_daemon(const char *kind, const char *directives)
{
    return daemon_start_new(1, "%s%s" ECHO, kind, directives);
}

/* The receiver is there to the end. */
static void finish_daemon(struct daemon *daemon, int receiver)
{
    if (daemon->pid != 0)
        daemon_stop(daemon, SIGTERM);
    log_receiver_end(daemon, "syslog", receiver);
    daemon_finish(daemon);
}

START_TEST(syslog_by_udp)
{
    char directives[128];
    in_port_t port = 0;
    int receiver = log_receiver_udp(&port);
    struct daemon *daemon;
    const char *line;

    snprintf(directives, sizeof(directives),
        "error_log syslog:server=127.0.0.1:%u,nohostname,facility=daemon info;", port);
    daemon = start_daemon(kinds[_i], directives);
    client_run_session(daemon->ports[0]);
    line = log_receiver_wait(receiver, ENDED);
    ck_assert_int_eq(strncmp(line, "<30>", 4), 0);
    ck_assert_ptr_nonnull(strstr(line, " forkbeard: "));
    ck_assert_ptr_nonnull(
        strstr(line, ", reason: finished, client: 127.0.0.1, server: 127.0.0.1:"));
    ck_assert_ptr_nonnull(strstr(line, "#0: *1 " ENDED "1/1, session time: "));
    ck_assert_ptr_null(strchr(line, '\n'));
    daemon_stop(daemon, SIGTERM);
    log_receiver_wait(receiver, "exit");
    close(receiver);
    daemon_finish(daemon);
}
END_TEST

/* Lines reach a restarted receiver, although the daemon was not told. */
static void wait_for_lines(struct daemon *daemon, int receiver)
{
    for (int64_t until = deadline_ms(); log_receiver_drain(receiver, ENDED) == 0; pause_briefly()) {
        ck_assert_msg(now_ms() < until, "no line arrives");
        client_run_session(daemon->ports[0]);
    }
}

START_TEST(syslog_receiver_restarts)
{
    struct daemon *daemon = daemon_create(1);
    int receiver = log_receiver_unix(daemon, "syslog");

    daemon_expects(daemon, "not accepted by syslog server");
    daemon_expects(daemon, "connect() to syslog server");
    daemon_configure(daemon, "%s" UNIX_LOG ECHO, kinds[_i]);
    daemon_start(daemon);
    client_run_session(daemon->ports[0]);
    log_receiver_wait(receiver, ENDED);
    for (int i = 0; i < 2; i++) {
        log_receiver_end(daemon, "syslog", receiver);
        client_run_session(daemon->ports[0]);
        if (i == 1) /* the send was tried in vain */
            daemon_wait_log(daemon, "connect() to syslog server");
        receiver = log_receiver_unix(daemon, "syslog");
        wait_for_lines(daemon, receiver);
        if (i == 1)
            daemon_wait_log(daemon, "can be reached again");
        daemon_wait_log(daemon, "not accepted by syslog server unix:");
    }
    finish_daemon(daemon, receiver);
}
END_TEST

START_TEST(start_without_a_receiver)
{
    struct daemon *daemon = daemon_create(1);
    int receiver;

    daemon_expects(daemon, "connect() to syslog server");
    daemon_expects(daemon, "not accepted by syslog server");
    daemon_configure(daemon, "%s" UNIX_LOG ECHO, kinds[_i]);
    daemon_start(daemon);
    ck_assert_ptr_nonnull(strstr(daemon_text(daemon, "daemon.err"),
        "failed, lines for it are lost (2: No such file or directory)"));
    receiver = log_receiver_unix(daemon, "syslog");
    wait_for_lines(daemon, receiver);
    finish_daemon(daemon, receiver);
}
END_TEST

/* More lines than its queue holds: clients are served, and the rest is counted. */
START_TEST(slow_receiver)
{
    struct daemon *daemon = daemon_create(1);
    int receiver = log_receiver_unix(daemon, "syslog");

    daemon_expects(daemon, "not accepted by syslog server");
    daemon_configure(daemon, "%serror_log_rate_limit off; " UNIX_LOG ECHO, kinds[_i]);
    daemon_start(daemon);
    for (int i = 0; i < 1000; i++)
        client_run_session(daemon->ports[0]);
    ck_assert_uint_eq(daemon_count_log(daemon, "not taken"), 0);
    if (_i == 0) { /* the single process has no control socket */
        WAIT_FOR(control_number(control_ask(daemon, "status"), "log_lines_lost") > 0);
        ck_assert_int_eq(daemon_run(daemon, "status", "--check", "-c", "forkbeard.conf", NULL), 1);
        ck_assert_ptr_nonnull(strstr(daemon->out, "\nwarning: log lines were lost, "));
    }
    ck_assert_uint_lt(log_receiver_drain(receiver, ENDED), 1000);
    client_run_session(daemon->ports[0]);
    log_receiver_wait(receiver, " lines were not accepted by syslog server unix:");
    log_receiver_wait(receiver, ENDED);
    daemon_wait_log(daemon, " lines were not accepted by syslog server unix:");
    finish_daemon(daemon, receiver);
}
END_TEST

START_TEST(reopening_connects_again)
{
    struct daemon *daemon = daemon_create(1);
    int receiver = log_receiver_unix(daemon, "syslog"), other;
    struct json_value answer;

    daemon_expects(daemon, "connect() to syslog server");
    daemon_configure(daemon, "worker_processes 2; " UNIX_LOG ECHO);
    daemon_start(daemon);
    ck_assert_int_eq(unlink(daemon_path(daemon, "syslog")), 0); /* the receiver listens on */
    answer = control_ask(daemon, "reopen");
    ck_assert(!control_is_ok(answer));
    ck_assert_ptr_nonnull(
        strstr(control_text(answer, "error"), "connect() to syslog server unix:"));
    client_run_session(daemon->ports[0]);
    log_receiver_wait(receiver, ENDED);

    other = log_receiver_unix(daemon, "syslog");
    ck_assert(control_is_ok(control_ask(daemon, "reopen")));
    client_run_session(daemon->ports[0]);
    log_receiver_wait(other, ENDED);
    ck_assert_uint_eq(log_receiver_drain(receiver, ENDED), 0);
    close(receiver);
    finish_daemon(daemon, other);
}
END_TEST

START_TEST(reloads_leave_no_socket)
{
    struct daemon *daemon = daemon_create(1);
    int receiver = log_receiver_unix(daemon, "syslog");
    unsigned descriptors;

    daemon_configure(daemon, UNIX_LOG ECHO);
    daemon_start(daemon);
    descriptors = proc_descriptors(daemon->pid);
    for (int i = 0; i < 3; i++) {
        ck_assert(control_is_ok(control_ask(daemon, "reload")));
        log_receiver_wait(receiver, "exited with code 0"); /* the receiver's queue is short */
    }
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    client_run_session(daemon->ports[0]);
    log_receiver_wait(receiver, ENDED);

    daemon_configure(daemon, ECHO);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors - 1);
    log_receiver_drain(receiver, "");
    client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    ck_assert_str_eq(log_receiver_next(receiver), "");
    finish_daemon(daemon, receiver);
}
END_TEST

/* Every line of every process. */
START_TEST(json)
{
    struct daemon *daemon = start_daemon(kinds[_i], "error_log lines.json info json; ");
    char *lines, *rest, *line;
    int seen = 0;

    daemon_owns(daemon, "lines.json");
    client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGQUIT);
    rest = lines = strdup(daemon_text(daemon, "lines.json"));
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        struct json_value object = json_parse(line, strlen(line));

        ck_assert_msg(object.text != NULL, "%s", line);
        ck_assert_int_gt(control_number(object, "pid"), 0);
        if (strstr(control_text(object, "message"), "client ") == NULL)
            continue;
        seen++;
        ck_assert_int_eq(control_number(object, "connection"), 1);
        ck_assert_str_eq(control_text(object, "level"), "info");
        ck_assert_str_eq(control_text(object, "client"), "127.0.0.1");
        ck_assert_int_eq(strncmp(control_text(object, "server"), "127.0.0.1:", 10), 0);
        ck_assert_str_eq(control_text(object, "protocol"), "echo");
    }
    ck_assert_int_eq(seen, 2);
    free(lines);
    daemon_finish(daemon);
}
END_TEST

/* Fails unless as many lines of the log match, from their levels on. */
static void count_lines(struct daemon *daemon, const char *format, in_port_t port, unsigned n)
{
    char *lines = strdup(daemon_text(daemon, daemon->log)), *rest = lines, *line, pattern[512];
    regex_t regex;

    snprintf(pattern, sizeof(pattern), format, port, port);
    ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    while ((line = strsep(&rest, "\n")) != NULL)
        n -= regexec(&regex, line, 0, NULL, 0) == 0;
    ck_assert_msg(n == 0, "%s: %s", pattern, daemon_text(daemon, daemon->log));
    regfree(&regex);
    free(lines);
}

#define HEAD "^[0-9/]{10} [0-9:]{8} \\[info\\] [0-9]+#0: \\*1 "
#define TIME ", session time: [0-9]+\\.[0-9]{3}, reason: "

/* Two lines, which nginx has too. */
START_TEST(a_session_begins_and_ends)
{
    struct daemon *daemon = daemon_create(1);

    daemon_write(daemon, "forkbeard.conf", "error_log error.log info; pid forkbeard.pid; %s" ECHO,
        kinds[_i]);
    daemon_start(daemon);
    client_run_session(daemon->ports[0]);
    daemon_wait_log(daemon, ENDED);
    daemon_stop(daemon, SIGTERM);
    count_lines(daemon, HEAD "client 127\\.0\\.0\\.1:[0-9]+ connected to 127\\.0\\.0\\.1:%u$",
        daemon->ports[0], 1);
    count_lines(daemon,
        HEAD "client disconnected, bytes from/to client:1/1" TIME
             "finished, client: 127\\.0\\.0\\.1, server: 127\\.0\\.0\\.1:%u$",
        daemon->ports[0], 1);
    ck_assert_uint_eq(daemon_count_log(daemon, "[info]"), 2);
    daemon_finish(daemon);
}
END_TEST

/* The sum of the numbers in front of the text, in all lines with the text. */
static unsigned sum_of(struct daemon *daemon, const char *text)
{
    unsigned sum = 0;

    for (const char *p = daemon_text(daemon, daemon->log); (p = strstr(p, text)) != NULL; p++) {
        const char *digits = p;

        while (digits[-1] >= '0' && digits[-1] <= '9')
            digits--;
        sum += (unsigned)strtoul(digits, NULL, 10);
    }
    return sum;
}

#define HELD " more lines like \"" ENDED

/* Suppressed lines are reported when the interval is over, although nothing else happens. */
START_TEST(flood_of_a_worker)
{
    struct daemon *daemon = daemon_create(1);

    daemon_write(daemon, "forkbeard.conf",
        "error_log error.log info; pid forkbeard.pid; %s"
        "error_log_rate_limit burst=3 interval=2s; " ECHO,
        kinds[_i]);
    daemon_start(daemon);
    for (int i = 0; i < 30; i++)
        client_run_session(daemon->ports[0]);
    daemon_wait_log(daemon, HELD);
    daemon_wait_log(daemon, "\" were suppressed in the last 2 s");
    WAIT_FOR(daemon_count_log(daemon, " " ENDED) + sum_of(daemon, HELD) == 30);
    client_run_session(daemon->ports[0]);
    daemon_wait_log(daemon, "*31 " ENDED);
    daemon_finish(daemon);
}
END_TEST

START_TEST(flood_at_the_end)
{
    struct daemon *daemon = daemon_create(1);

    daemon_write(daemon, "forkbeard.conf",
        "error_log error.log info; pid forkbeard.pid; %s"
        "error_log_rate_limit burst=3 interval=1h; " ECHO,
        kinds[_i]);
    daemon_start(daemon);
    for (int i = 0; i < 20; i++)
        client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    ck_assert_uint_eq(daemon_count_log(daemon, " " ENDED), 3);
    ck_assert_uint_eq(sum_of(daemon, HELD), 17);
    daemon_finish(daemon);
}
END_TEST

#define FAILED " more lines like \"reload failed: "

/* Grave lines of the flood are never held back. */
START_TEST(flood_of_the_master)
{
    struct daemon *daemon = daemon_create(1);
    const char *interval = _i == 0 ? "3s" : "1h";

    daemon_expects(daemon, "bogus");
    daemon_configure(daemon, "error_log_rate_limit burst=2 interval=%s; " ECHO, interval);
    daemon_start(daemon);
    daemon_configure(daemon, "bogus; " ECHO);
    for (int i = 0; i < 9; i++)
        ck_assert(!control_is_ok(control_ask(daemon, "reload")));
    ck_assert_uint_eq(daemon_count_log(daemon, "\"bogus\""), 9);
    if (_i == 0)
        daemon_wait_log(daemon, FAILED);
    else
        daemon_stop(daemon, SIGTERM);
    WAIT_FOR(daemon_count_log(daemon, "[error]") - daemon_count_log(daemon, FAILED) +
                 sum_of(daemon, FAILED) ==
             9);
    daemon_finish(daemon);
}
END_TEST

static bool has_open(pid_t pid, const char *path)
{
    char link[32];

    for (int fd = 0; fd < 128; fd++) {
        snprintf(link, sizeof(link), "fd/%d", fd);
        if (strcmp(proc_link(pid, link), path) == 0)
            return true;
    }
    return false;
}

/* Counts the processes below `parent` with the file open. */
static unsigned count_open(pid_t parent, const char *path)
{
    pid_t children[16];
    unsigned n = 0, child_n = proc_children(parent, children, 16);

    for (unsigned i = 0; i < child_n; i++)
        n += (has_open(children[i], path) ? 1 : 0) + count_open(children[i], path);
    return n;
}

/* Two processes with ending sessions, one of them left, and both processes of an upgrade. _i: 1
 * without a control socket, 2 with only one of the names. */
START_TEST(reopening_reaches_all_masters)
{
    struct daemon *daemon = daemon_start_new(1, "%s" QUIT_ECHO, _i == 1 ? "control off; " : "");
    char log[96], moved[128];
    int clients[3];
    pid_t old = daemon->pid;
    unsigned n;

    clients[0] = quit_begin_session(daemon);
    ck_assert_int_eq(quit_run(daemon, "quit"), 0);
    WAIT_FOR(daemon_has(daemon, quit_name("forkbeard.pid", old)));
    WAIT_FOR(proc_child_n(old) == 1);
    WAIT_FOR(client_error(daemon->ports[0]) == ECONNREFUSED);
    daemon->pid = 0;
    daemon_start(daemon);
    clients[1] = quit_begin_session(daemon);
    if (_i != 1) {
        ck_assert_int_eq(quit_run(daemon, "leave"), 0);
        ck_assert_int_eq(daemon_wait(daemon), 0);
        daemon_start(daemon);
    }
    clients[2] = quit_begin_session(daemon);
    upgrade_start(daemon);
    snprintf(log, sizeof(log), "%s", daemon_path(daemon, "error.log"));
    snprintf(moved, sizeof(moved), "%s.1", log);
    WAIT_FOR((n = count_open(getpid(), log)) == (_i == 1 ? 8 : 10));
    daemon_owns(daemon, "error.log.1");
    ck_assert_int_eq(rename(log, moved), 0);
    ck_assert_uint_eq(count_open(getpid(), moved), n);
    if (_i == 2)
        ck_assert_int_eq(
            daemon_run(daemon, "-s", "reopen", "--control", "forkbeard.sock", NULL), 0);
    else
        ck_assert_int_eq(quit_run(daemon, "reopen"), 0);
    WAIT_FOR(count_open(getpid(), moved) == 0);
    ck_assert_uint_eq(count_open(getpid(), log), n);
    for (int i = 0; i < 3; i++)
        client_echo(clients[i], "goes on");
    ck_assert_int_eq(quit_run(daemon, "stop"), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

/* Reopening fails in workers unable to report the failure, in both of them. */
START_TEST(reopening_fails_in_two)
{
    struct daemon *daemon = daemon_start_new(1, QUIT_ECHO);
    int client = quit_begin_session(daemon);
    pid_t old = quit_daemon(daemon);
    char log[96], moved[128];
    const char *first;

    daemon_start(daemon);
    snprintf(log, sizeof(log), "%s", daemon_path(daemon, "error.log"));
    snprintf(moved, sizeof(moved), "%s.1", log);
    ck_assert_int_eq(rename(log, moved), 0);
    ck_assert_int_eq(mkdir(log, 0755), 0);
    daemon_expects(daemon, "Is a directory");
    ck_assert_int_eq(quit_run(daemon, "reopen"), 1);
    first = strstr(daemon->err, "reopen failed\n");
    ck_assert_msg(first != NULL && strstr(first + 1, "reopen failed\n") != NULL, "%s", daemon->err);
    ck_assert_int_eq(rmdir(log), 0);
    ck_assert_int_eq(rename(moved, log), 0);
    quit_end_session(daemon, client, old);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, syslog_by_udp, 0, 2);
    tcase_add_loop_test(tcase, syslog_receiver_restarts, 0, 2);
    tcase_add_loop_test(tcase, start_without_a_receiver, 0, 2);
    tcase_add_loop_test(tcase, slow_receiver, 0, 2);
    tcase_add_test(tcase, reopening_connects_again);
    tcase_add_loop_test(tcase, reopening_reaches_all_masters, 0, 3);
    tcase_add_test(tcase, reopening_fails_in_two);
    tcase_add_test(tcase, reloads_leave_no_socket);
    tcase_add_loop_test(tcase, json, 0, 2);
    tcase_add_loop_test(tcase, a_session_begins_and_ends, 0, 2);
    tcase_add_loop_test(tcase, flood_of_a_worker, 0, 2);
    tcase_add_loop_test(tcase, flood_at_the_end, 0, 2);
    tcase_add_loop_test(tcase, flood_of_the_master, 0, 2);
}

TEST_MAIN("logs", add_tests)
