/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends one request to the daemon and prints its reply. The daemon may be of another version: a
 * missing member of the reply counts as empty, and no assertion depends on the reply. */
#include "cli/command.h"

#include "cli/exchange.h"
#include "cli/masters.h"
#include "cli/outcome.h"
#include "cli/status_text.h"
#include "process/config_check.h"
#include "process/pidfile.h"
#include "process/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
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
    if (strcmp(word, "reload") == 0 || strcmp(word, "upgrade") == 0 || strcmp(word, "resume") == 0)
        return OUTCOME_MS;
    return REPLY_MS;
}

/* Reports a daemon that has not answered, and why it waits ("": it has not said); returns the exit
 * code. */
static int report_silence(
    const struct cmdline *cmdline, const char *path, const char *why, struct log *log)
{
    int64_t ms = timeout_ms(cmdline);
    bool said = why[0] != '\0';

    log_write(log, LEVEL_EMERG, 0,
        "the daemon with the control socket \"%s\" did not reply to \"%s\" within %" PRId64
        " %s%s%s%s",
        path, command_word(cmdline), ms % 1000 == 0 ? ms / 1000 : ms, ms % 1000 == 0 ? "s" : "ms",
        said ? ", because " : "", why,
        said ? ": the command stays given"
             : ": its master process may be stopped, or need longer (--timeout)");
    return EXIT_NO_REPLY;
}

/* Receives the reply, and before it why the command waits, which is printed; -1 with errno. */
static int receive_reply(const struct cmdline *cmdline, struct cli_exchange *exchange,
    int64_t deadline, char *why, size_t size, struct log *log)
{
    while (cli_receive(exchange, deadline) == 0) {
        struct json_value line = json_parse(exchange->text, exchange->line_n);

        if (!json_text(json_member(line, "waiting"), why, size))
            return 0;
        if (!cmdline->quiet)
            log_write(log, LEVEL_NOTICE, 0, "\"%s\" waits: %s", command_word(cmdline), why);
    }
    return -1;
}

/* Sends the command; -1 with errno. */
static int send_request(const struct cmdline *cmdline, struct cli_exchange *exchange)
{
    char request[64];

    snprintf(request, sizeof(request), "{\"command\":\"%s\",\"progress\":true}\n",
        command_word(cmdline));
    return cli_send(exchange, request);
}

/* Receives the reply to what was sent (-1: it could not be, with errno); returns the exit code
 * where there is none. */
static int wait_for_reply(const struct cmdline *cmdline, const char *path, int sent,
    struct cli_exchange *exchange, int64_t deadline, struct log *log)
{
    char why[512] = "";

    if (sent == 0 && receive_reply(cmdline, exchange, deadline, why, sizeof(why), log) == 0)
        return EXIT_SUCCESS;
    if (errno == EAGAIN) {
        exchange->line_n = 0;
        return report_silence(cmdline, path, why, log);
    }
    log_write(log, LEVEL_EMERG, errno, "the daemon did not reply to \"%s\"", command_word(cmdline));
    return EXIT_FAILURE;
}

/* Finds the paths of the pid file and the control socket: in the configuration, or with --control
 * without one; then there is no pid file, and *cycle is NULL. -1 after a report. */
static int load_paths(const struct cmdline *cmdline, struct log *log, struct cycle **cycle,
    struct core_settings *core)
{
    struct cycle_options options = cmdline->cycle;

    *cycle = NULL;
    *core = (struct core_settings) { .control = (char *)cmdline->control };
    if (cmdline->control != NULL)
        return 0;
    options.only_pid = true;
    *cycle = cycle_load(&options, log, STDERR_FILENO);
    if (*cycle != NULL)
        *core = (*cycle)->core;
    return *cycle != NULL ? 0 : -1;
}

static void report_no_control(struct log *log)
{
    log_write(log, LEVEL_EMERG, 0,
        "the configuration has no control socket: see the directive \"control\"");
}

static void report_connect(const char *path, int error, struct log *log)
{
    log_write(log, LEVEL_EMERG, error, "connect() to the control socket \"%s\" failed", path);
}

/* Waits for the reply as wait_for_reply() does, and prints it; returns the exit code. */
static int print_reply(const struct cmdline *cmdline, const char *path, int sent,
    struct cli_exchange *exchange, int64_t deadline, struct log *log)
{
    int status = wait_for_reply(cmdline, path, sent, exchange, deadline, log);

