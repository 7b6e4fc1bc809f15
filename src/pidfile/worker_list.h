/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of a master process's workers, for the next master process, if this one is killed: a
 * file beside the pid file, PATH.workers.PID, written for each forked worker. A process is named by
 * pid and start, so that a reused pid is never mistaken. A reader opens a process's handle, and
 * believes nothing that the kernel does not confirm; a system that cannot confirm has no lists. */
#pragma once

#include "base/log.h"

#include <sys/types.h>

struct worker_list {
    char *pid_path; /* NULL: no memory, or no lists */
    int fd;         /* our list; -1: there is none */
};

/* Begins this process's list; a failure is an alert line. */
void worker_list_open(struct worker_list *list, const char *pid_path, struct log *log);
/* Moves the list to the pid file's new path, and makes a deleted list again. */
void worker_list_move(struct worker_list *list, const char *pid_path, struct log *log);
/* Takes over the list of another process, whose workers are ours from now on. */
void worker_list_take_over(struct worker_list *list, pid_t from, struct log *log);
/* Adds a worker that was just forked, in the place of the slot's previous worker. */
void worker_list_add(const struct worker_list *list, unsigned slot, pid_t pid);
/* Removes the list, as all workers have ended, and all lists of which no process lives. */
void worker_list_close(struct worker_list *list);

struct left_worker {
    pid_t pid, master;
    unsigned slot;
    int handle; /* open during the visit */
};

typedef void worker_list_visit(void *arg, const struct left_worker *left);
/* Visits the living workers of ended master processes, and counts them; `visit` may be NULL. */
unsigned worker_list_find_left(const struct worker_list *list, worker_list_visit *visit, void *arg);
/* Visits the workers of living master processes too, but for our own. */
unsigned worker_list_find_others(
    const struct worker_list *list, worker_list_visit *visit, void *arg);
/* Removes the lists of which no process lives. */
void worker_list_tidy(const struct worker_list *list);
/* Whether the list of an ended master process is still there, and its pid perhaps reused. */
bool worker_list_has_survived(const char *pid_path, pid_t master);
/* Removes the files PATH.quit.PID, beside a pid file or control socket, of killed processes. */
void worker_list_remove_stale(const char *path, const char *pid_path);
