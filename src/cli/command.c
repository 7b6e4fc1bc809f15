/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends one request to the daemon and prints its reply. The daemon may be of another version: a
 * missing member of the reply counts as empty, and no assertion depends on the reply. */
#include "cli/command.h"

#include "base/diag_json.h"
#include "cli/exchange.h"
#include "cli/status_text.h"
#include "process/config_check.h"
#include "process/pidfile.h"
#include "process/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a command may take unless --timeout says so: a reload and an upgrade check a
 * configuration and start workers. */
#define REPLY_MS 5000
#define OUTCOME_MS 180000

/* Returns the command that the daemon is sent. */
static const char *command_word(const struct cmdline *cmdline)
{
    return cmdline->signal != NULL ? cmdline->signal : cmdline->word->name;
}

static int64_t timeout_ms(const struct cmdline *cmdline)
{
    const char *word = command_word(cmdline);

    if (cmdline->timeout_ms != 0)
        return cmdline->timeout_ms;
    return strcmp(word, "reload") == 0 || strcmp(word, "upgrade") == 0 ? OUTCOME_MS : REPLY_MS;
}

/* Reports a daemon that has not answered; returns the exit code. */
static int report_silence(const struct cmdline *cmdline, const char *path, struct log *log)
{
    int64_t ms = timeout_ms(cmdline);

    log_write(log, LEVEL_EMERG, 0,
        "the daemon with the control socket \"%s\" did not reply to \"%s\" within %" PRId64
        " %s: its master process may be stopped, or need longer (--timeout)",
        path, command_word(cmdline), ms % 1000 == 0 ? ms / 1000 : ms, ms % 1000 == 0 ? "s" : "ms");
    return EXIT_NO_REPLY;
}

/* Sends the command and receives the reply; returns the exit code where there is none. */
static int send_and_wait(const struct cmdline *cmdline, const char *path,
    struct cli_exchange *exchange, int64_t deadline, struct log *log)
{
    char request[64];

    snprintf(request, sizeof(request), "{\"command\":\"%s\"}\n", command_word(cmdline));
    if (cli_send(exchange, request) == 0 && cli_receive(exchange, deadline) == 0)
        return EXIT_SUCCESS;
    if (errno == EAGAIN)
        return report_silence(cmdline, path, log);
    log_write(log, LEVEL_EMERG, errno, "the daemon did not reply to \"%s\"", command_word(cmdline));
    return EXIT_FAILURE;
}

/* Finds the paths of the pid file and the control socket: in the configuration, or with --control
 * without one, and *cycle is then NULL. *control is NULL where the configuration has no control
 * socket. -1 after a report. */
static int load_paths(
    const struct cmdline *cmdline, struct log *log, struct cycle **cycle, const char **control)
{
    struct cycle_options options = cmdline->cycle;

    *cycle = NULL;
    *control = cmdline->control;
    if (cmdline->control != NULL)
        return 0;
    options.only_pid = true;
    *cycle = cycle_load(&options, log, STDERR_FILENO);
    if (*cycle != NULL)
        *control = (*cycle)->core.control;
    return *cycle != NULL ? 0 : -1;
}

static void report_connect(const char *path, struct log *log)
{
    log_write(log, LEVEL_EMERG, errno, "connect() to the control socket \"%s\" failed", path);
}

static void print_message(const struct diag_message *message, struct log *log)
{
    if (message->line != 0)
        log_write(log, (enum log_level)message->level, 0, "%s in %s:%d:%d", message->text,
            message->file, (int)message->line, (int)message->column);
    else
        log_write(log, (enum log_level)message->level, 0, "%s", message->text);
    fputs(message->excerpt, stderr);
}

/* Returns the end of the error line: what a failed command leaves unchanged. */
static const char *unchanged_part(const char *order)
{
    if (strcmp(order, "reload") == 0)
        return ": the previous configuration stays in force";
    return strcmp(order, "upgrade") == 0 ? ": the old process continues to serve" : "";
}

static int print_outcome(
    const struct cmdline *cmdline, const struct cli_exchange *reply, struct log *log)
{
    struct json_value outcome = json_parse(reply->text, reply->line_n);
    struct json_value messages = json_member(outcome, "messages"), at = { NULL, 0 };
    bool ok = json_is_true(json_member(outcome, "ok")), shown = false;
    int64_t pid = json_integer(json_member(outcome, "pid"), 0);
    struct diag_message message;
    char error[4096];

    while (!(ok && cmdline->quiet) && diag_from_json(messages, &at, &message)) {
        print_message(&message, log);
        shown = true;
    }
    if (ok) {
        if (pid > 0 && !cmdline->quiet)
            log_write(log, LEVEL_NOTICE, 0, "the new binary serves now, process %d", (int)pid);
        return EXIT_SUCCESS;
    }
    if (!json_text(json_member(outcome, "error"), error, sizeof(error)))
        snprintf(error, sizeof(error), "the daemon's reply is not valid");
    if (!shown)
        log_write(log, LEVEL_EMERG, 0, "%s", error);
    log_write(log, LEVEL_ERROR, 0, "%s failed%s", cmdline->signal, unchanged_part(cmdline->signal));
    return EXIT_FAILURE;
}

