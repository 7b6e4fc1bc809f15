/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the binary under test: configuration, start, signals, log, end. A daemon's directory and
 * processes are gone when daemon_finish() returns. */
#include "daemon/daemon.h"

#include "daemon/mechanisms.h"

#include "daemon/proc.h"
#include "daemon/resources.h"
#include "event/mechanism.h"

#include <bsd/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 64

void daemon_ignore_leaks(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char more[300];

    snprintf(more, sizeof(more), "%s:detect_leaks=0", options != NULL ? options : "");
    setenv("ASAN_OPTIONS", more, 1);
}

const char *daemon_path(const struct daemon *daemon, const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", daemon->directory, name);
    return path;
}

bool daemon_has(const struct daemon *daemon, const char *name)
{
    struct stat st;

    return lstat(daemon_path(daemon, name), &st) == 0;
}

void daemon_owns(struct daemon *daemon, const char *name)
{
    for (unsigned i = 0; i < daemon->owned_n; i++)
        if (strcmp(daemon->owned[i], name) == 0)
            return;
    ck_assert_uint_lt(daemon->owned_n, TEXTS_MAX);
    daemon->owned[daemon->owned_n++] = name;
}

void daemon_expects(struct daemon *daemon, const char *text)
{
    ck_assert_uint_lt(daemon->expected_n, TEXTS_MAX);
    daemon->expected[daemon->expected_n++] = text;
}

struct daemon *daemon_create(unsigned port_n)
{
    struct daemon *daemon = calloc(1, sizeof(*daemon));

    ck_assert_ptr_nonnull(daemon);
    daemon->log = "error.log";
    daemon_owns(daemon, daemon->log);
    resources_begin_test(daemon->directory, sizeof(daemon->directory));
    daemon->port_n = port_n;
    resources_reserve_ports(daemon->ports, daemon->reservations, port_n);
    return daemon;
}

/* Files */

/* The file's text from an offset on. */
static char *read_file(const char *path, size_t from)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;

    if (file == NULL || fseek(file, (long)from, SEEK_SET) == -1 ||
        getdelim(&text, &size, '\0', file) == -1) {
        free(text);
        text = strdup("");
    }
    if (file != NULL)
        fclose(file);
    ck_assert_ptr_nonnull(text);
    return text;
}

const char *daemon_text(struct daemon *daemon, const char *name)
{
    free(daemon->text);
    return daemon->text = read_file(daemon_path(daemon, name), 0);
}

static void expand_names(const struct daemon *daemon, const char *text, FILE *file)
{
    const char *mechanism = mechanisms_asked_for(text), *events = strstr(text, "events {");

    for (const char *p = text; *p != '\0'; p++) {
        unsigned port = (unsigned)(p[1] - '0');

        if (mechanism != NULL && events != NULL && p == events + strlen("events {"))
            fprintf(file, " use %s; ", mechanism);
        if (p[0] == '$' && p[1] == 'D') {
            fputs(daemon->directory, file);
            p++;
        } else if (p[0] == '$' && port < daemon->port_n) {
            fprintf(file, "%u", daemon->ports[port]);
            p++;
        } else {
            fputc(*p, file);
        }
    }
}

/* The mode that the environment asks for, unless the test has its own, or no worker processes; on
 * where strict would refuse the mechanism. */
static const char *sandbox_for(const char *name, const char *text)
{
    const char *sandbox = getenv("FORKBEARD_TEST_SANDBOX"), *use = strstr(text, "use ");
    const char *chosen = mechanisms_asked_for(text);
    char written[32] = "";
    bool own = strstr(text, "sandbox ") != NULL || strstr(text, "master_process off") != NULL;

    if (own || strcmp(name, "forkbeard.conf") != 0 || sandbox == NULL || *sandbox == '\0')
        return NULL;
    if (use != NULL)
        sscanf(use, "use %31[a-z_]", written);
    return mechanisms_is_unfiltered(chosen != NULL ? chosen : written) ? "on" : sandbox;
}

