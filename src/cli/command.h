/* SPDX-License-Identifier: BSD-2-Clause */
/* The control client: what `-s` and `status` do. It connects to the control socket that the
 * configuration names, sends one command, waits for the reply and prints it. Each call returns the
 * exit code; an error is printed first. Nothing but this command, or the signal with the same
 * effect, is ever sent to the daemon. */
#pragma once

#include "cli/cmdline.h"
#include "cli/exchange.h"

/* Exit code where the daemon has not replied in time. */
#define EXIT_NO_REPLY 3

/* Implements -s: sends the command and waits for its result. Without a control socket it sends the
 * signal instead and prints that. stop and quit work even if the configuration has mistakes. */
int cli_command(const struct cmdline *cmdline, struct log *log);
/* Prints a reply, whose line it is lent; returns the exit code. */
typedef int cli_print(
    const struct cmdline *cmdline, const struct cli_exchange *reply, struct log *log);
/* Sends a request, a line, to the process at the configuration's paths, and has its reply
 * printed. */
int cli_ask(const struct cmdline *cmdline, const char *request, cli_print *print, struct log *log);
/* Implements `forkbeard status`. */
int cli_status(const struct cmdline *cmdline, struct log *log);
