/* SPDX-License-Identifier: BSD-2-Clause */
/* The options, with nginx's meaning. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ECHO "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n"

#define JSON_MISPLACED                                                                             \
    "\"--json\" belongs to \"status\", \"upstream\", \"sessions\", \"certificates\", \"events\", " \
    "\"log\" and \"upgrade\""

/* Text expected on standard error, where nginx prints too; NULL: nothing at all. */
static const struct {
    const char *arguments[4];
    int code;
    const char *printed;
} options[] = {
    { { "-v" }, 0, "forkbeard version: forkbeard/" },
    { { "-V" }, 0, "event mechanisms: " },
    { { "-V" }, 0, "configure arguments:" },
    { { "-V" }, 0, "protocols: " },
    { { "-V" }, 0, "libraries: libbsd " },
    { { "-V" }, 0, HAVE_CARES ? ", c-ares 1." : "libraries that it lacks: c-ares" },
    { { "-V" }, 0, HAVE_PCRE2 ? ", PCRE2 10." : ", PCRE2" },
    { { "-h" }, 0, "Usage: forkbeard [-?hvVtTq] [-p prefix]" },
    { { "-?" }, 0, "  -g directives : set global directives" },
    { { "-hv" }, 0, "forkbeard version: forkbeard/" },
    { { "-x" }, 1, "forkbeard: [emerg] invalid option: \"-x\"" },
    { { "-tx" }, 1, "forkbeard: [emerg] invalid option: \"-x\"" },
    { { "more" }, 1, "forkbeard: [emerg] invalid option: \"more\"" },
    { { "-c" }, 1, "forkbeard: [emerg] option \"-c\" requires an argument" },
    { { "-s" }, 1, "forkbeard: [emerg] option \"-s\" requires an argument" },
    { { "-s", "kill" }, 1,
        "invalid option: \"-s kill\", expected stop, quit, leave, resume, reopen, reload or "
        "upgrade" },
    { { "-t", "-c", "forkbeard.conf" }, 0, "forkbeard.conf syntax is ok\n" },
    { { "-t", "-c", "forkbeard.conf" }, 0, "forkbeard.conf test is successful\n" },
    { { "-tq", "-cforkbeard.conf" }, 0, NULL },
    { { "-t", "-c", "none.conf" }, 1, "none.conf\" failed (2: No such file or directory)" },
    { { "-tq", "-c", "none.conf" }, 1, "none.conf\" failed (2: No such file or directory)" },
    { { "-t", "-cforkbeard.conf", "-gdaemon maybe;" }, 1, "in command line:1:8" },
    { { "-t", "-cforkbeard.conf", "-gdaemon maybe;" }, 1, "test failed\n" },
    { { "-t", "-cforkbeard.conf", "-gdaemon off; worker_processes 2;" }, 0, "successful" },
    { { "-s", "stop", "-cforkbeard.conf" }, 1,
        "/forkbeard.pid\" failed (2: No such file or directory)" },
    { { "more", "status" }, 1, "forkbeard: [emerg] invalid option: \"more\"" },
    { { "status", "more" }, 1, "forkbeard: [emerg] invalid option: \"more\"" },
    { { "reload" }, 1, "invalid option: \"reload\", did you mean \"-s reload\"?" },
    { { "-s", "status" }, 1, "invalid option: \"-s status\", did you mean \"status\"?" },
    { { "-s", "restart" }, 1, "invalid option: \"-s restart\", expected stop, quit," },
    { { "--json" }, 1, JSON_MISPLACED },
    { { "-s", "stop", "--json" }, 1, JSON_MISPLACED },
    { { "--timeout", "5s" }, 1, "invalid option: \"--timeout\" belongs to -s" },
    { { "-s", "stop", "status" }, 1,
        "invalid option: \"-s stop\" and \"status\" are two commands" },
    { { "-h" }, 0, "\n       forkbeard status [--check] [--json] [--timeout time]" },
    { { "-h" }, 0, "\n  status        : show problems, workers, connections and queues" },
    { { "--version=2" }, 1, "invalid option: \"--version=2\", see -h" },
    { { "--control", "x" }, 1,
        "invalid option: \"--control\" belongs to -s, \"status\", \"upstream\", \"sessions\", "
        "\"certificates\", \"events\", \"log\" and \"upgrade\"" },
    { { "status", "--control=x", "-cforkbeard.conf" }, 1,
        "\"--control\" reads no configuration: leave out -c, -e, -g and -p" },
    { { "-sstop", "--control", "none.sock" }, 1,
        "/none.sock\" failed (2: No such file or directory)" },
    { { "status", "--control", "unix:none.sock" }, 1,
        "/none.sock\" failed (2: No such file or directory)" },
    { { "explain", "worker_proces" }, 1,
        "unknown directive \"worker_proces\", did you mean \"worker_processes\"?" },
    { { "explain", "rlimit" }, 1,
        "did you mean \"worker_rlimit_core\", \"worker_rlimit_nofile\"?" },
    { { "explain", "uwsgi_pass" }, 1, "\"uwsgi_pass\" directive of nginx is not supported" },
    { { "explain", "ssl_ocsp" }, 1,
        "\"ssl_ocsp\" directive of nginx is not supported: no OCSP responder is asked" },
    { { "explain", "nonsense" }, 1, "unknown directive \"nonsense\": \"forkbeard explain\" lists" },
    { { "explain", "pid", "user" }, 1, "invalid option: \"user\"" },
    { { "explain", "pid", "--json" }, 1, JSON_MISPLACED },
    { { "certificate" }, 1,
        "\"certificate\", expected \"certificate --self-signed name [name ...]\"" },
    { { "certificate", "localhost" }, 1,
        "\"certificate localhost\", expected \"certificate --self-signed name [name ...]\"" },
    { { "certificate", "--days", "3651" }, 1,
        "invalid option: \"--days 3651\", expected a number from 1 to 3650" },
    { { "status", "--out", "." }, 1, "invalid option: \"--out\" belongs to \"certificate\"" },
    { { "--self-signed" }, 1, "invalid option: \"--self-signed\" belongs to \"certificate\"" },
    { { "certificate", "--self-signed", "a..b" }, 1, "\"a..b\" has an empty label" },
    { { "status", "-f" }, 1, "invalid option: \"-f\" belongs to \"events\"" },
    { { "--yaml" }, 1, "forkbeard: [emerg] invalid option: \"--yaml\", see -h" },
    { { "status", "-cforkbeard.conf" }, 1,
        "/forkbeard.sock\" failed (2: No such file or directory)" },
    { { "status", "-cforkbeard.conf", "-gcontrol off;" }, 1,
        "the configuration has no control socket: see the directive \"control\"" },
    { { "-s", "stop", "-cnone.conf" }, 1, "none.conf\" failed (2: No such file or directory)" },
};

