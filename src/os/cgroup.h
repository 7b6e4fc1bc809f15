/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits that the process's control group and the groups above it set, in v1 and v2. Files are read
 * from below `root`, which is "" in the daemon. */
#pragma once

#include <stdint.h>

/* Processors by the cpu controller's quota, rounded up; 0: there is no quota. */
unsigned cgroup_cpu_quota(const char *root);
/* Bytes by the memory controller's limit; 0: there is no limit. */
int64_t cgroup_memory_limit(const char *root);
