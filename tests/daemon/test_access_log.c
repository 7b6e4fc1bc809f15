/* SPDX-License-Identifier: BSD-2-Clause */
/* Access logs: no line is lost needlessly, and nobody waits for a reader. */
#include "base/json.h"
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/log_receiver.h"
#include "daemon/proc.h"
#include "daemon/rate_clients.h"
#include "daemon/upgrade.h"
#include "features/access_log/gzip.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAIN "log_format main '$remote_addr $status $protocol to $remote_addr'; "
#define STREAM(logs) "events {} stream { " MAIN logs " server { listen 127.0.0.1:$0; echo; } }\n"
#define LINE "127.0.0.1 200 TCP to 127.0.0.1\n"

static const char *const kinds[] = { "worker_processes 2; ", "master_process off; " };
#define KIND_N 2

static unsigned count_text(const char *text, const char *part)
{
    unsigned n = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

/* The number of lines of a log; every line must be whole. */
static unsigned count_lines(struct daemon *daemon, const char *name)
{
    const char *text = daemon_has(daemon, name) ? daemon_text(daemon, name) : "";
    unsigned n = count_text(text, LINE);

    ck_assert_msg(strlen(text) == n * strlen(LINE), "%s: %s", name, text);
    return n;
}

static void run_sessions(const struct daemon *daemon, unsigned n)
{
    while (n-- > 0)
        client_run_session(daemon->ports[0]);
}

static const char *const ways[] = { "", "buffer=1k", "buffer=64k flush=50ms" };
#define WAYS_N 3

/* A file that was moved away gets the lines buffered until then. */
START_TEST(reopening_loses_no_line)
{
    struct daemon *daemon = daemon_create(1);
    struct rate_clients clients;
    char name[32], path[128];
    unsigned n = 0;

    daemon_configure(
        daemon, "%s" STREAM("access_log a.log main %s;"), kinds[_i % KIND_N], ways[_i / KIND_N]);
    daemon_start(daemon);
    rate_clients_start(
        &clients, &(struct rate_clients_options) { .port = daemon->ports[0], .rate = 400 });
    for (int i = 0; i < 4; i++) {
        rate_clients_wait(&clients, 40);
        snprintf(name, sizeof(name), "a.log.%d", i);
        snprintf(path, sizeof(path), "%s", daemon_path(daemon, name));
        ck_assert_int_eq(rename(daemon_path(daemon, "a.log"), path), 0);
        daemon_signal(daemon, SIGUSR1);
        WAIT_FOR(daemon_has(daemon, "a.log"));
    }
    rate_clients_wait(&clients, 20);
    rate_clients_stop(&clients);
    rate_clients_check(&clients);
    daemon_stop(daemon, _i % 2 == 0 ? SIGQUIT : SIGTERM);
    n = count_lines(daemon, "a.log");
    ck_assert_uint_gt(n, 0);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "a.log.%d", i);
        n += count_lines(daemon, name);
    }
    ck_assert_uint_eq(n, clients.connected);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "a.log.%d", i);
        ck_assert_int_eq(unlink(daemon_path(daemon, name)), 0);
    }
    daemon_owns(daemon, "a.log");
    daemon_finish(daemon);
}
END_TEST

/* A daemon in the background keeps the standard output used by its log. */
START_TEST(reopening_finds_standard_output)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(
        daemon, "%s" STREAM("access_log /dev/stdout main; access_log a.log main;"), kinds[_i]);
    ck_assert_int_eq(daemon_start_background(daemon), 0);
    run_sessions(daemon, 1);
    WAIT_FOR(count_lines(daemon, "run.out") == 1);
    ck_assert_int_eq(unlink(daemon_path(daemon, "a.log")), 0);
    daemon_signal(daemon, SIGUSR1);
    WAIT_FOR(daemon_has(daemon, "a.log"));
    run_sessions(daemon, 20);
    WAIT_FOR(count_lines(daemon, "run.out") == 21);
    daemon_owns(daemon, "a.log");
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

