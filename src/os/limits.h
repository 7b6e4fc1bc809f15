/* SPDX-License-Identifier: BSD-2-Clause */
/* Processors and memory for this process and its children: the machine's, or fewer where the
 * affinity mask or the control groups allow fewer. On Linux the files of /proc and of the groups
 * are read from below `root`, "" in the daemon. Without limits from the system the machine's
 * numbers count alone. Never fails. */
#pragma once

#include <stdint.h>

/* Counts processors, at least 1. */
unsigned os_cpu_allowed(const char *root);
/* Returns bytes of memory; 0: unknown. */
int64_t os_ram_allowed(const char *root);

/* On Linux alone: the limits that the process's control group and the groups above it set, in v1
 * and v2; 0: there is none. Processors by the quota are rounded up. */
unsigned os_cgroup_cpu_quota(const char *root);
int64_t os_cgroup_memory_limit(const char *root);
