/* SPDX-License-Identifier: BSD-2-Clause */
/* Leaves the rest of a graceful end to a child process, so that this one can exit at once: a
 * service manager waits for the process that it has started, and clients would wait with it. The
 * child is the same master process but for its pid: what the kernel keeps for a pid is set again
 * here. The workers are not its children (pool/orphans.c). */
#include "master/master.h"

#include "base/descriptor.h"
#include "process/attributes.h"
#include "process/role.h"
#include "process/wakeup.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* In the child: becomes the master of workers that another process has forked. */
static void take_over(struct master *master, int ready)
{
    struct log *log = &master->log;

    log->pid = getpid();
    worker_list_take_over(&master->list, getppid(), log);
    master->is_left = true;
    master->alarm = (struct alarm) { .deadline_ms = 0 }; /* no interval timer is inherited */
    service_manager_forget(&master->manager);
    if (wakeup_begin() == -1 || process_adopt_orphans() == -1 ||
        pool_take_over(&master->pool) == -1 || control_take_over(&master->control) == -1)
        log_write(log, LEVEL_ALERT, errno, "not all workers and clients can wake this process");
    endpoints_step_aside(&master->endpoints, log);
    raise(SIGIO); /* signals that came meanwhile have woken the other process */
    if (write(ready, "", 1) == -1)
        errno = 0;
    close(ready);
}

static pid_t fork_child(struct pool *pool, int ends[2])
{
    pid_t pid;

    if (pool_leave_begin(pool) == -1)
        return -1;
    if (descriptor_pipe(ends, 0) == -1)
        return -1;
    pid = fork();
    if (pid == -1) {
        close(ends[0]);
        close(ends[1]);
    }
    return pid;
}

void leave_to_child(struct master *master)
{
    struct control_outcome outcome = { .error = "no child process could be left" };
    struct log *log = &master->log;
    int ends[2] = { -1, -1 };
    pid_t pid;
    char byte;

    assert(role_is(ROLE_MASTER));
    assert(master->phase == MASTER_QUITS && !master->is_left);
    master->leaves = false;
    if (!pool_has_workers(&master->pool)) /* the process that left ends now */
        return;
    pid = fork_child(&master->pool, ends);
    if (pid == 0) {
        close(ends[0]);
        take_over(master, ends[1]);
        return;
    }
    if (pid > 0) {
        close(ends[1]);
        if (read(ends[0], &byte, 1) == 1) {
            pidfile_remove_second(&master->endpoints.pidfile, log); /* the child has its own */
            signals_forward(pid, log);
            log_write(log, LEVEL_NOTICE, 0, "exit, process %d lets the sessions end", (int)pid);
            _exit(EXIT_SUCCESS);
        }
        errno = ECHILD;
    }
    log_write(log, LEVEL_ALERT, errno, "no child process could be left");
    pool_leave_undo(&master->pool);
    control_reply(&master->control, CONTROL_WAIT_QUIT, &outcome);
}
