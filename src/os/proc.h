/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a process, as far as the system tells: Linux by /proc (os/linux/proc.c), others only of
 * their children (os/posix/proc.c). It may have changed when it is read: whoever decides by it holds
 * the process's handle, or is its parent and has not reaped it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    char state; /* the letter: 'T' and 't' for stopped, 'Z' for a process that was not reaped */
    pid_t parent;
    uint64_t started; /* in the kernel's ticks since it has booted */
};

/* Reads all of it; false where there is no such process, or the system does not tell. */
bool proc_read(pid_t pid, struct proc_stat *stat);
/* Whether a signal or, where the system tells of it, a debugger has stopped this child. */
bool proc_is_stopped(pid_t child);
/* Whether there is such a process; one that has ended and was not reaped is none, where the system
 * tells them apart. */
bool proc_runs(pid_t pid);
