/* SPDX-License-Identifier: BSD-2-Clause */
/* Processors and memory for this process and its children: the machine's, or less by the affinity
 * mask or control groups. Linux reads files below `root`, "" in the daemon. Never fails. */
#pragma once

#include <stdint.h>

/* Counts processors, at least 1. */
unsigned os_cpu_allowed(const char *root);
/* Returns bytes of memory; 0: unknown. */
int64_t os_ram_allowed(const char *root);
/* Limits by control groups alone, on Linux; 0: none. Processors are rounded up. */
unsigned os_cgroup_cpu_quota(const char *root);
int64_t os_cgroup_memory_limit(const char *root);