static void write_file(struct daemon *daemon, const char *name, const char *head, const char *text)
{
    FILE *file = fopen(daemon_path(daemon, name), "we");
    const char *sandbox = sandbox_for(name, text);

    ck_assert_ptr_nonnull(file);
    fputs(head, file);
    expand_names(daemon, text, file);
    if (sandbox != NULL) /* at the end: messages name lines */
        fprintf(file, "\nsandbox %s;\n", sandbox);
    ck_assert_int_eq(fclose(file), 0);
    daemon_owns(daemon, name);
}

void daemon_write(struct daemon *daemon, const char *name, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    ck_assert_int_ne(vasprintf(&text, format, args), -1);
    va_end(args);
    write_file(daemon, name, "", text);
    free(text);
}

void daemon_configure(struct daemon *daemon, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    ck_assert_int_ne(vasprintf(&text, format, args), -1);
    va_end(args);
    write_file(daemon, "forkbeard.conf", "error_log error.log notice;\npid forkbeard.pid;\n", text);
    free(text);
}

/* Life */

/* The wrapper, cut into words, and the binary. */
static unsigned begin_command(const char *arguments[ARGUMENTS_MAX], char *wrapper)
{
    const char *binary = getenv("FORKBEARD");
    unsigned n = 0;
    char *word;

    while ((word = strsep(&wrapper, " ")) != NULL)
        if (*word != '\0')
            arguments[n++] = word;
    arguments[n++] = binary != NULL ? binary : DAEMON_PATH;
    return n;
}