START_TEST(option)
{
    const char *const *a = options[_i].arguments;
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, ECHO);
    ck_assert_int_eq(daemon_run(daemon, a[0], a[1], a[2], NULL), options[_i].code);
    ck_assert_str_eq(daemon->out, "");
    if (options[_i].printed == NULL)
        ck_assert_str_eq(daemon->err, "");
    else
        ck_assert_msg(
            strstr(daemon->err, options[_i].printed) != NULL, "it printed: %s", daemon->err);
    ck_assert(!daemon_has(daemon, "error.log"));
    daemon_finish(daemon);
}
END_TEST

/* GNU's options answer on standard output, without nginx's line of the version before the help. */
START_TEST(gnu_options)
{
    struct daemon *daemon = daemon_create(0);

    ck_assert_int_eq(daemon_run(daemon, "--help", NULL), 0);
    ck_assert_int_eq(strncmp(daemon->out, "Usage: forkbeard [-?hvVtTq] [-p prefix]", 39), 0);
    ck_assert_str_eq(daemon->err, "");
    ck_assert_int_eq(daemon_run(daemon, "--version", NULL), 0);
    ck_assert_int_eq(strncmp(daemon->out, "forkbeard ", 10), 0);
    ck_assert_ptr_eq(strchr(daemon->out, '\n') + 1, daemon->out + strlen(daemon->out));
    ck_assert_str_eq(daemon->err, "");
    daemon_finish(daemon);
}
END_TEST

