/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs of an upgrade, for those who have begun one with `-s upgrade`. */
#pragma once

#include "cli/cmdline.h"

/* Implements `forkbeard upgrade`. `status` returns 0 while an upgrade is under way and 1 where none
 * is; `forward` and `back` return 0 when they have taken effect, 1 where they cannot, 3 when the
 * time has passed. */
int cli_upgrade(const struct cmdline *cmdline, struct log *log);
