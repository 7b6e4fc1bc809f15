/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs of an upgrade begun by `-s upgrade`. */
#pragma once

#include "cli/cmdline.h"

/* Implements `forkbeard upgrade`. `status` returns 0 during an upgrade, else 1; `forward` and
 * `back` return 0 after taking effect, 1 where they cannot, 3 at the deadline. */
int cli_upgrade(const struct cmdline *cmdline, struct log *log);