    return status == EXIT_SUCCESS ? outcome_print(cmdline, exchange, log) : status;
}

/* Sends the signal that has the same effect as the command to the process that a pid file names;
 * `why` is the errno of connecting to the control socket, or 0 where the configuration has none. */
static int send_signal(const struct cmdline *cmdline, const char *path, int why, struct log *log)
{
    struct config_check check = { .pid = 0 };
    const struct signal_row *s = signals_table;
    pid_t pid;

    if (strcmp(cmdline->signal, "leave") == 0) { /* the signal is that of quit */
        log_write(log, LEVEL_EMERG, why, "sessions are left over a control socket alone");
        return EXIT_FAILURE;
    }
    if (strcmp(cmdline->signal, "reload") == 0 &&
        config_check_run(&check, &cmdline->cycle, log, STDERR_FILENO) == -1)
        return EXIT_FAILURE; /* a configuration with mistakes is not reloaded */
    config_check_done(&check);
    pid = pidfile_read_pid(path, log);
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

int cli_ask(const struct cmdline *cmdline, const char *request, cli_print *print, struct log *log)
{
    int64_t deadline = cli_now_ms() + timeout_ms(cmdline);
    struct cli_exchange exchange = { .fd = -1 };
    struct core_settings core;
    int status = EXIT_FAILURE;
    struct cycle *cycle;

    if (load_paths(cmdline, log, &cycle, &core) == -1)
        return EXIT_FAILURE;
    if (core.control == NULL)
        report_no_control(log);
    else if (cli_connect(&exchange, core.control, deadline) == -1 && errno == EAGAIN)
        status = report_silence(cmdline, core.control, "", log);
    else if (exchange.fd == -1)
        report_connect(core.control, errno, log);
    else
        status = wait_for_reply(
            cmdline, core.control, cli_send(&exchange, request), &exchange, deadline, log);
    if (exchange.line_n > 0)
        status = print(cmdline, &exchange, log);
    cli_disconnect(&exchange);
    cycle_destroy(&cycle);
    return status;
}

/* Connects to a process that has left the configuration's paths; -1 where there is none, but
 * perhaps a name that one has left which was killed. */
static int connect_to_other(
    struct cli_exchange *exchange, const struct masters_entry *entry, int64_t deadline)
{
    *exchange = (struct cli_exchange) { .fd = -1 };
    if (entry->place == MASTERS_FIRST || entry->control == NULL)
        return -1;
    return cli_connect(exchange, entry->control, deadline);
}

/* Whether the pid is that of a process that commands are sent to as signals. */
static bool takes_signals(const struct masters_entry *entry, const struct core_settings *core)
{
    return core->control == NULL && entry->pid > 0 && (kill(entry->pid, 0) == 0 || errno == EPERM);
}

/* Whether it is a process that shuts down, as far as can be found out. */
static bool is_quitting(const struct masters_entry *entry, const struct core_settings *core)
{
    struct cli_exchange exchange;
    int status;

    if (entry->place != MASTERS_QUITTING)
        return false;
    if (core->control == NULL)
        return takes_signals(entry, core);
    status = connect_to_other(&exchange, entry, cli_now_ms() + REPLY_MS);
    cli_disconnect(&exchange);
    return status == 0;
}

/* Sends the command to the process at the configuration's paths, by its control socket or as a
 * signal; returns the exit code. */
static int command_first(
    const struct cmdline *cmdline, const struct core_settings *core, struct log *log)
{
    int64_t deadline = cli_now_ms() + timeout_ms(cmdline);
    struct cli_exchange exchange = { .fd = -1 };
    const char *path = core->control;
    int status = EXIT_FAILURE;

    errno = 0;
    if (path != NULL)
        cli_connect(&exchange, path, deadline);
    if (exchange.fd == -1 && errno == EAGAIN)
        status = report_silence(cmdline, path, "", log);
    else if (exchange.fd == -1 && core->pid == NULL)
        report_connect(path, errno, log);
    else if (exchange.fd == -1 && strcmp(cmdline->signal, "resume") == 0)
        log_write(log, LEVEL_EMERG, 0, /* SIGHUP would be a reload */
            "no daemon is shutting down with the pid file \"%s\"", core->pid);
    else if (exchange.fd == -1 && pidfile_is_stale(core->pid))
        log_write(log, LEVEL_EMERG, 0, "no daemon runs with the pid file \"%s\"", core->pid);
    else if (exchange.fd == -1)
        status = send_signal(cmdline, core->pid, errno, log);
    else
        status =
            print_reply(cmdline, path, send_request(cmdline, &exchange), &exchange, deadline, log);
    cli_disconnect(&exchange);
    return status;
}

/* Sends the command to another process, without waiting for the reply of one that has a control
 * socket: that is *exchange then. Sets *status to the exit code if it failed; whether there is such
 * a process. */
static bool begin_other(const struct cmdline *cmdline, const struct core_settings *core,
    const struct masters_entry *entry, struct cli_exchange *exchange, int *status, struct log *log)
{
    char path[PATH_MAX];
    int sent;

    if (connect_to_other(exchange, entry, cli_now_ms() + timeout_ms(cmdline)) == 0) {
        send_request(cmdline, exchange); /* otherwise there is no reply either */
        return true;
    }
    if (entry->place == MASTERS_FIRST || !takes_signals(entry, core))
        return false;
    if (entry->place == MASTERS_OLD)
        snprintf(path, sizeof(path), "%s" PIDFILE_OLD_SUFFIX, core->pid);
    else
        snprintf(path, sizeof(path), "%s" PIDFILE_QUIT_SUFFIX "%d", core->pid, (int)entry->pid);
    sent = send_signal(cmdline, path, 0, log);
    if (sent != EXIT_SUCCESS)
        *status = sent;
    return true;
}

/* Waits for the reply, if there is to be one, and sets *status as begin_other() does. */
static void finish_other(const struct cmdline *cmdline, const struct masters_entry *entry,
    struct cli_exchange *exchange, int *status, struct log *log)
{
    int64_t deadline = cli_now_ms() + timeout_ms(cmdline);
    int replied = EXIT_SUCCESS;

    if (exchange->fd != -1)
        replied = print_reply(cmdline, entry->control, 0, exchange, deadline, log);
    cli_disconnect(exchange);
    if (replied != EXIT_SUCCESS)
        *status = replied;
}

static bool has_first(const struct masters *masters)
{
    return masters->n > 0 && masters->list[0].place == MASTERS_FIRST;
}

/* Sends the command to all: those that have left the configuration's paths, and the one that has
 * them. One that does not reply keeps none of the others waiting. */
static int command_all(const struct cmdline *cmdline, const struct core_settings *core,
    const struct masters *masters, struct log *log)
{
    struct cli_exchange *exchanges = calloc(masters->n + 1, sizeof(*exchanges));
    int status = EXIT_SUCCESS, first = EXIT_SUCCESS;
    bool others = false;

    if (exchanges == NULL) {
        log_write(log, LEVEL_EMERG, errno, "no memory for the connections to master processes");
        return EXIT_FAILURE;
    }
    for (unsigned i = 0; i < masters->n; i++)
        others |= begin_other(cmdline, core, &masters->list[i], &exchanges[i], &status, log);
    if (!others || has_first(masters))
        first = command_first(cmdline, core, log);
    for (unsigned i = 0; i < masters->n; i++)
        finish_other(cmdline, &masters->list[i], &exchanges[i], &status, log);
    free(exchanges);
    return first != EXIT_SUCCESS ? first : status;
}

/* Sends the command for which processes that shut down are of interest to the one that has begun
 * last; false if there is none. */
static bool command_quitting(const struct cmdline *cmdline, const struct core_settings *core,
    const struct masters *masters, int *status, struct log *log)
{
    struct cli_exchange exchange;
    unsigned i = 0;

    while (i < masters->n && !is_quitting(&masters->list[i], core))
        i++;
    if (i == masters->n)
        return false;
    if (strcmp(cmdline->signal, "resume") == 0) {
        if (!begin_other(cmdline, core, &masters->list[i], &exchange, status, log))
            return false; /* the process has just ended */
        finish_other(cmdline, &masters->list[i], &exchange, status, log);
        return true;
    }
    if (strcmp(cmdline->signal, "quit") != 0) {
        log_write(log, LEVEL_EMERG, 0,
            "no daemon serves with the pid file \"%s\": process %d is shutting down, and \"-s "
            "resume\" would have it serve again",
            core->pid, (int)masters->list[i].pid);
        *status = EXIT_FAILURE;
    } else if (!cmdline->quiet) {
        log_write(
            log, LEVEL_NOTICE, 0, "process %d is shutting down already", (int)masters->list[i].pid);
    }
    return true;
}

/* Sends a command to the right ones of several processes; returns the exit code. */
static int command_masters(const struct cmdline *cmdline, const struct core_settings *core,
    const struct masters *masters, struct log *log)
{
    bool resume = strcmp(cmdline->signal, "resume") == 0;
    int status = EXIT_SUCCESS;

    if (strcmp(cmdline->signal, "stop") == 0 || strcmp(cmdline->signal, "reopen") == 0)
        return command_all(cmdline, core, masters, log);
    if ((resume || !has_first(masters)) && command_quitting(cmdline, core, masters, &status, log))
        return status;
    return command_first(cmdline, core, log);
}

int cli_command(const struct cmdline *cmdline, struct log *log)
{
    struct masters masters = { .n = 0 };
    struct core_settings core, names;
    int status = EXIT_FAILURE;
    struct cycle *cycle;
    bool all;

    if (load_paths(cmdline, log, &cycle, &core) == -1)
        return EXIT_FAILURE;
    names = core;
    if (cycle == NULL) /* the socket's names are all that is known */
        names.pid = names.control;
    /* with --control other commands are for the process at this path alone */
    all = cycle != NULL || strcmp(cmdline->signal, "reopen") == 0;
    if (all && masters_find(&masters, &names) == -1)
        log_write(log, LEVEL_EMERG, errno, "no memory for the names of master processes");
    else
        status = command_masters(cmdline, &core, &masters, log);
    masters_free(&masters);
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

/* Asks a connected process for its status, and shows it; `more`: behind that of another one.
 * Returns the exit code. */
static int show_status(const struct cmdline *cmdline, const char *path,
    struct cli_exchange *exchange, bool more, struct log *log)
{
    int64_t deadline = cli_now_ms() + timeout_ms(cmdline);
    int status =
        wait_for_reply(cmdline, path, send_request(cmdline, exchange), exchange, deadline, log);

    if (exchange->line_n > 0 && more && (cmdline->options & CMDLINE_JSON) == 0)
        putchar('\n');
    if (exchange->line_n > 0)
        status = print_status(cmdline, exchange, log);
    cli_disconnect(exchange);
    return status;
}

/* Shows the status of the process at the configuration's paths, and of those that have left them;
 * returns the exit code. */
static int show_masters(const struct cmdline *cmdline, const struct core_settings *core,
    const struct masters *masters, struct log *log)
{
    int64_t deadline = cli_now_ms() + timeout_ms(cmdline);
    struct cli_exchange exchange;
    int status = EXIT_SUCCESS, error = 0, of_other;
    bool first = cli_connect(&exchange, core->control, deadline) == 0, shown = first;

    if (first)
        status = show_status(cmdline, core->control, &exchange, false, log);
    else
        error = errno;
    for (unsigned i = 0; i < masters->n; i++) {
        if (connect_to_other(&exchange, &masters->list[i], deadline) == -1)
            continue;
        of_other = show_status(cmdline, masters->list[i].control, &exchange, shown, log);
        status = status != EXIT_SUCCESS ? status : of_other;
        shown = true;
    }
    if (!first && error == EAGAIN)
        return report_silence(cmdline, core->control, "", log);
    if (shown)
        return status;
    report_connect(core->control, error, log);
    return EXIT_FAILURE;
}

int cli_status(const struct cmdline *cmdline, struct log *log)
{
    struct masters masters = { .n = 0 };
    int status = EXIT_FAILURE;
    struct core_settings core;
    struct cycle *cycle;

    if (load_paths(cmdline, log, &cycle, &core) == -1)
        return EXIT_FAILURE;
    if (core.control == NULL)
        report_no_control(log);
    else if (cycle != NULL && masters_find(&masters, &core) == -1)
        log_write(log, LEVEL_EMERG, errno, "no memory for the names of master processes");
    else
        status = show_masters(cmdline, &core, &masters, log);
    masters_free(&masters);
    cycle_destroy(&cycle);
    return status;
}
