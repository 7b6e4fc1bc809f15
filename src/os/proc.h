/* SPDX-License-Identifier: BSD-2-Clause */
/* State of processes, and of their descriptors, as far as the system tells: Linux by /proc, others
 * only of their children and of this process.
 *
 * A state may have changed when it is read: a decision by it needs the process's handle, or a child
 * that is not reaped. Without /proc, and on a system without it, functions say "unknown". Never
 * logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    char state; /* the letter: 'T' and 't' for stopped, 'Z' for a process that was not reaped */
    pid_t parent;
    uint64_t started; /* in the kernel's ticks since it has booted */
};

/* Reads all of it; false with errno where there is no such process; ENOSYS: the system never
 * tells. */
bool os_proc_read(pid_t pid, struct proc_stat *stat);
/* Whether a signal or, where the system tells of it, a debugger has stopped this child. */
bool os_proc_is_stopped(pid_t child);
/* Whether there is such a process; one that has ended and was not reaped is none, where the system
 * tells them apart. */
bool os_proc_runs(pid_t pid);
/* Reads the name of the process's program, "?" where there is none. */
void os_proc_name(pid_t pid, char name[32]);
/* Calls `visit` for each process that this user sees. */
void os_proc_visit(void (*visit)(void *arg, pid_t pid), void *arg);
/* Calls `visit` for each socket of the process, by inode, until that returns -1. Returns -1 where
 * it did, and where this user may not know them; 0 for a process that has ended. */
int os_proc_visit_sockets(pid_t pid, int (*visit)(void *arg, unsigned long inode), void *arg);
/* Whether the process has a file open that was deleted from this path. */
bool os_proc_has_deleted(pid_t pid, const char *path);
/* Reads the text that names this boot of the machine, "" where there is none. */
void os_boot_id(char *text, size_t n);

/* Calls `visit` for each open descriptor of this process but those that the call itself needs. */
void os_descriptors_visit(void (*visit)(void *arg, int fd), void *arg);
/* Closes descriptors from `first` to `last`, UINT_MAX for all that follow. */
void os_descriptors_close(unsigned first, unsigned last);
/* Tells what a descriptor is open on; false for a closed one. */
bool os_descriptor_describe(int fd, char *what, size_t n);
