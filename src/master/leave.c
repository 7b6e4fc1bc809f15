/* SPDX-License-Identifier: BSD-2-Clause */
/* Leaves the rest of a graceful end to a child process, so that this one can exit at once: a
 * service manager waits for the process that it has started, and clients would wait with it. The
 * child is the same master process but for its pid: what the kernel keeps for a pid is set again
 * here. The workers are not its children (pool/orphans.c). */
#include "master/master.h"

#include "os/descriptor.h"
#include "os/process.h"
#include "pool/exit.h"
#include "process/process_ops.h"
#include "process/ready.h"
#include "process/role.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the child: becomes the master of workers that another process has forked. */
static void take_over(struct master *master, int ready)
{
    struct log *log = &master->log;

    log->pid = process_ops->self();
    worker_list_take_over(&master->list, process_ops->parent(), log);
    master->is_left = true;
    master->alarm = (struct alarm) { .deadline_ms = 0 }; /* no interval timer is inherited */
    service_manager_forget(&master->manager);
    if (process_ops->wakeup_begin() == -1 || os_process_adopt_orphans() == -1 ||
        pool_take_over(&master->pool) == -1 || control_take_over(&master->control) == -1)
        log_write(log, LEVEL_ALERT, errno, "not all workers and clients can wake this process");
    endpoints_step_aside(&master->endpoints, log);
    process_ops->raise(SIGIO); /* signals that came meanwhile have woken the other process */
    ready_tell(ready, 0);
}

/* Copies of what this process needs to exit: the child has all the rest. */
struct leaving {
    struct log log;
    struct pidfile pidfile;
    char path[PATH_MAX]; /* the pid file's */
    int ends[2];         /* a pipe: the child writes once it has taken over */
};

/* In this process, once it has a child: exits when that has taken over, and returns when it has
 * ended instead. */
static void leave(void *arg, pid_t child)
{
    struct leaving *leaving = arg;

    descriptor_close(leaving->ends[1]);
    if (ready_wait(leaving->ends[0]) == 0) {
        pidfile_remove_second(&leaving->pidfile, &leaving->log); /* the child has its own */
        signals_forward(child, &leaving->log);
        log_write(
            &leaving->log, LEVEL_NOTICE, 0, "exit, process %d lets the sessions end", (int)child);
        free(leaving);
        process_ops->exit(EXIT_SUCCESS);
    }
    free(leaving);
}

/* Copies; NULL without memory or descriptors. */
static struct leaving *prepare(const struct log *log, const struct pidfile *pidfile)
{
    struct leaving *leaving = malloc(sizeof(*leaving));

    if (leaving == NULL || ready_open(leaving->ends) == -1) {
        free(leaving);
        return NULL;
    }
    leaving->log = *log;
    leaving->pidfile = *pidfile;
    leaving->pidfile.path = leaving->path;
    snprintf(leaving->path, sizeof(leaving->path), "%s", pidfile->path);
    return leaving;
}

/* Returns as fork() does; in the child *ready is its end of the pipe. */
static pid_t fork_child(struct leaving *leaving, int *ready)
{
    int end = leaving->ends[0];
    pid_t pid;

    *ready = leaving->ends[1];
    pid = process_ops->fork_heir(leave, leaving);
    if (pid <= 0)
        descriptor_close(end);
    if (pid == -1) {
        descriptor_close(*ready);
        free(leaving);
    }
    return pid;
}

void leave_to_child(struct master *master)
{
    struct control_outcome outcome = { .error = "no child process could be left" };
    struct log *log = &master->log;
    struct leaving *leaving = NULL;
    pid_t pid = -1;
    int ready;

    assert(role_is(ROLE_MASTER));
    assert(master->phase == MASTER_QUITS && !master->is_left);
    master->leaves = false;
    if (!pool_has_workers(&master->pool)) /* the process that left ends now */
        return;
    if (pool_leave_begin(&master->pool) == 0)
        leaving = prepare(log, &master->endpoints.pidfile);
    if (leaving != NULL)
        pid = fork_child(leaving, &ready);
    if (pid == 0) {
        take_over(master, ready);
        return;
    }
    if (pid > 0) /* it has ended */
        errno = ECHILD;
    log_write(log, LEVEL_ALERT, errno, "no child process could be left");
    pool_leave_undo(&master->pool);
    control_reply(&master->control, CONTROL_WAIT_QUIT, &outcome);
}
