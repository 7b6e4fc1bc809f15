/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads a command's paths, and waits for its reply. The daemon may be of a different version: no
 * assertion depends on a reply. */
#include "cli/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time limit without --timeout, and for a command that starts workers. */
#define REPLY_MS 5000
#define OUTCOME_MS 180000

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

void cli_job_done(struct cli_job *job)
{
    masters_free(&job->masters);
    cycle_destroy(&job->cycle);
}

int cli_job_init(struct cli_job *job, const struct cmdline *cmdline, struct log *log)
{
    const char *word = cmdline->signal != NULL ? cmdline->signal : cmdline->word->name;
    bool is_long =
        strcmp(word, "reload") == 0 || strcmp(word, "upgrade") == 0 || strcmp(word, "resume") == 0;

    *job = (struct cli_job) { .cmdline = cmdline, .log = log, .word = word };
    job->timeout_ms = cmdline->timeout_ms != 0 ? cmdline->timeout_ms
                      : is_long                ? OUTCOME_MS
                                               : REPLY_MS;
    if (cli_load_paths(cmdline, log, &job->cycle, &job->core) == -1)
        return -1;
    if (cmdline->signal != NULL || job->core.control.path != NULL)
        return 0;
    log_write(log, LEVEL_EMERG, 0,
        "the configuration has no control socket: see the directive \"control\"");
    cli_job_done(job);
    return -1;
}

/* Requests and replies */

/* Reports a missing reply, and the reason of the wait ("": unknown); returns the exit code. */
static int report_silence(const struct cli_job *job, const char *path, const char *why)
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

int cli_job_report_connect(const struct cli_job *job, const char *path)
{
    if (errno == EAGAIN)
        return report_silence(job, path, "");
    log_write(job->log, LEVEL_EMERG, errno, "connect() to the control socket \"%s\" failed", path);
    return EXIT_FAILURE;
}

int cli_job_wait(const struct cli_job *job, struct cli_exchange *exchange, const char *path)
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
