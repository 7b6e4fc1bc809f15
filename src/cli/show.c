/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the daemon, and shows the reply: status, upstream, log, sessions, certificates, events. The
 * daemon may be of a different version: a missing member of a reply counts as empty. */
#include "cli/job.h"
#include "cli/reply_text.h"
#include "cli/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the reply, behind an empty line unless the first; returns the exit code. */
static int print_reply(const struct cli_job *job, const struct cli_exchange *exchange, bool first,
    void (*show)(struct json_value reply, FILE *out))
{
    struct json_value reply = json_parse(exchange->text, exchange->line_n);
    bool ok = json_is_true(json_member(reply, "ok"));

    if (ok && job->rows != NULL)
        return sessions_collect(job->rows, reply, exchange->passed, job->log);
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
static bool ask_process(const struct cli_job *job, const char *path, const char *request,
    bool first, void (*show)(struct json_value reply, FILE *out), int *status)
{
    bool follows = (job->cmdline->options & CMDLINE_FOLLOW) != 0, more = true;
    struct cli_exchange exchange;

    if (cli_connect(&exchange, path, cli_now_ms() + job->timeout_ms) == -1)
        return false;
    cli_send(&exchange, request);
    *status = cli_job_wait(job, &exchange, path);
    while (*status == EXIT_SUCCESS && more) {
        *status = print_reply(job, &exchange, first, show);
        more = follows && *status == EXIT_SUCCESS && cli_receive_next(&exchange) == 0;
    }
    if (follows && *status == EXIT_SUCCESS)
        log_write(job->log, LEVEL_NOTICE, 0, "the daemon's master process has ended");
    cli_disconnect(&exchange);
    return true;
}

/* status */

/* Sends a request to all processes, first to the one at the configuration's paths, and shows the
 * replies; returns the exit code. */
static int ask_masters(const struct cli_job *job, const char *request,
    void (*show)(struct json_value reply, FILE *out))
{
    const char *path = job->core.control.path;
    int status = EXIT_SUCCESS, error = 0, of_other;
    bool shown = ask_process(job, path, request, true, show, &status);

    if (!shown)
        error = errno;
    for (unsigned i = 0; i < job->masters.n; i++) {
        const struct masters_entry *entry = &job->masters.list[i];

        if (entry->place == MASTERS_FIRST || entry->control == NULL ||
            !ask_process(job, entry->control, request, !shown, show, &of_other))
            continue;
        status = status != EXIT_SUCCESS ? status : of_other;
        shown = true;
    }
    errno = error;
    return error == EAGAIN || !shown ? cli_job_report_connect(job, path) : status;
}

/* Shows the problems of the process at the configuration's paths; returns a plugin's exit code. */
static int check_daemon(const struct cli_job *job)
{
    const char *path = job->core.control.path;
    struct cli_exchange exchange = { .fd = -1 };
    struct json_value reply;
    int level = CHECK_CRITICAL;

    if (cli_request(&exchange, path, "status", cli_now_ms() + job->timeout_ms) == -1) {
        puts("CRITICAL: the daemon does not reply");
        cli_job_report_connect(job, path);
    } else if (cli_job_wait(job, &exchange, path) != EXIT_SUCCESS) {
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
    struct cli_job job;

    if (cli_job_init(&job, cmdline, log) == -1)
        return checks ? CHECK_UNKNOWN : EXIT_FAILURE;
    if (checks)
        status = check_daemon(&job);
    else if (job.cycle == NULL || masters_find(&job.masters, &job.core, log) == 0)
        status = ask_masters(&job, "{\"command\":\"status\"}\n", reply_text_status);
    cli_job_done(&job);
    return status;
}

/* Asks the process at the configuration's paths alone; returns the exit code. */
static int ask_first(const struct cmdline *cmdline, struct log *log, const char *request,
    void (*show)(struct json_value reply, FILE *out))
{
    int status = EXIT_FAILURE;
    struct cli_job job;

    if (cli_job_init(&job, cmdline, log) == -1)
        return EXIT_FAILURE;
    if (!ask_process(&job, job.core.control.path, request, true, show, &status))
        status = cli_job_report_connect(&job, job.core.control.path);
    cli_job_done(&job);
    return status;
}

/* Closes the request's object, and asks. */
static int ask_with(const struct cmdline *cmdline, struct log *log, struct json *json,
    void (*show)(struct json_value reply, FILE *out))
{
    size_t n;
    char *request;
    int status = EXIT_FAILURE;

    json_close(json);
    request = json_end(json, &n);
    if (request != NULL)
        status = ask_first(cmdline, log, request, show);
    else
        log_write(log, LEVEL_EMERG, 0, "no memory for the request");
    free(request);
    return status;
}

static void begin_request(struct json *json, const char *command)
{
    json_begin(json);
    json_object(json, NULL);
    json_string(json, "command", command);
}

/* upstream, log */

int cli_upstream(const struct cmdline *cmdline, struct log *log)
{
    struct json json;

    if (cmdline->more_n == 1) {
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"upstream %s %s\", expected \"upstream %s up|drain|down|auto "
            "server\"",
            cmdline->argument, cmdline->more[0], cmdline->argument);
        return EXIT_FAILURE;
    }
    begin_request(&json, "upstream");
    if (cmdline->argument != NULL)
        json_string(&json, "upstream", cmdline->argument);
    if (cmdline->more_n == 2) {
        json_string(&json, "state", cmdline->more[0]);
        json_string(&json, "server", cmdline->more[1]);
    }
    return ask_with(cmdline, log, &json, reply_text_upstreams);
}

/* The daemon knows the levels and the bounds of the time. */
int cli_log(const struct cmdline *cmdline, struct log *log)
{
    bool timed = cmdline->more_n == 2 && strcmp(cmdline->more[0], "for") == 0;
    struct json json;

    if (cmdline->more_n > 0 && !timed) {
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"log %s %s\", expected \"log level for time\"", cmdline->argument,
            cmdline->more[0]);
        return EXIT_FAILURE;
    }
    begin_request(&json, "log");
    if (cmdline->argument != NULL)
        json_string(&json, "level", cmdline->argument);
    if (timed)
        json_string(&json, "for", cmdline->more[1]);
    return ask_with(cmdline, log, &json, reply_text_log);
}

/* sessions */

int cli_sessions(const struct cmdline *cmdline, struct log *log)
{
    struct session_rows rows;
    struct cli_job job;
    int status = EXIT_FAILURE;

    if (session_rows_init(&rows, cmdline, log) == -1 || cli_job_init(&job, cmdline, log) == -1)
        return EXIT_FAILURE;
    job.rows = &rows;
    if (job.cycle == NULL || masters_find(&job.masters, &job.core, log) == 0)
        status = ask_masters(&job, "{\"command\":\"sessions\"}\n", NULL);
    if (status != EXIT_FAILURE)
        session_rows_print(&rows, (cmdline->options & CMDLINE_JSON) != 0, stdout);
    session_rows_free(&rows);
    cli_job_done(&job);
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
}

/* certificates, events */

int cli_certificates(const struct cmdline *cmdline, struct log *log)
{
    return ask_first(cmdline, log, "{\"command\":\"certificates\"}\n", reply_text_certificates);
}

int cli_events(const struct cmdline *cmdline, struct log *log)
{
    bool follows = (cmdline->options & CMDLINE_FOLLOW) != 0;

    return ask_first(cmdline, log,
        follows ? "{\"command\":\"events\",\"follow\":true}\n" : "{\"command\":\"events\"}\n",
        reply_text_events);
}
