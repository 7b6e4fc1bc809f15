/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of all master processes of a configuration, waited for: quit and stop with --wait. */
#pragma once

#include "cli/cmdline.h"

/* Sends the command to all master processes, and waits until all have ended; after the time of
 * --wait a quit becomes a stop. Returns the exit code: 0 when none is left. */
int cli_wait(const struct cmdline *cmdline, struct log *log);
