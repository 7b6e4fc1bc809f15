/* SPDX-License-Identifier: BSD-2-Clause */
/* Processors: how many this process may use, and which. Only reads from the kernel; the affinity of
 * a worker is set in process/privileges.c. */
#pragma once

#include <sched.h>
#include <stdbool.h>

/* Counts the processors that the affinity mask and the control group's quota allow (v2 cpu.max or
 * v1 cfs_quota, the least on the way up to the root, rounded up); at least 1. */
unsigned cpu_allowed(void);
/* Counts the same with the cgroup and the mount table read from below `root` instead of "/"
 * (tests). */
unsigned cpu_allowed_below(const char *root);

/* Opens what cpu_count_runnable() reads; -1 where it is not there. */
int cpu_open_load(void);
/* Counts the threads of the machine that run or wait for a processor; -1 where that is unknown. */
long cpu_count_runnable(int fd);

/* The mask that `worker_cpu_affinity auto` gives worker number `index`: one processor of `allowed`,
 * in turn. */
void cpu_auto(const cpu_set_t *allowed, unsigned index, cpu_set_t *out);
/* Finds the processors that this process may be bound to, whatever its mask is now; false where the
 * kernel does not say. Only for a process that checks a configuration: its mask is changed for a
 * moment, and no longer follows that of its control group. */
bool cpu_find_usable(cpu_set_t *out);
/* "0101": the rightmost digit is processor 0. Returns NULL, or what is wrong. */
const char *cpu_parse_mask(const char *text, cpu_set_t *out);
