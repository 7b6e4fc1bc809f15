/* SPDX-License-Identifier: BSD-2-Clause */
/* The control client: -s and `status`. Connects to the configuration's control socket, sends a
 * command, waits for the reply and prints it. Each call returns the exit code, after a report of
 * errors. Only the command, or its signal, is ever sent to the daemon. */
#pragma once

#include "base/json.h"
#include "cli/cmdline.h"
#include "cli/exchange.h"

#include <stdio.h>

/* Exit code where the daemon has not replied in time. */
#define EXIT_NO_REPLY 3

/* Finds the paths of the pid file and the control socket: in the configuration, or with --control
 * without a cycle; then the control socket's path stands for both. -1 after a report. */
int cli_load_paths(const struct cmdline *cmdline, struct log *log, struct cycle **cycle,
    struct core_settings *core);
/* Implements -s: sends the command and waits for the result, or without a control socket sends the
 * signal and prints so. stop and quit work with a faulty configuration. */
int cli_command(const struct cmdline *cmdline, struct log *log);
/* Writes a reply as text for people. */
typedef void cli_show(struct json_value reply, FILE *out);
/* Sends a request, a line, to the process at the configuration's paths, and prints the reply: raw
 * with --json, else by `show`, or its error. */
int cli_ask(const struct cmdline *cmdline, const char *request, cli_show *show, struct log *log);
/* Implements `forkbeard status`. */
int cli_status(const struct cmdline *cmdline, struct log *log);
