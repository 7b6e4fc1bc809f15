/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends a request to the daemon and prints the reply. The daemon may be of a different version: a
 * missing member of the reply counts as empty, and no assertion depends on the reply. */
#include "cli/command.h"

#include "cli/exchange.h"
#include "cli/masters.h"
#include "cli/reply_text.h"
#include "configuration/config_check.h"
#include "pidfile/pidfile.h"
#include "process/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time limit without --timeout, and for a command that starts workers. */
#define REPLY_MS 5000
#define OUTCOME_MS 180000

/* A command under way. */
struct job {
    const struct cmdline *cmdline;
    struct log *log;
    const char *word; /* the command that the daemon is sent */
    int64_t timeout_ms;
    struct cycle *cycle; /* NULL with --control */
    struct core_settings core;
    struct masters masters;
};

int cli_load_paths(const struct cmdline *cmdline, struct log *log, struct cycle **cycle,
    struct core_settings *core)
{
    struct cycle_options options = cmdline->cycle;

    *cycle = NULL;
    *core = (struct core_settings) { .pid = cmdline->control, .control.path = cmdline->control };
    if (cmdline->control != NULL)
        return 0;
    options.only_pid = true;
    *cycle = cycle_load(&options, log, STDERR_FILENO);
    if (*cycle != NULL)
        *core = (*cycle)->core;
    return *cycle != NULL ? 0 : -1;
}

static void job_done(struct job *job)
{
    masters_free(&job->masters);
    cycle_destroy(&job->cycle);
}

/* Loads the paths; -1 after a report. */
static int job_init(struct job *job, const struct cmdline *cmdline, struct log *log)
{
    const char *word = cmdline->signal != NULL ? cmdline->signal : cmdline->word->name;
    bool is_long =
        strcmp(word, "reload") == 0 || strcmp(word, "upgrade") == 0 || strcmp(word, "resume") == 0;

    *job = (struct job) { .cmdline = cmdline, .log = log, .word = word };
    job->timeout_ms = cmdline->timeout_ms != 0 ? cmdline->timeout_ms
                      : is_long                ? OUTCOME_MS
                                               : REPLY_MS;
    if (cli_load_paths(cmdline, log, &job->cycle, &job->core) == -1)
        return -1;
    if (cmdline->signal != NULL || job->core.control.path != NULL)
        return 0;
    log_write(log, LEVEL_EMERG, 0,
        "the configuration has no control socket: see the directive \"control\"");
    job_done(job);
    return -1;
}

/* Requests and replies */

/* Reports a missing reply, and the reason of the wait ("": unknown); returns the exit code. */
static int report_silence(const struct job *job, const char *path, const char *why)
{
    int64_t ms = job->timeout_ms;
    bool said = why[0] != '\0';

    log_write(job->log, LEVEL_EMERG, 0,
        "the daemon with the control socket \"%s\" did not reply to \"%s\" within %" PRId64
        " %s%s%s%s",
        path, job->word, ms % 1000 == 0 ? ms / 1000 : ms, ms % 1000 == 0 ? "s" : "ms",
        said ? ", because " : "", why,
        said ? ": the command stays given"
             : ": the master process may be stopped, or need longer (--timeout)");
    return EXIT_NO_REPLY;
}

/* Reports a failed connection with errno; returns the exit code. */
static int report_connect(const struct job *job, const char *path)
{
    if (errno == EAGAIN)
        return report_silence(job, path, "");
    log_write(job->log, LEVEL_EMERG, errno, "connect() to the control socket \"%s\" failed", path);
    return EXIT_FAILURE;
}

/* Connects and sends the command; -1 with errno without a connection. */
static int begin_command(const struct job *job, struct cli_exchange *exchange, const char *path)
{
    char request[64];

    if (cli_connect(exchange, path, cli_now_ms() + job->timeout_ms) == -1)
        return -1;
    snprintf(request, sizeof(request), "{\"command\":\"%s\",\"progress\":true}\n", job->word);
    cli_send(exchange, request); /* a failure shows as a missing reply */
    return 0;
}

/* Receives the reply, after progress lines; returns the exit code of a missing reply. */
static int wait_for_reply(const struct job *job, struct cli_exchange *exchange, const char *path)
{
    char why[512] = "", next[512];

    while (cli_receive(exchange) == 0) {
        struct json_value line = json_parse(exchange->text, exchange->line_n);

        if (!json_text(json_member(line, "waiting"), next, sizeof(next)))
            return EXIT_SUCCESS;
        memcpy(why, next, sizeof(why));
        if (!job->cmdline->quiet)
            log_write(job->log, LEVEL_NOTICE, 0, "\"%s\" waits: %s", job->word, why);
    }
    if (errno == EAGAIN)
        return report_silence(job, path, why);
    log_write(job->log, LEVEL_EMERG, errno, "the daemon did not reply to \"%s\"", job->word);
    return EXIT_FAILURE;
}

