/* SPDX-License-Identifier: BSD-2-Clause */
/* The processor quota of this process's control group. */
#pragma once

/* The processors that the quota is worth, rounded up: v2's cpu.max or v1's cfs_quota, the least on
 * the way up to the root, from files below `root` ("" for the system's). 0: no limit, or none that
 * can be read. */
unsigned fb_cgroup_cpu_quota(const char *root);