/* Sends the signal that has the same effect as the command; `why` is the errno of connecting to the
 * control socket, or 0 where the configuration has none. */
static int send_signal(
    const struct cmdline *cmdline, const struct cycle *cycle, int why, struct log *log)
{
    struct config_check check = { .pid = 0 };
    const struct signal_row *s = signals_table;
    pid_t pid;

    if (strcmp(cmdline->signal, "reload") == 0 &&
        config_check_run(&check, &cmdline->cycle, log, STDERR_FILENO) == -1)
        return EXIT_FAILURE; /* a configuration with mistakes is not reloaded */
    config_check_done(&check);
    pid = pidfile_read_pid(cycle->core.pid, log);
    if (pid == -1)
        return EXIT_FAILURE;
    while (s->command == NULL || strcmp(s->command, cmdline->signal) != 0)
        s++;
    if (kill(pid, s->number) == -1) {
        log_write(log, LEVEL_ALERT, errno, "kill(%d, %d) failed", (int)pid, s->number);
        return EXIT_FAILURE;
    }
    if (!cmdline->quiet)
        log_write(log, LEVEL_NOTICE, why,
            "%s was sent to process %d, see the error log for the result: there is no control "
            "socket",
            s->name, (int)pid);
    return EXIT_SUCCESS;
}

int cli_command(const struct cmdline *cmdline, struct log *log)
{
    int64_t deadline = cli_now_ms() + timeout_ms(cmdline);
    struct cli_exchange exchange = { .fd = -1 };
    int status = EXIT_FAILURE;
    struct cycle *cycle;
    const char *path;

    if (load_paths(cmdline, log, &cycle, &path) == -1)
        return EXIT_FAILURE;
    errno = 0;
    if (path != NULL)
        cli_connect(&exchange, path, deadline);
    if (exchange.fd == -1 && errno == EAGAIN)
        status = report_silence(cmdline, path, log);
    else if (exchange.fd == -1 && cycle == NULL) /* no pid file is known either */
        report_connect(path, log);
    else if (exchange.fd == -1)
        status = send_signal(cmdline, cycle, errno, log);
    else if ((status = send_and_wait(cmdline, path, &exchange, deadline, log)) == EXIT_SUCCESS)
        status = print_outcome(cmdline, &exchange, log);
    cli_disconnect(&exchange);
    cycle_destroy(&cycle);
    return status;
}

static int print_status(
    const struct cmdline *cmdline, const struct cli_exchange *reply, struct log *log)
{
    struct json_value status = json_parse(reply->text, reply->line_n);
    bool ok = json_is_true(json_member(status, "ok"));
    char error[4096];

    if ((cmdline->options & CMDLINE_JSON) != 0) {
        fwrite(reply->text, 1, reply->line_n, stdout);
    } else if (ok) {
        status_text_write(status, stdout);
    } else {
        if (!json_text(json_member(status, "error"), error, sizeof(error)))
            snprintf(error, sizeof(error), "the daemon's reply is not valid");
        log_write(log, LEVEL_EMERG, 0, "%s", error);
    }
    return ok && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cli_status(const struct cmdline *cmdline, struct log *log)
{
    int64_t deadline = cli_now_ms() + timeout_ms(cmdline);
    struct cli_exchange exchange = { .fd = -1 };
    int status = EXIT_FAILURE;
    struct cycle *cycle;
    const char *path;

    if (load_paths(cmdline, log, &cycle, &path) == -1)
        return EXIT_FAILURE;
    if (path == NULL)
        log_write(log, LEVEL_EMERG, 0,
            "the configuration has no control socket: see the directive \"control\"");
    else if (cli_connect(&exchange, path, deadline) == 0)
        status = send_and_wait(cmdline, path, &exchange, deadline, log);
    else if (errno == EAGAIN)
        status = report_silence(cmdline, path, log);
    else
        report_connect(path, log);
    if (exchange.line_n > 0)
        status = print_status(cmdline, &exchange, log);
    cli_disconnect(&exchange);
    cycle_destroy(&cycle);
    return status;
}