/* The disk has nothing before, and everything when the daemon has ended, however it was told to. */
START_TEST(the_end_writes_what_is_buffered)
{
    static const int signals[] = { SIGQUIT, SIGTERM };
    struct daemon *daemon =
        daemon_start_new(1, "%s" STREAM("access_log a.log main buffer=64k;"), kinds[_i % KIND_N]);

    daemon_owns(daemon, "a.log");
    run_sessions(daemon, 20);
    ck_assert_uint_eq(count_lines(daemon, "a.log"), 0);
    daemon_stop(daemon, signals[_i / KIND_N]);
    ck_assert_uint_eq(count_lines(daemon, "a.log"), 20);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_killed_worker_loses_its_buffer)
{
    struct daemon *daemon =
        daemon_start_new(1, STREAM("access_log a.log main; access_log b.log main buffer=64k;"));
    pid_t worker;

    daemon_owns(daemon, "a.log");
    daemon_owns(daemon, "b.log");
    daemon_expects(daemon, "exited on signal 9");
    run_sessions(daemon, 5);
    WAIT_FOR(count_lines(daemon, "a.log") == 5);
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    daemon_wait_log(daemon, "exited on signal 9");
    run_sessions(daemon, 3);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(count_lines(daemon, "a.log"), 8);
    ck_assert_uint_eq(count_lines(daemon, "b.log"), 3);
    daemon_finish(daemon);
}
END_TEST

static size_t drain(int reader, char *text, size_t size)
{
    size_t n = 0;
    ssize_t more;

    while (n < size - 1 && (more = read(reader, text + n, size - 1 - n)) > 0)
        n += (size_t)more;
    text[n] = '\0';
    return n;
}

