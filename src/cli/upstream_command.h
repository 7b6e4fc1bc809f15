/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard upstream`: shows the servers of upstreams, and changes a server's state. */
#pragma once

#include "cli/cmdline.h"

/* Returns the exit code. */
int cli_upstream(const struct cmdline *cmdline, struct log *log);