/* The beginning of the entry, and parts of the text. */
static const struct {
    const char *directive, *head, *text;
} entries[] = {
    { "resolver_timeout", "Syntax:  resolver_timeout time;\nDefault: 30s\n",
        "\n\nSyntax:  resolver_timeout time;\nDefault: stream's\nContext: upstream\n" },
    { "worker_processes",
        "Syntax:  worker_processes number | auto;\nDefault: 1\nContext: main\n\nThe number of "
        "workers,",
        "With \"auto\" there is one worker for each" },
    { "error_log", "Syntax:  error_log file | stderr | syslog:parameters [level [json]];\n",
        "\nserver=address\n    The server, which is required:" },
    { "events", "Syntax:  events {...}\nDefault: none\nContext: main\n", "The block is required" },
    { "worker_connections",
        "Syntax:  worker_connections number | auto;\nDefault: 512\nContext: events\n",
        "\n- three quarters of the memory" },
    { "idle_timeout", "Syntax:  idle_timeout time;\nDefault: 10m\nContext: stream, server\n", "" },
    { "listen", "Syntax:  listen address [parameter ...];\nDefault: none\nContext: server\n",
        "\n    listen unix:/run/forkbeard/echo.sock;\n" },
    { "return", "Syntax:  return text;\n", "\n    return \"you are $remote_addr\\r\\n\";\n" },
};

START_TEST(explain)
{
    struct daemon *daemon = daemon_create(0);

    ck_assert_int_eq(daemon_run(daemon, "explain", entries[_i].directive, NULL), 0);
    ck_assert_str_eq(daemon->err, "");
    ck_assert_msg(
        strncmp(daemon->out, entries[_i].head, strlen(entries[_i].head)) == 0, "%s", daemon->out);
    ck_assert_msg(strstr(daemon->out, entries[_i].text) != NULL, "%s", daemon->out);
    daemon_finish(daemon);
}
END_TEST

/* Whether the line can be filled: paths below the prefix of a build may be too long for that. */
static bool has_short_words(const char *line)
{
    for (size_t n; (n = strcspn(line, " ")) <= 40; line += n + 1)
        if (line[n] == '\0')
            return true;
    return false;
}

/* Directives all have an entry, without leftovers of the manual's source. */
START_TEST(explain_everything)
{
    struct daemon *daemon = daemon_create(0);
    char *names, *rest, *name;
    unsigned n = 0;

    ck_assert_int_eq(daemon_run(daemon, "explain", NULL), 0);
    rest = names = strdup(daemon->out);
    ck_assert_ptr_nonnull(names);
    while ((name = strsep(&rest, "\n")) != NULL && *name != '\0') {
        char *text, *line;

        ck_assert_int_eq(daemon_run(daemon, "explain", name, NULL), 0);
        text = daemon->out;
        while ((line = strsep(&text, "\n")) != NULL) {
            ck_assert_msg(strlen(line) <= 80 || !has_short_words(line), "%s: %s", name, line);
            ck_assert_msg(strncmp(line, ".", 1) != 0 || line[1] < 'A' || line[1] > 'Z' ||
                              line[2] < 'a' || line[2] > 'z',
                "%s: %s", name, line);
            ck_assert_msg(strstr(line, "\\&") == NULL, "%s: %s", name, line);
        }
        n++;
    }
    ck_assert_uint_gt(n, 40);
    free(names);
    daemon_finish(daemon);
}
END_TEST

