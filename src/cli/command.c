/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the daemon a command of -s, by the control socket or a signal, and prints the outcome. */
#include "cli/command.h"

#include "cli/job.h"
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

/* Connects and sends the command; -1 with errno without a connection. */
static int begin_command(const struct cli_job *job, struct cli_exchange *exchange, const char *path)
{
    char request[64];

    if (cli_connect(exchange, path, cli_now_ms() + job->timeout_ms) == -1)
        return -1;
    snprintf(request, sizeof(request), "{\"command\":\"%s\",\"progress\":true}\n", job->word);
    cli_send(exchange, request); /* a failure shows as a missing reply */
    return 0;
}

/* Waits for the reply to a command of -s, and prints it; returns the exit code. */
static int finish_command(
    const struct cli_job *job, struct cli_exchange *exchange, const char *path)
{
    int status = cli_job_wait(job, exchange, path);

    return status == EXIT_SUCCESS ? cli_print_outcome(job->cmdline, exchange, job->log) : status;
}

/* -s */

/* Sends the signal, to the process in the pid file for -1; `why`: errno of the connection. */
static int send_command_signal(const struct cli_job *job, pid_t pid, int why)
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
static int command_first(const struct cli_job *job)
{
    const char *path = job->core.control.path, *pid_path = job->core.pid;
    struct cli_exchange exchange = { .fd = -1 };
    int status = EXIT_FAILURE, error;

    errno = 0;
    if (path != NULL && begin_command(job, &exchange, path) == 0) {
        status = finish_command(job, &exchange, path);
    } else if ((error = errno) == EAGAIN || job->cycle == NULL) {
        status = cli_job_report_connect(job, path);
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
static bool begin_other(const struct cli_job *job, const struct masters_entry *entry,
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
static void finish_other(const struct cli_job *job, const struct masters_entry *entry,
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
static int command_all(const struct cli_job *job)
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
static bool command_quitting(const struct cli_job *job, int *status)
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
static int command_masters(const struct cli_job *job)
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
    struct cli_job job;

    if (cli_job_init(&job, cmdline, log) == -1)
        return EXIT_FAILURE;
    /* with --control the rest is for the process at this path alone */
    if ((job.cycle == NULL && strcmp(job.word, "reopen") != 0) ||
        masters_find(&job.masters, &job.core, log) == 0)
        status = command_masters(&job);
    cli_job_done(&job);
    return status;
}
