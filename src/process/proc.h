/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what /proc says of a process. It may have changed when it is read: whoever decides by it
 * holds the process's pidfd, or is its parent and has not reaped it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    char state; /* the letter: 'T' and 't' for stopped, 'Z' for a process that was not reaped */
    pid_t parent;
    uint64_t started; /* in the kernel's ticks since it has booted */
};

/* Reads /proc/PID/stat; false where there is no such process, or no /proc. */
bool proc_read(pid_t pid, struct proc_stat *stat);

/* Makes this process the parent of each descendant whose own parent ends; -1 with errno. */
int proc_adopt_orphans(void);