/* Lines are lost and counted, and none is torn. */
START_TEST(a_fifo_whose_reader_stalls)
{
    static char text[1 << 20];
    struct daemon *daemon = daemon_create(1);
    unsigned n;
    int reader;

    ck_assert_int_eq(mkfifo(daemon_path(daemon, "fifo"), 0600), 0);
    daemon_owns(daemon, "fifo");
    reader = open(daemon_path(daemon, "fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ne(reader, -1);
    ck_assert_int_eq(fcntl(reader, F_SETPIPE_SZ, 8192), 8192);
    daemon_expects(daemon, "not accepted by");
    daemon_configure(
        daemon, "%s" STREAM("access_log fifo main %s;"), kinds[_i % KIND_N], ways[_i / KIND_N]);
    daemon_start(daemon);
    run_sessions(daemon, 700); /* more than the pipe has room for */
    daemon_wait_log(daemon, "not accepted by \"/");
    n = count_text((drain(reader, text, sizeof(text)), text), LINE);
    ck_assert_uint_gt(n, 50);
    ck_assert_uint_lt(n, 700);
    run_sessions(daemon, 100);
    daemon_stop(daemon, SIGQUIT);
    drain(reader, text, sizeof(text));
    ck_assert_uint_eq(strlen(text), count_text(text, LINE) * strlen(LINE));
    close(reader);
    daemon_finish(daemon);
}
END_TEST

START_TEST(compressed)
{
    struct daemon *daemon;
    char command[256], output[8192] = "";
    FILE *gzip;

    if (!access_gzip_built())
        return;
    daemon = daemon_start_new(
        1, "%s" STREAM("access_log a.gz main gzip=9 buffer=200 flush=1h;"), kinds[_i]);
    daemon_owns(daemon, "a.gz");
    run_sessions(daemon, 50);
    snprintf(command, sizeof(command), "gzip -dc <%s", daemon_path(daemon, "a.gz"));
    gzip = popen(command, "re"); /* reads the first parts */
    ck_assert_uint_gt(fread(output, 1, sizeof(output) - 1, gzip), 0);
    ck_assert_int_eq(pclose(gzip), 0);
    daemon_stop(daemon, SIGQUIT);
    gzip = popen(command, "re");
    memset(output, 0, sizeof(output));
    ck_assert_uint_eq(fread(output, 1, sizeof(output) - 1, gzip), 50 * strlen(LINE));
    ck_assert_int_eq(pclose(gzip), 0);
    ck_assert_uint_eq(count_text(output, LINE), 50);
    daemon_finish(daemon);
}
END_TEST

START_TEST(syslog_takes_lines)
{
    struct daemon *daemon = daemon_create(1);
    int receiver = log_receiver_unix(daemon, "syslog");
    const char *line;

    daemon_configure(daemon,
        "%s" STREAM("access_log syslog:server=unix:$D/syslog,facility=local3,tag=web,"
                    "severity=notice,nohostname main if=$bytes_received; "),
        kinds[_i]);
    daemon_start(daemon);
    run_sessions(daemon, 1);
    line = log_receiver_wait(receiver, "web: ");
    ck_assert_int_eq(strncmp(line, "<157>", 5), 0);
    ck_assert_str_eq(strstr(line, "web: "), "web: 127.0.0.1 200 TCP to 127.0.0.1");
    close(client_open(daemon->ports[0])); /* no byte, no line */
    run_sessions(daemon, 1);
    log_receiver_wait(receiver, "web: ");
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(log_receiver_drain(receiver, "web: "), 0);
    log_receiver_end(daemon, "syslog", receiver);
    daemon_finish(daemon);
}
END_TEST

/* All lines of the ready format, and of a format with empty values, are objects. */
START_TEST(lines_are_json)
{
    struct daemon *daemon = daemon_start_new(1,
        "%sevents {} stream { access_log a.log json; access_log b.log json; access_log b.log own; "
        "log_format own escape=json "
        "'{\"status\":$status,\"a\":$upstream_addr,\"b\":[$1,$pid,$remote_addr]}'; "
        "server { listen 127.0.0.1:$0; echo; } }\n",
        kinds[_i]);
    const char *line, *end;
    unsigned n = 0;

    run_sessions(daemon, 5);
    WAIT_FOR(count_text(daemon_text(daemon, "b.log"), "\n") == 10);
    daemon_stop(daemon, SIGQUIT);
    for (line = daemon_text(daemon, "b.log"); (end = strchr(line, '\n')) != NULL; line = end + 1) {
        struct json_value value = json_parse(line, (size_t)(end - line));

        ck_assert_msg(value.text != NULL, "%s", line);
        ck_assert_int_eq(json_integer(json_member(value, "status"), -1), 200);
        n++;
    }
    ck_assert_uint_eq(n, 10);
    ck_assert_uint_eq(count_text(daemon_text(daemon, "b.log"), "\"a\":null,\"b\":[null,"), 5);
    ck_assert_uint_eq(count_text(daemon_text(daemon, "b.log"), ",\"127.0.0.1\"]}\n"), 5);
    ck_assert_uint_eq(count_text(daemon_text(daemon, "a.log"), "{\"time\":\"20"), 5);
    ck_assert_uint_eq(count_text(daemon_text(daemon, "a.log"), ",\"upstream_addr\":\"\","), 5);
    daemon_owns(daemon, "a.log");
    daemon_owns(daemon, "b.log");
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_reload_changes_the_format)
{
    struct daemon *daemon = daemon_start_new(1, STREAM("access_log a.log main buffer=4k;"));
    int client = client_open(daemon->ports[0]);
    const char *text;

    daemon_owns(daemon, "a.log");
    client_echo(client, "x");
    run_sessions(daemon, 2);
    daemon_configure(daemon,
        "events {} stream { log_format new escape=json '{\"port\":\"$server_port\"}'; "
        "access_log a.log new; server { listen 127.0.0.1:$0; echo; } }");
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    daemon_wait_log(daemon, "gracefully shutting down"); /* the old worker accepts no more */
    run_sessions(daemon, 1);
    close(client); /* the old worker's */
    daemon_stop(daemon, SIGQUIT);
    text = daemon_text(daemon, "a.log");
    ck_assert_uint_eq(count_text(text, LINE), 3);
    ck_assert_uint_eq(count_text(text, "{\"port\":\""), 1);
    daemon_finish(daemon);
}
END_TEST

/* Lines of both masters are in the common file. */
START_TEST(an_upgrade_goes_on)
{
    struct daemon *daemon = daemon_create(1);
    pid_t new;

    daemon_owns(daemon, "a.log");
    daemon_configure(daemon,
        "worker_processes 2; events {} stream { " MAIN "access_log a.log main buffer=4k; "
        "server { listen 127.0.0.1:$0; listen unix:$D/socket; echo; } }");
    daemon_start(daemon);
    run_sessions(daemon, 10);
    new = upgrade_start(daemon);
    run_sessions(daemon, 10);
    upgrade_complete(daemon, new);
    run_sessions(daemon, 10);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(count_lines(daemon, "a.log"), 30);
    daemon_finish(daemon);
}
END_TEST

/* Counts a process's descriptors of files below the directory. */
static unsigned count_open(pid_t pid, const char *below)
{
    unsigned n = 0;

    for (int fd = 3; fd < 64; fd++) {
        char name[32];

        snprintf(name, sizeof(name), "fd/%d", fd);
        n += strstr(proc_link(pid, name), below) != NULL;
    }
    return n;
}

static const char *const caches[] = { "", "open_log_file_cache max=2 inactive=30s;",
    "open_log_file_cache max=2 min_uses=100;" };
#define CACHES_N 3

/* Workers open them, and nothing beside them. */
START_TEST(paths_with_variables)
{
    struct daemon *daemon = daemon_create(1);
    const char *kind = kinds[_i % KIND_N], *cache = caches[_i / KIND_N];
    char log[96], moved[96];

    ck_assert_int_eq(mkdir(daemon_path(daemon, "logs"), 0777), 0);
    ck_assert_int_eq(chmod(daemon_path(daemon, "logs"), 0777), 0);
    ck_assert_int_eq(chmod(daemon->directory, 0755), 0);
    daemon_owns(daemon, "logs");
    daemon_expects(daemon, "elsewhere");
    daemon_configure(daemon,
        "%s" STREAM("access_log logs/a-$remote_addr main; "
                    "access_log logs/elsewhere/$remote_addr main; %s "
                    "map $pid $evil { default '../../a/..'; } access_log logs/$evil main; "),
        kind, cache);
    daemon_start(daemon);
    snprintf(log, sizeof(log), "%s", daemon_path(daemon, "logs/a-127.0.0.1"));
    snprintf(moved, sizeof(moved), "%s", daemon_path(daemon, "logs/moved"));
    run_sessions(daemon, 5);
    WAIT_FOR(count_lines(daemon, "logs/a-127.0.0.1") == 5);
    daemon_wait_log(daemon, "[crit]");
    daemon_wait_log(daemon, "not accepted by");
    if (_i % KIND_N == 1)
        ck_assert_uint_eq(count_open(daemon->pid, "/logs/"), _i / KIND_N == 1 ? 2 : 0);
    ck_assert_int_eq(rename(log, moved), 0);
    daemon_signal(daemon, SIGUSR1);
    WAIT_FOR((run_sessions(daemon, 1), daemon_has(daemon, "logs/a-127.0.0.1")));
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_ge(count_lines(daemon, "logs/moved"), 5);
    ck_assert_int_eq(unlink(log), 0);
    ck_assert_int_eq(unlink(moved), 0);
    ck_assert_int_eq(unlink(daemon_path(daemon, "logs/.._.._a_..")), 0);
    ck_assert_int_eq(rmdir(daemon_path(daemon, "logs")), 0);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, reopening_loses_no_line, 0, KIND_N * WAYS_N);
    tcase_add_loop_test(tcase, reopening_finds_standard_output, 0, KIND_N);
    tcase_add_loop_test(tcase, the_end_writes_what_is_buffered, 0, KIND_N * 2);
    tcase_add_test(tcase, a_killed_worker_loses_its_buffer);
    tcase_add_loop_test(tcase, a_fifo_whose_reader_stalls, 0, KIND_N * WAYS_N);
    tcase_add_loop_test(tcase, compressed, 0, KIND_N);
    tcase_add_loop_test(tcase, syslog_takes_lines, 0, KIND_N);
    tcase_add_loop_test(tcase, lines_are_json, 0, KIND_N);
    tcase_add_test(tcase, a_reload_changes_the_format);
    tcase_add_test(tcase, an_upgrade_goes_on);
    tcase_add_loop_test(tcase, paths_with_variables, 0, KIND_N * CACHES_N);
}

TEST_MAIN("access_log", add_tests)
