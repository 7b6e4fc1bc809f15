/* SPDX-License-Identifier: BSD-2-Clause */
/* The control client: what `-s` and `status` do. It connects to the control socket that the
 * configuration names, sends one command, waits for the reply and prints it. Each call returns the
 * exit code; an error is printed first. Nothing but this command, or the signal with the same
 * effect, is ever sent to the daemon. */
#pragma once

#include "base/json.h"
#include "cli/cmdline.h"
#include "cli/exchange.h"

#include <stdio.h>

/* Exit code where the daemon has not replied in time. */
#define EXIT_NO_REPLY 3

/* Finds the paths of the pid file and the control socket: in the configuration, or with --control
 * without a cycle; then the path of the control socket stands for both. -1 after a report. */
int cli_load_paths(const struct cmdline *cmdline, struct log *log, struct cycle **cycle,
    struct core_settings *core);
/* Implements -s: sends the command and waits for its result. Without a control socket it sends the
 * signal instead and prints that. stop and quit work even if the configuration has mistakes. */
int cli_command(const struct cmdline *cmdline, struct log *log);
/* Writes a reply as text for people. */
typedef void cli_show(struct json_value reply, FILE *out);
/* Sends a request, a line, to the process at the configuration's paths, and prints the reply: as it
 * is with --json, and else by `show`, or its error. */
int cli_ask(const struct cmdline *cmdline, const char *request, cli_show *show, struct log *log);
/* Implements `forkbeard status`. */
int cli_status(const struct cmdline *cmdline, struct log *log);
