/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory this process and its children may use. */
#pragma once

#include <stdint.h>

/* What the machine has, or the control group's limit where that is less, in bytes; 0: not known. */
int64_t fb_ram_allowed(void);
/* The same, read from below `root` instead of "/" (tests). */
int64_t fb_ram_allowed_below(const char *root);