START_TEST(dump)
{
    struct daemon *daemon = daemon_create(1);
    const char *first, *second;

    daemon_configure(daemon, "include more.conf; stream { server { listen $0; echo; } } # last\n");
    daemon_write(daemon, "more.conf", "events { } # included\n");
    ck_assert_int_eq(daemon_run(daemon, "-T", "-c", "forkbeard.conf", NULL), 0);
    first = strstr(daemon->out, "forkbeard.conf:\n");
    second = strstr(daemon->out, "more.conf:\n");
    ck_assert_msg(first != NULL && second != NULL && first < second, "%s", daemon->out);
    ck_assert_ptr_nonnull(strstr(first, daemon_text(daemon, "forkbeard.conf")));
    ck_assert_ptr_nonnull(strstr(second, daemon_text(daemon, "more.conf")));
    ck_assert_ptr_nonnull(strstr(daemon->err, "test is successful"));

    ck_assert_int_eq(daemon_run(daemon, "-qT", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_str_eq(daemon->err, "");
    ck_assert_ptr_nonnull(strstr(daemon->out, "# last"));
    daemon_finish(daemon);
}
END_TEST

static void become_nobody(void)
{
    if (geteuid() == 0 && (setgid(65534) == -1 || setuid(65534) == -1))
        _exit(123);
}

static unsigned count_files(const struct daemon *daemon)
{
    DIR *dir = opendir(daemon->directory);
    unsigned n = 0;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* A check opens nothing, whoever has the ports, or rights to the log and the pid file. */
START_TEST(test_touches_nothing)
{
    struct daemon *daemon = daemon_create(1);
    char path[128];
    unsigned n;

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "socket"));
    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0;"
                             " listen unix:$D/socket; echo; } }");
    daemon->before_exec = become_nobody;
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 0);
    ck_assert(!daemon_has(daemon, "error.log"));
    ck_assert(!daemon_has(daemon, "socket"));

    daemon->before_exec = NULL;
    daemon_start(daemon);
    daemon->before_exec = become_nobody;
    n = count_files(daemon);
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_uint_eq(count_files(daemon), n);
    close(client_open_unix(path));
    ck_assert_int_eq(client_error(daemon->ports[0]), 0);
    daemon_finish(daemon);
}
END_TEST

/* Without the control socket: see test_control.c. */
START_TEST(signals_are_sent)
{
    static const char *const names[] = { "stop", "quit" };
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "control off; " ECHO);
    daemon_start(daemon);
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    daemon_wait_log(daemon, "signal 1 (SIGHUP) received from ");
    daemon_wait_log(daemon, "exited with code 0");
    ck_assert_ptr_nonnull(
        strstr(daemon->err, ", see the error log for the result: there is no control socket\n"));
    ck_assert_int_eq(daemon_run(daemon, "-q", "-s", "reopen", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_str_eq(daemon->err, "");
    daemon_wait_log(daemon, "signal 10 (SIGUSR1) received from ");
    ck_assert_int_eq(daemon_run(daemon, "-qs", names[_i], "-c", "forkbeard.conf", NULL), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_str_eq(daemon->err, "");
    daemon_finish(daemon);
}
END_TEST

START_TEST(signal_without_a_daemon)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, ECHO);
    daemon_write(daemon, "forkbeard.pid", "%d\n", 0x3fffff0); /* no kernel counts so far */
    ck_assert_int_eq(daemon_run(daemon, "-s", "quit", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "no daemon runs with the pid file"));
    daemon_write(daemon, "forkbeard.pid", "?\n");
    ck_assert_int_eq(daemon_run(daemon, "-s", "quit", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "invalid PID number \"?\" in"));
    daemon_finish(daemon);
}
END_TEST

static void make_directory(const struct daemon *daemon, const char *name)
{
    ck_assert_int_eq(mkdir(daemon_path(daemon, name), 0755), 0);
}

static void remove_from(const struct daemon *daemon, const char *name)
{
    ck_assert_int_eq(remove(daemon_path(daemon, name)), 0);
}

