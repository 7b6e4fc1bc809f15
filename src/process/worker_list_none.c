/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces worker_list_linux.c where the system does not tell when a process was started: a number
 * alone could be another process's by the time that a list is read, so none is written, and a start
 * knows nothing of workers that a killed master process has left. */
#include "process/worker_list.h"

#include <stddef.h>

void worker_list_open(struct worker_list *list, const char *pid_path, struct log *log)
{
    (void)pid_path;
    (void)log;
    *list = (struct worker_list) { .fd = -1 };
}

void worker_list_move(struct worker_list *list, const char *pid_path, struct log *log)
{
    (void)list;
    (void)pid_path;
    (void)log;
}

void worker_list_take_over(struct worker_list *list, pid_t from, struct log *log)
{
    (void)list;
    (void)from;
    (void)log;
}

void worker_list_add(const struct worker_list *list, unsigned slot, pid_t pid)
{
    (void)list;
    (void)slot;
    (void)pid;
}

void worker_list_close(struct worker_list *list)
{
    *list = (struct worker_list) { .fd = -1 };
}

unsigned worker_list_find_left(const struct worker_list *list,
    void (*visit)(void *arg, const struct left_worker *left), void *arg)
{
    (void)list;
    (void)visit;
    (void)arg;
    return 0;
}

unsigned worker_list_find_others(const struct worker_list *list,
    void (*visit)(void *arg, const struct left_worker *left), void *arg)
{
    return worker_list_find_left(list, visit, arg);
}

void worker_list_tidy(const struct worker_list *list)
{
    (void)list;
}

bool worker_list_has_survived(const char *pid_path, pid_t master)
{
    (void)pid_path;
    (void)master;
    return false;
}
