/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of all master processes of a configuration, waited for: quit and stop with --wait. */
#pragma once

#include "cli/cmdline.h"

/* Sends the command to each master process that runs, and waits until all have ended; what has not
 * ended after a quit when the time of --wait has passed is told to stop. Returns the exit code: 0
 * where none is left, or there was none. */
int cli_wait(const struct cmdline *cmdline, struct log *log);
