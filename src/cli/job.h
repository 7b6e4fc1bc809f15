/* SPDX-License-Identifier: BSD-2-Clause */
/* A command of the command line for a daemon: paths, time limit, and the wait for a reply. */
#pragma once

#include "cli/command.h"
#include "cli/exchange.h"
#include "cli/masters.h"

struct session_rows;

/* A command under way. */
struct cli_job {
    const struct cmdline *cmdline;
    struct log *log;
    const char *word; /* the command that the daemon is sent */
    int64_t timeout_ms;
    struct cycle *cycle; /* NULL with --control */
    struct core_settings core;
    struct masters masters;
    struct session_rows *rows; /* of "sessions": collects what is passed; else NULL */
};

/* Loads the paths; -1 after a report. */
int cli_job_init(struct cli_job *job, const struct cmdline *cmdline, struct log *log);
void cli_job_done(struct cli_job *job);
/* Reports a failed connection with errno; returns the exit code. */
int cli_job_report_connect(const struct cli_job *job, const char *path);
/* Receives the reply, after progress lines; returns the exit code of a missing reply. */
int cli_job_wait(const struct cli_job *job, struct cli_exchange *exchange, const char *path);
