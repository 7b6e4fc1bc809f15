/* SPDX-License-Identifier: BSD-2-Clause */
/* The control client: what `-s` and `status` do. It connects to the control socket that the
 * configuration names, sends one command, waits for the reply and prints it. Each call returns
 * the exit code, after a line that says what is wrong. The daemon is never changed by anything
 * else than that command, or the signal that stands in for it. */
#pragma once

#include "cli/cmdline.h"

/* -s: sends the command and waits for its outcome. Where there is no control socket the signal
 * is sent instead, and a line says so. Mistakes in the configuration do not keep the daemon from
 * being ended. */
int cli_command(const struct cmdline *cmdline, struct log *log);
/* The word "status". */
int cli_status(const struct cmdline *cmdline, struct log *log);
