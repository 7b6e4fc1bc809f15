/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of a master process's workers, for the next master process: when one is killed, its
 * workers go on until their sessions have ended, and nobody would know of them.
 *
 * The list is a file beside the pid file, PATH.workers.PID, which only the master process writes:
 * once for each worker that it forks. A process is named by its pid and its start, so that another
 * one with the same pid is never taken for it. Whoever reads a list looks the process up, holding
 * its handle: nothing is believed that the kernel does not confirm. Where the system cannot confirm
 * it no list is written, silently, and a start knows nothing of such workers. */
#pragma once

#include "base/log.h"

#include <sys/types.h>

struct worker_list {
    char *pid_path; /* NULL: no memory, or no lists */
    int fd;         /* our list; -1: there is none */
};

/* Begins this process's list; without one, after an alert line, the next master process knows
 * nothing of our workers. */
void worker_list_open(struct worker_list *list, const char *pid_path, struct log *log);
/* Takes the list to the pid file's new path, if it is one, and makes it again where somebody else
 * has deleted it. */
void worker_list_move(struct worker_list *list, const char *pid_path, struct log *log);
/* Takes the list of another process over, whose workers are ours from now on. */
void worker_list_take_over(struct worker_list *list, pid_t from, struct log *log);
/* Adds a worker that was just forked, in the place of who has had its slot. */
void worker_list_add(const struct worker_list *list, unsigned slot, pid_t pid);
/* Removes the list: all workers have ended. Lists of which no process lives go too. */
void worker_list_close(struct worker_list *list);

/* A worker whose master process was killed. */
struct left_worker {
    pid_t pid, master;
    unsigned slot;
    int handle; /* open during the visit */
};

/* Visits the workers that live of each list beside ours whose master process does not. Returns how
 * many; `visit` may be NULL. */
unsigned worker_list_find_left(const struct worker_list *list,
    void (*visit)(void *arg, const struct left_worker *left), void *arg);
/* Visits those too whose master process lives, or has not quite ended, but for our own. */
unsigned worker_list_find_others(const struct worker_list *list,
    void (*visit)(void *arg, const struct left_worker *left), void *arg);
/* Removes the lists of which no process lives. */
void worker_list_tidy(const struct worker_list *list);
/* Whether the list of this master process is still there although the process has ended: another
 * one that has its number is none of ours. */
bool worker_list_has_survived(const char *pid_path, pid_t master);