/* The prefix has the configuration, and the log and pid file not named in it. */
START_TEST(prefix_has_everything)
{
    struct daemon *daemon = daemon_create(1);

    make_directory(daemon, "prefix");
    make_directory(daemon, "prefix/conf");
    make_directory(daemon, "prefix/logs");
    daemon_write(daemon, "prefix/conf/forkbeard.conf", ECHO);
    ck_assert_int_eq(daemon_run(daemon, "-p", "prefix", "-g", "daemon on;", NULL), 0);
    ck_assert(daemon_has(daemon, "prefix/logs/error.log"));
    ck_assert(daemon_has(daemon, "prefix/logs/forkbeard.pid"));
    ck_assert_int_eq(client_error(daemon->ports[0]), 0);
    ck_assert_int_eq(daemon_run(daemon, "-p", "prefix/", "-s", "quit", NULL), 0);
    proc_reap_orphans();
    ck_assert(!daemon_has(daemon, "prefix/logs/forkbeard.pid"));
    remove_from(daemon, "prefix/logs/error.log");
    remove_from(daemon, "prefix/logs");
    remove_from(daemon, "prefix/conf/forkbeard.conf");
    remove_from(daemon, "prefix/conf");
    remove_from(daemon, "prefix");
    daemon_finish(daemon);
}
END_TEST

static void go_elsewhere(void)
{
    if (chdir("/") == -1)
        _exit(123);
}

static ino_t inode_of(const struct daemon *daemon, const char *name)
{
    struct stat st;

    ck_assert_msg(stat(daemon_path(daemon, name), &st) == 0, "there is no %s", name);
    return st.st_ino;
}

#define RELATIVE_PATHS                                                                             \
    "include *.part; pid run/a.pid; control unix:run/a.sock; error_log run/a.log notice; "         \
    "working_directory run; events {} stream { server { listen unix:run/echo.sock; echo; } }\n"

/* A reload, an upgrade and commands from another directory find what the start has made; includes
 * start from the directory of the file, and all else from the prefix. */
START_TEST(relative_names_below_a_prefix)
{
    static const char *const left[] = { "p/conf/forkbeard.conf", "p/conf/a.part", "p/conf",
        "p/run/a.log", "p/run", "p" };
    struct daemon *daemon = daemon_create(1);
    char prefix[128], old[256];
    ino_t echo;

    make_directory(daemon, "p");
    make_directory(daemon, "p/conf");
    make_directory(daemon, "p/run");
    daemon_write(daemon, "p/conf/forkbeard.conf", RELATIVE_PATHS);
    daemon_write(daemon, "p/conf/a.part", "worker_processes 2;");
    snprintf(prefix, sizeof(prefix), "%s", daemon_path(daemon, "p"));
    ck_assert_int_eq(daemon_run(daemon, "-p", "./p/", NULL), 0);
    echo = inode_of(daemon, "p/run/echo.sock");
    close(client_open_unix(daemon_path(daemon, "p/run/echo.sock")));

    daemon->before_exec = go_elsewhere;
    ck_assert_int_eq(daemon_run(daemon, "-p", prefix, "-s", "reload", NULL), 0);
    ck_assert_int_eq(daemon_run(daemon, "-p", prefix, "-qs", "upgrade", NULL), 0);
    ck_assert_uint_eq(inode_of(daemon, "p/run/echo.sock"), echo);
    close(client_open_unix(daemon_path(daemon, "p/run/echo.sock")));
    snprintf(old, sizeof(old), "%s/run/a.sock.oldbin", prefix);
    ck_assert_int_eq(daemon_run(daemon, "-s", "stop", "--control", old, NULL), 0);
    WAIT_FOR(!daemon_has(daemon, "p/run/a.pid.oldbin"));
    ck_assert_int_eq(daemon_run(daemon, "-p", prefix, "-s", "stop", NULL), 0);
    proc_reap_orphans();
    ck_assert(!daemon_has(daemon, "p/run/a.pid"));
    for (unsigned i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        remove_from(daemon, left[i]);
    daemon_finish(daemon);
}
END_TEST

/* The configuration that the socket's path stands in is gone, and then the socket has moved. */
START_TEST(control_without_a_configuration)
{
    struct daemon *daemon = daemon_create(1);
    char path[128];

    daemon_configure(daemon, ECHO);
    daemon_start(daemon);
    remove_from(daemon, "forkbeard.conf");
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_int_eq(daemon_run(daemon, "status", "--control", "forkbeard.sock", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "connections"));
    ck_assert_int_eq(
        daemon_run(daemon, "status", "--json", "--control", "unix:forkbeard.sock", NULL), 0);
    ck_assert_int_eq(strncmp(daemon->out, "{\"ok\":true,", 11), 0);

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "forkbeard.sock"));
    ck_assert_int_eq(rename(path, daemon_path(daemon, "moved.sock")), 0);
    ck_assert_int_eq(daemon_run(daemon, "-s", "reopen", "--control", "moved.sock", NULL), 0);
    ck_assert_int_eq(daemon_run(daemon, "-s", "quit", "--control", "moved.sock", NULL), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    remove_from(daemon, "moved.sock");
    daemon_finish(daemon);
}
END_TEST

