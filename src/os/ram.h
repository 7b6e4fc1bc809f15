/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: how much of it this process and its children may use. Linux (os/linux/ram.c) has it in files
 * of /proc and of the control groups, other systems (os/posix/ram.c) tell of the machine's alone. */
#pragma once

#include <stdint.h>

/* Returns the machine's memory, or the control group's limit where it is less, in bytes; 0: not
 * known. */
int64_t ram_allowed(void);
/* Returns the same, read from below `root` instead of "/" where it is read from files (tests). */
int64_t ram_allowed_below(const char *root);