/* Waits for the reply to a command of -s, and prints it; returns the exit code. */
static int finish_command(const struct job *job, struct cli_exchange *exchange, const char *path)
{
    int status = wait_for_reply(job, exchange, path);

    return status == EXIT_SUCCESS ? cli_print_outcome(job->cmdline, exchange, job->log) : status;
}

/* Prints the reply, behind an empty line unless the first; returns the exit code. */
static int print_reply(const struct job *job, const struct cli_exchange *exchange, bool first,
    void (*show)(struct json_value reply, FILE *out))
{
    struct json_value reply = json_parse(exchange->text, exchange->line_n);
    bool ok = json_is_true(json_member(reply, "ok"));

    if (!first && (job->cmdline->options & CMDLINE_JSON) == 0)
        putchar('\n');
    if ((job->cmdline->options & CMDLINE_JSON) != 0)
        cli_print_line(exchange);
    else if (ok)
        show(reply, stdout);
    else
        cli_print_error(reply, job->log);
    return fflush(stdout) == 0 && ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Sends a request to the process at a path, and prints the reply, with -f until the process ends.
 * Sets *status; false with errno after a failed connection. */
static bool ask_process(const struct job *job, const char *path, const char *request, bool first,
    void (*show)(struct json_value reply, FILE *out), int *status)
{
    bool follows = (job->cmdline->options & CMDLINE_FOLLOW) != 0, more = true;
    struct cli_exchange exchange;

    if (cli_connect(&exchange, path, cli_now_ms() + job->timeout_ms) == -1)
        return false;
    cli_send(&exchange, request);
    *status = wait_for_reply(job, &exchange, path);
    while (*status == EXIT_SUCCESS && more) {
        *status = print_reply(job, &exchange, first, show);
        more = follows && *status == EXIT_SUCCESS && cli_receive_next(&exchange) == 0;
    }
    if (follows && *status == EXIT_SUCCESS)
        log_write(job->log, LEVEL_NOTICE, 0, "the daemon's master process has ended");
    cli_disconnect(&exchange);
    return true;
}

/* -s */

/* Sends the signal, to the process in the pid file for -1; `why`: errno of the connection. */
static int send_command_signal(const struct job *job, pid_t pid, int why)
{
    const struct signal_row *s = signals_named(job->word);
    struct config_check check = { .pid = 0 };
    struct log *log = job->log;

    if (strcmp(job->word, "leave") == 0) { /* shares the signal of quit */
        log_write(log, LEVEL_EMERG, why, "sessions are left over a control socket alone");
        return EXIT_FAILURE;
    }
    if (strcmp(job->word, "reload") == 0 &&
        config_check_run(&check, &job->cmdline->cycle, log, STDERR_FILENO) == -1)
        return EXIT_FAILURE; /* a configuration with mistakes is not reloaded */
    config_check_done(&check);
    if (pid == -1 && (pid = pidfile_read_pid(job->core.pid, log)) == -1)
        return EXIT_FAILURE;
    if (kill(pid, s->number) == -1) {
        log_write(log, LEVEL_ALERT, errno, "kill(%d, %d) failed", (int)pid, s->number);
        return EXIT_FAILURE;
    }
    if (!job->cmdline->quiet)
        log_write(log, LEVEL_NOTICE, why,
            "%s was sent to process %d, see the error log for the result: there is no control "
            "socket",
            s->name, (int)pid);
    return EXIT_SUCCESS;
}

/* Sends the command to the process at the configuration's paths; returns the exit code. */
static int command_first(const struct job *job)
{
    const char *path = job->core.control.path, *pid_path = job->core.pid;
    struct cli_exchange exchange = { .fd = -1 };
    int status = EXIT_FAILURE, error;

    errno = 0;
    if (path != NULL && begin_command(job, &exchange, path) == 0) {
        status = finish_command(job, &exchange, path);
    } else if ((error = errno) == EAGAIN || job->cycle == NULL) {
        status = report_connect(job, path);
    } else if (strcmp(job->word, "resume") == 0) { /* SIGHUP would be a reload */
        log_write(job->log, LEVEL_EMERG, 0, "no daemon is shutting down with the pid file \"%s\"",
            pid_path);
    } else if (pidfile_is_stale(pid_path)) {
        log_write(job->log, LEVEL_EMERG, 0, "no daemon runs with the pid file \"%s\"", pid_path);
    } else {
        status = send_command_signal(job, -1, error);
    }
    cli_disconnect(&exchange);
    return status;
}

/* Sends the command to a process that has left the configuration's paths. A reply of its control
 * socket is awaited by finish_other(), on *exchange. Sets *status after a failure; whether the
 * process exists. */
static bool begin_other(const struct job *job, const struct masters_entry *entry,
    struct cli_exchange *exchange, int *status)
{
    int sent;

    *exchange = (struct cli_exchange) { .fd = -1 };
    if (entry->place == MASTERS_FIRST)
        return false;
    if (entry->control != NULL && begin_command(job, exchange, entry->control) == 0)
        return true;
    if (job->core.control.path != NULL || entry->pid <= 0 ||
        (kill(entry->pid, 0) == -1 && errno != EPERM))
        return false;
    sent = send_command_signal(job, entry->pid, 0);
    if (sent != EXIT_SUCCESS)
        *status = sent;
    return true;
}

/* Waits for the reply, if any, and sets *status after a failure. */
static void finish_other(const struct job *job, const struct masters_entry *entry,
    struct cli_exchange *exchange, int *status)
{
    int replied;

    exchange->deadline = cli_now_ms() + job->timeout_ms;
    if (exchange->fd != -1 &&
        (replied = finish_command(job, exchange, entry->control)) != EXIT_SUCCESS)
        *status = replied;
    cli_disconnect(exchange);
}

static bool has_first(const struct masters *masters)
{
    return masters->n > 0 && masters->list[0].place == MASTERS_FIRST;
}

/* Sends the command to all processes, first to those that have left the configuration's paths. A
 * silent process does not delay the rest. */
static int command_all(const struct job *job)
{
    const struct masters *masters = &job->masters;
    struct cli_exchange *exchanges = calloc(masters->n + 1, sizeof(*exchanges));
    int status = EXIT_SUCCESS, first = EXIT_SUCCESS;
    bool others = false;

    if (exchanges == NULL) {
        log_write(
            job->log, LEVEL_EMERG, errno, "no memory for the connections to master processes");
        return EXIT_FAILURE;
    }
    for (unsigned i = 0; i < masters->n; i++)
        others |= begin_other(job, &masters->list[i], &exchanges[i], &status);
    if (!others || has_first(masters))
        first = command_first(job);
    for (unsigned i = 0; i < masters->n; i++)
        finish_other(job, &masters->list[i], &exchanges[i], &status);
    free(exchanges);
    return first != EXIT_SUCCESS ? first : status;
}

/* Gives the command to the process that has begun to quit last; false: none. */
static bool command_quitting(const struct job *job, int *status)
{
    const struct masters_entry *entry = masters_quitting(&job->masters);
    struct cli_exchange exchange;

    if (entry == NULL)
        return false;
    if (strcmp(job->word, "resume") == 0) {
        if (!begin_other(job, entry, &exchange, status))
            return false; /* the process has just ended */
        finish_other(job, entry, &exchange, status);
        return true;
    }
    if (strcmp(job->word, "quit") != 0) {
        log_write(job->log, LEVEL_EMERG, 0,
            "no daemon serves with the pid file \"%s\": process %d is shutting down, and \"-s "
            "resume\" would have it serve again",
            job->core.pid, (int)entry->pid);
        *status = EXIT_FAILURE;
    } else if (!job->cmdline->quiet) {
        log_write(
            job->log, LEVEL_NOTICE, 0, "process %d is shutting down already", (int)entry->pid);
    }
    return true;
}

/* Selects the processes for the command; returns the exit code. */
static int command_masters(const struct job *job)
{
    bool resume = strcmp(job->word, "resume") == 0;
    int status = EXIT_SUCCESS;

    if (strcmp(job->word, "stop") == 0 || strcmp(job->word, "reopen") == 0)
        return command_all(job);
    if ((resume || !has_first(&job->masters)) && command_quitting(job, &status))
        return status;
    return command_first(job);
}

int cli_command(const struct cmdline *cmdline, struct log *log)
{
    int status = EXIT_FAILURE;
    struct job job;

    if (job_init(&job, cmdline, log) == -1)
        return EXIT_FAILURE;
    /* with --control the rest is for the process at this path alone */
    if ((job.cycle == NULL && strcmp(job.word, "reopen") != 0) ||
        masters_find(&job.masters, &job.core, log) == 0)
        status = command_masters(&job);
    job_done(&job);
    return status;
}

/* status */

/* Shows the status of all processes, first at the configuration's paths; returns the exit code. */
static int show_masters(const struct job *job)
{
    static const char request[] = "{\"command\":\"status\"}\n";
    const char *path = job->core.control.path;
    int status = EXIT_SUCCESS, error = 0, of_other;
    bool shown = ask_process(job, path, request, true, reply_text_status, &status);

    if (!shown)
        error = errno;
    for (unsigned i = 0; i < job->masters.n; i++) {
        const struct masters_entry *entry = &job->masters.list[i];

        if (entry->place == MASTERS_FIRST || entry->control == NULL ||
            !ask_process(job, entry->control, request, !shown, reply_text_status, &of_other))
            continue;
        status = status != EXIT_SUCCESS ? status : of_other;
        shown = true;
    }
    errno = error;
    return error == EAGAIN || !shown ? report_connect(job, path) : status;
}

/* Shows the problems of the process at the configuration's paths; returns a plugin's exit code. */
static int check_daemon(const struct job *job)
{
    const char *path = job->core.control.path;
    struct cli_exchange exchange = { .fd = -1 };
    struct json_value reply;
    int level = CHECK_CRITICAL;

    if (cli_request(&exchange, path, "status", cli_now_ms() + job->timeout_ms) == -1) {
        puts("CRITICAL: the daemon does not reply");
        report_connect(job, path);
    } else if (wait_for_reply(job, &exchange, path) != EXIT_SUCCESS) {
        puts("CRITICAL: the daemon does not reply");
    } else {
        reply = json_parse(exchange.text, exchange.line_n);
        level = reply_text_level(reply);
        if ((job->cmdline->options & CMDLINE_JSON) != 0)
            cli_print_line(&exchange);
        else
            reply_text_check(reply, stdout);
    }
    cli_disconnect(&exchange);
    return fflush(stdout) == 0 ? level : CHECK_UNKNOWN;
}

int cli_status(const struct cmdline *cmdline, struct log *log)
{
    bool checks = (cmdline->options & CMDLINE_CHECK) != 0;
    int status = EXIT_FAILURE;
    struct job job;

    if (job_init(&job, cmdline, log) == -1)
        return checks ? CHECK_UNKNOWN : EXIT_FAILURE;
    if (checks)
        status = check_daemon(&job);
    else if (job.cycle == NULL || masters_find(&job.masters, &job.core, log) == 0)
        status = show_masters(&job);
    job_done(&job);
    return status;
}

int cli_ask_first(const struct cmdline *cmdline, struct log *log, const char *request,
    void (*show)(struct json_value reply, FILE *out))
{
    int status = EXIT_FAILURE;
    struct job job;

    if (job_init(&job, cmdline, log) == -1)
        return EXIT_FAILURE;
    if (!ask_process(&job, job.core.control.path, request, true, show, &status))
        status = report_connect(&job, job.core.control.path);
    job_done(&job);
    return status;
}

/* upstream */

/* Writes the request; NULL without memory. */
static char *make_request(const struct cmdline *cmdline)
{
    struct json json;
    size_t n;

    json_begin(&json);
    json_object(&json, NULL);
    json_string(&json, "command", "upstream");
    if (cmdline->argument != NULL)
        json_string(&json, "upstream", cmdline->argument);
    if (cmdline->more_n == 2) {
        json_string(&json, "state", cmdline->more[0]);
        json_string(&json, "server", cmdline->more[1]);
    }
    json_close(&json);
    return json_end(&json, &n);
}

int cli_upstream(const struct cmdline *cmdline, struct log *log)
{
    char *request;
    int status;

    if (cmdline->more_n == 1) {
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"upstream %s %s\", expected \"upstream %s up|drain|down|auto "
            "server\"",
            cmdline->argument, cmdline->more[0], cmdline->argument);
        return EXIT_FAILURE;
    }
    request = make_request(cmdline);
    if (request == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the request");
        return EXIT_FAILURE;
    }
    status = cli_ask_first(cmdline, log, request, reply_text_upstreams);
    free(request);
    return status;
}

/* certificates, events */

int cli_certificates(const struct cmdline *cmdline, struct log *log)
{
    return cli_ask_first(cmdline, log, "{\"command\":\"certificates\"}\n", reply_text_certificates);
}

int cli_events(const struct cmdline *cmdline, struct log *log)
{
    bool follows = (cmdline->options & CMDLINE_FOLLOW) != 0;

    return cli_ask_first(cmdline, log,
        follows ? "{\"command\":\"events\",\"follow\":true}\n" : "{\"command\":\"events\"}\n",
        reply_text_events);
}
