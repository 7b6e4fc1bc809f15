/* SPDX-License-Identifier: BSD-2-Clause */
/* The two parts of the sandbox, Landlock and seccomp, each with the support of the kernel, and the
 * restriction of the calling process for good. Private to sandbox/. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Landlock (landlock.c). Returns the reason if unusable, with the errno or 0; NULL: usable. */
const char *sandbox_landlock_lacks(int *error);
/* Restricts the calling thread and all children; -1 with errno. Unopenable paths are logged. */
int sandbox_landlock_enter(const struct cycle *cycle, struct log *log);
/* Whether the kernel's Landlock will deny connections to ports absent from the configuration. */
bool sandbox_landlock_holds_ports(const struct cycle *cycle);
/* Stands in a filter for the pid of the installing process; no process has the number. */
#define SANDBOX_OWN_PID 0x7ff0f1d5u

/* The filter of system calls (seccomp.c, or seccomp_none.c in a build without it). */
const char *sandbox_seccomp_lacks(int *error);
/* Writes the filter to the descriptor, in a process that ends then; -1 with errno. */
int sandbox_seccomp_build(const struct cycle *cycle, int fd);
/* Time in which a filter is made; a few ms are usual. Signals wait for its end. */
#define SANDBOX_FILTER_MS 5000

/* Makes and keeps the configuration's filter (filter.c). -1 with errno, ETIMEDOUT at the limit. */
int sandbox_filter_prepare(struct cycle *cycle);
/* Installs the filter, for all threads of the process; -1 with errno. */
int sandbox_filter_enter(const struct cycle *cycle, struct log *log);