/* Paths in the file are relative to the file; those on the command line, to where we stand. */
START_TEST(relative_names)
{
    struct daemon *daemon = daemon_create(1);

    make_directory(daemon, "etc");
    daemon_write(daemon, "etc/main.conf",
        "pid main.pid; include *.part; events {} stream { server { listen 127.0.0.1:$0;"
        " listen unix:main.socket; echo; } }");
    daemon_write(daemon, "etc/a.part", "worker_processes 2;");
    ck_assert_int_eq(daemon_run(daemon, "-c", "etc/main.conf", "-e", "command.log", NULL), 0);
    ck_assert(daemon_has(daemon, "command.log"));
    ck_assert(daemon_has(daemon, "etc/main.pid"));
    ck_assert(daemon_has(daemon, "etc/main.socket"));
    ck_assert_int_eq(daemon_run(daemon, "-c", "etc/main.conf", "-s", "stop", NULL), 0);
    proc_reap_orphans();
    remove_from(daemon, "command.log");
    remove_from(daemon, "etc/a.part");
    remove_from(daemon, "etc/main.conf");
    remove_from(daemon, "etc");
    daemon_finish(daemon);
}
END_TEST

/* They hold for reloads too. */
START_TEST(global_directives)
{
    struct daemon *daemon = daemon_create(1);
    pid_t workers[4];

    daemon_configure(daemon, ECHO);
    ck_assert_int_eq(
        daemon_run(daemon, "-c", "forkbeard.conf", "-g", "worker_processes 3; daemon on;", NULL),
        0);
    daemon->pid = daemon_pid(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 4), 3);
    daemon_signal(daemon, SIGHUP);
    WAIT_FOR(daemon_count_log(daemon, "exited with code 0") == 3);
    ck_assert_uint_eq(proc_child_n(daemon->pid), 3);

    ck_assert_int_eq(
        daemon_run(daemon, "-t", "-c", "forkbeard.conf", "-g", "pid other.pid;", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "\"pid\" directive is duplicate"));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, option, 0, sizeof(options) / sizeof(options[0]));
    tcase_add_test(tcase, gnu_options);
    tcase_add_loop_test(tcase, explain, 0, sizeof(entries) / sizeof(entries[0]));
    tcase_add_test(tcase, explain_everything);
    tcase_add_test(tcase, dump);
    tcase_add_test(tcase, test_touches_nothing);
    tcase_add_loop_test(tcase, signals_are_sent, 0, 2);
    tcase_add_test(tcase, signal_without_a_daemon);
    tcase_add_test(tcase, prefix_has_everything);
    tcase_add_test(tcase, relative_names_below_a_prefix);
    tcase_add_test(tcase, control_without_a_configuration);
    tcase_add_test(tcase, relative_names);
    tcase_add_test(tcase, global_directives);
}

TEST_MAIN("command_line", add_tests)
