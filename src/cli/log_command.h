/* SPDX-License-Identifier: BSD-2-Clause */
/* The word `log`. */
#pragma once

#include "cli/cmdline.h"

/* Shows, sets or takes back the level of all error logs of the daemon; returns the exit code. */
int cli_log(const struct cmdline *cmdline, struct log *log);