static void redirect_output(const struct daemon *daemon, const char *name, int fd)
{
    int file = open(daemon_path(daemon, name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (file == -1 || dup2(file, fd) == -1)
        _exit(120);
}

/* Sanitizers write to files, because a daemon's standard error goes to /dev/null. */
static void set_sanitizers(const struct daemon *daemon)
{
    char options[256];

    snprintf(options, sizeof(options), "exitcode=99:handle_sigill=1:log_path=%s/%s/report",
        daemon->directory, RESOURCES_REPORTS);
    setenv("ASAN_OPTIONS", options, 1);
    setenv("UBSAN_OPTIONS", options, 1);
}

/* In the child: closes all but the standard descriptors and the passed ones, from 3 on. */
static void pass_sockets(const struct daemon *daemon)
{
    char number[16];
    int high[PASSED_MAX];

    for (unsigned i = 0; i < daemon->passed_n; i++) /* away from where the others go */
        high[i] = fcntl(daemon->passed[i], F_DUPFD, 100);
    for (unsigned i = 0; i < daemon->passed_n; i++)
        if (dup2(high[i], STDERR_FILENO + 1 + (int)i) == -1)
            _exit(123);
    closefrom(STDERR_FILENO + 1 + (int)daemon->passed_n);
    if (daemon->passed_n == 0)
        return;
    snprintf(
        number, sizeof(number), "%d", (int)(daemon->passed_to != 0 ? daemon->passed_to : getpid()));
    setenv("LISTEN_PID", number, 1);
    snprintf(number, sizeof(number), "%u", daemon->passed_n);
    setenv("LISTEN_FDS", number, 1);
    if (daemon->passed_names != NULL)
        setenv("LISTEN_FDNAMES", daemon->passed_names, 1);
}

/* Starts the binary with the arguments, and its output in the files NAME.out and NAME.err. */
static pid_t spawn_binary(struct daemon *daemon, const char *const *more, const char *name)
{
    const char *arguments[ARGUMENTS_MAX];
    char *words = getenv("FORKBEARD_WRAPPER") != NULL ? strdup(getenv("FORKBEARD_WRAPPER")) : NULL;
    unsigned n = begin_command(arguments, words);
    char file[32];
    pid_t pid;

    for (; *more != NULL; more++) {
        ck_assert_uint_lt(n, ARGUMENTS_MAX - 1);
        arguments[n++] = *more;
    }
    arguments[n] = NULL;
    pid = fork();
    ck_assert_int_ne(pid, -1);
    if (pid != 0) {
        free(words);
        return pid;
    }

    snprintf(file, sizeof(file), "%s.out", name);
    redirect_output(daemon, file, STDOUT_FILENO);
    snprintf(file, sizeof(file), "%s.err", name);
    redirect_output(daemon, file, STDERR_FILENO);
    if (daemon->standard_error != 0 && strcmp(name, "daemon") == 0)
        dup2(daemon->standard_error, STDERR_FILENO);
    set_sanitizers(daemon);
    unsetenv("FORKBEARD"); /* the daemon understands this variable otherwise */
    if (chdir(daemon->directory) == -1)
        _exit(121);
    pass_sockets(daemon); /* nor any descriptor inherited by the test program */
    if (daemon->before_exec != NULL)
        daemon->before_exec();
    execvp(arguments[0], (char **)arguments);
    _exit(122);
}

int daemon_run(struct daemon *daemon, const char *arg, ...)
{
    const char *arguments[ARGUMENTS_MAX];
    unsigned n = 0;
    va_list args;
    pid_t pid;

    va_start(args, arg);
    for (const char *a = arg; a != NULL; a = va_arg(args, const char *))
        arguments[n++] = a;
    va_end(args);
    arguments[n] = NULL;

    unlink(daemon_path(daemon, "run.out"));
    unlink(daemon_path(daemon, "run.err"));
    pid = spawn_binary(daemon, arguments, "run");
    n = (unsigned)proc_wait(pid);
    free(daemon->out);
    free(daemon->err);
    daemon->out = read_file(daemon_path(daemon, "run.out"), 0);
    daemon->err = read_file(daemon_path(daemon, "run.err"), 0);
    ck_assert_msg(n != 99 && strstr(daemon->err, "Sanitizer") == NULL, "%.3000s", daemon->err);
    return (int)n;
}

void daemon_launch(struct daemon *daemon)
{
    static const char *const arguments[] = { "-c", "forkbeard.conf", "-g", "daemon off;", NULL };

    ck_assert_int_eq(daemon->pid, 0);
    daemon->pid = spawn_binary(daemon, arguments, "daemon");
}

void daemon_start(struct daemon *daemon)
{
    daemon_launch(daemon);
    WAIT_FOR(daemon_pid(daemon) == daemon->pid || proc_state(daemon->pid) == 'Z');
    if (daemon_pid(daemon) != daemon->pid)
        ck_abort_msg(
            "it ended with %d: %.3000s", daemon_wait(daemon), daemon_text(daemon, "daemon.err"));
}

struct daemon *daemon_start_new(unsigned port_n, const char *format, ...)
{
    struct daemon *daemon = daemon_create(port_n);
    va_list args;
    char *text;

    va_start(args, format);
    ck_assert_int_ne(vasprintf(&text, format, args), -1);
    va_end(args);
    daemon_configure(daemon, "%s", text);
    free(text);
    daemon_start(daemon);
    return daemon;
}

int daemon_start_background(struct daemon *daemon)
{
    int code = daemon_run(daemon, "-c", "forkbeard.conf", NULL);

    if (code == 0) {
        daemon->pid = daemon_pid(daemon);
        ck_assert_int_gt(daemon->pid, 0);
        ck_assert_int_eq(proc_parent(daemon->pid), getpid());
    }
    return code;
}

pid_t daemon_pid(struct daemon *daemon)
{
    char *text, *end;
    long pid;

    if (!daemon_has(daemon, "forkbeard.pid"))
        return 0;
    text = read_file(daemon_path(daemon, "forkbeard.pid"), 0);
    pid = strtol(text, &end, 10);
    ck_assert_msg((pid > 0 && strcmp(end, "\n") == 0) || !daemon_has(daemon, "forkbeard.pid"),
        "the pid file holds \"%s\"", text);
    free(text);
    return (pid_t)pid;
}

void daemon_signal(const struct daemon *daemon, int number)
{
    ck_assert_int_gt(daemon->pid, 0);
    ck_assert_int_eq(kill(daemon->pid, number), 0);
}

int daemon_wait(struct daemon *daemon)
{
    int code = proc_wait(daemon->pid);

    daemon->pid = 0;
    return code;
}

void daemon_stop(struct daemon *daemon, int number)
{
    int code;

    daemon_signal(daemon, number);
    code = daemon_wait(daemon);
    ck_assert_msg(code == 0, "it ended with %d after signal %d: %.3000s", code, number,
        daemon_text(daemon, daemon->log));
}

/* The log */

void daemon_mark_log(struct daemon *daemon)
{
    daemon->log_mark = strlen(daemon_text(daemon, daemon->log));
}

/* Looks behind the mark, and moves the mark behind the text. */
static bool log_has(struct daemon *daemon, const char *text)
{
    char *log = read_file(daemon_path(daemon, daemon->log), daemon->log_mark);
    const char *found = strstr(log, text);

    if (found != NULL)
        daemon->log_mark += (size_t)(found - log) + strlen(text);
    free(log);
    return found != NULL;
}

void daemon_wait_log(struct daemon *daemon, const char *text)
{
    for (int64_t until = deadline_ms(); !log_has(daemon, text); pause_briefly())
        ck_assert_msg(now_ms() < until, "waited in vain for \"%s\" in:\n%.3000s", text,
            daemon_text(daemon, daemon->log) + daemon->log_mark);
}

unsigned daemon_count_log(struct daemon *daemon, const char *text)
{
    unsigned n = 0;

    for (const char *p = daemon_text(daemon, daemon->log); (p = strstr(p, text)) != NULL; p++)
        n++;
    return n;
}

/* The end */

/* A worker may be so late on a busy machine, while a sanitizer looks for leaks, and leave the
 * sanitizer's helper; test_deadlines.c has workers that hang. */
#define ENDED_LATE ", killed: it had not ended 2 s after it was told to"

static bool is_expected(const struct daemon *daemon, const char *line)
{
    if (!LINUX_SYSTEM && strstr(line, "\"sandbox on\" has no effect") != NULL)
        return true;
    if (strstr(line, ENDED_LATE) != NULL)
        return true;
    for (unsigned i = 0; i < daemon->expected_n; i++)
        if (strstr(line, daemon->expected[i]) != NULL)
            return true;
    return false;
}

static bool is_grave(const char *line)
{
    return strstr(line, "[emerg]") != NULL || strstr(line, "[alert]") != NULL ||
           strstr(line, "[crit]") != NULL || strstr(line, "exited with code 99") != NULL;
}

static void check_lines(struct daemon *daemon, const char *name, bool only_grave)
{
    char *text = read_file(daemon_path(daemon, name), 0), *rest = text, *line;

    while ((line = strsep(&rest, "\n")) != NULL)
        ck_assert_msg(*line == '\0' || (only_grave && !is_grave(line)) || is_expected(daemon, line),
            "%s: %s", name, line);
    free(text);
}

void daemon_finish(struct daemon *daemon)
{
    if (daemon->pid != 0)
        daemon_stop(daemon, SIGTERM);
    if (daemon_count_log(daemon, ENDED_LATE) > 0)
        proc_reap_orphans();
    proc_check_childless();
    check_lines(daemon, daemon->log, true);
    check_lines(daemon, "daemon.err", false);
    ck_assert_str_eq(daemon_text(daemon, "daemon.out"), "");
    resources_end_test(daemon->directory, daemon->owned, daemon->owned_n);
    for (unsigned i = 0; i < daemon->port_n; i++)
        close(daemon->reservations[i]);
    free(daemon->out);
    free(daemon->err);
    free(daemon->text);
    free(daemon);
}
