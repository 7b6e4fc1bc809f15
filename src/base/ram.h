/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory this process and its children may use. */
#pragma once

#include <stdint.h>

/* Returns the machine's memory, or the control group's limit where it is less, in bytes; 0: not
 * known. */
int64_t ram_allowed(void);
/* Returns the same, read from below `root` instead of "/" (tests). */
int64_t ram_allowed_below(const char *root);
