/* SPDX-License-Identifier: BSD-2-Clause */
/* Processors: how many this process may use, and what others want of them. Only reads from the
 * kernel: Linux (cpu_linux.c) has more to tell than other systems (cpu_posix.c). */
#pragma once

/* Counts the processors that this process may use, at least 1: those of the machine, or fewer where
 * the affinity mask or the control group's quota allow fewer (v2 cpu.max or v1 cfs_quota, the least
 * on the way up to the root, rounded up). */
unsigned cpu_allowed(void);
/* Counts the same with the cgroup and the mount table, where there are such, read from below `root`
 * instead of "/" (tests). */
unsigned cpu_allowed_below(const char *root);

/* Opens what cpu_count_runnable() reads; -1 where it is not there. */
int cpu_open_load(void);
/* Counts the threads of the machine that run or wait for a processor; -1 where that is unknown. */
long cpu_count_runnable(int fd);
/* Counts how often this thread has lost its processor to another, or where that is not known of a
 * thread this process. */
long cpu_count_switches(void);
