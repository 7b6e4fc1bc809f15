/* SPDX-License-Identifier: BSD-2-Clause */
/* The control client: -s, and words that ask, as `status`. Connects to the configuration's control
 * socket, sends a command, waits for the reply and prints it. Each call returns the exit code,
 * after a report of errors. Only the command, or its signal, is ever sent to the daemon. */
#pragma once

#include "cli/cmdline.h"

/* Exit code where the daemon has not replied in time. */
#define EXIT_NO_REPLY 3
/* Exit codes of `status --check`, as of monitoring plugins; 0 and 1: no problems, warnings. */
#define CHECK_CRITICAL 2
#define CHECK_UNKNOWN 3

/* Finds the paths of the pid file and the control socket: in the configuration, or with --control
 * without a cycle; then the control socket's path stands for both. -1 after a report. */
int cli_load_paths(const struct cmdline *cmdline, struct log *log, struct cycle **cycle,
    struct core_settings *core);
/* Implements -s: sends the command and waits for the result, or without a control socket sends the
 * signal. */
int cli_command(const struct cmdline *cmdline, struct log *log);
/* Implements `forkbeard status`. */
int cli_status(const struct cmdline *cmdline, struct log *log);
/* Implements `forkbeard upstream`: shows the servers of upstreams, or changes a server's state. */
int cli_upstream(const struct cmdline *cmdline, struct log *log);
/* Implements `forkbeard sessions`. */
int cli_sessions(const struct cmdline *cmdline, struct log *log);
/* Implements `forkbeard log`: shows, sets or takes back the level of all error logs. */
int cli_log(const struct cmdline *cmdline, struct log *log);
/* Implements `forkbeard certificates`. */
int cli_certificates(const struct cmdline *cmdline, struct log *log);
/* Implements `forkbeard events`; with -f until the daemon ends. */
int cli_events(const struct cmdline *cmdline, struct log *log);
