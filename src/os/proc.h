/* SPDX-License-Identifier: BSD-2-Clause */
/* States and descriptors of processes, as far as the system tells: Linux by /proc, other systems
 * only of children and of this process. A state may be outdated once read: a decision needs the
 * process's handle, or an unreaped child. Without /proc all is unknown. Never logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    char state; /* the letter: 'T' and 't' for stopped, 'Z' for a process that was not reaped */
    pid_t parent;
    uint64_t started; /* in the kernel's ticks since boot */
};

/* The usage of a process; a number not told by the system is -1. */
struct proc_usage {
    int64_t cpu_ms;          /* of processors, by the process and by the kernel for it */
    int64_t memory;          /* resident bytes */
    int64_t descriptors;     /* open, counted by Linux since 6.2 */
    int64_t descriptors_max; /* the soft RLIMIT_NOFILE */
};

/* Reads all members; false with errno where the pid is unused; ENOSYS: the system never tells. */
bool os_proc_read(pid_t pid, struct proc_stat *stat);
/* Whether a signal or, where the system tells, a debugger has stopped this child. */
bool os_proc_is_stopped(pid_t child);
/* Reads the usage of a process, in a few system calls for any number of descriptors. */
void os_proc_usage(pid_t pid, struct proc_usage *usage);
/* Whether the pid runs, and is no zombie, where the system tells. */
bool os_proc_runs(pid_t pid);
/* Reads the name of the process's program, "?" where there is none. */
void os_proc_name(pid_t pid, char name[32]);
/* Calls `visit` for all processes visible to this user. */
void os_proc_visit(void (*visit)(void *arg, pid_t pid), void *arg);
/* Calls `visit` for each socket of the process, by inode, until -1. Returns -1 then, and where this
 * user may not read the descriptors; 0 for an ended process. */
int os_proc_visit_sockets(pid_t pid, int (*visit)(void *arg, unsigned long inode), void *arg);
/* Whether the process has an open file, deleted from `path`. */
bool os_proc_has_deleted(pid_t pid, const char *path);
/* Reads the machine's boot id, "" where there is none. */
void os_boot_id(char *text, size_t n);
/* Reads the first line of a file, without the newline; on Linux alone. */
bool os_proc_read_line(const char *path, char *line, size_t n);
/* Lists all open descriptors of this process, but the call's own, mostly in ascending order; to be
 * freed, also after a failure: false without memory. None where the system does not tell. */
bool os_descriptors_list(int **fds, unsigned *n);
/* Closes descriptors from `first` to `last`; UINT_MAX: to the end. */
void os_descriptors_close(unsigned first, unsigned last);
/* Describes a descriptor's file; false for a closed descriptor. */
bool os_descriptor_describe(int fd, char *what, size_t n);
