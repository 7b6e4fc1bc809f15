/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a master process, and the taking back of a graceful one. The names go to the next
 * start at once, and the lock as soon as no worker holds a listener, at the latest after some time.
 * Until the exit a resume starts a whole new generation, as a reload does, unless another master
 * process has the lock. COMMAND_LEAVE leaves the end to a child, which differs by its pid alone,
 * so that a waiting service manager sees the main process exit. Nothing here waits but for the
 * child. */
#include "master/quit.h"

#include "master/master.h"
#include "os/descriptor.h"
#include "os/process.h"
#include "pool/exit.h"
#include "pool/generation.h"
#include "pool/transaction.h"
#include "process/environment.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE_MANAGER_PID 1 /* the parent is a user's manager */

/* Whether no other master process serves. */
static bool is_alone(const struct master *master)
{
    const struct upgrade *upgrade = &master->upgrade;

    return upgrade->phase == UPGRADE_NONE ||
           ((upgrade->phase == UPGRADE_BESIDE || upgrade->phase == UPGRADE_HANDED_OVER) &&
               upgrade->sockets.n == 0);
}

void quit_refuse_waiting(struct master *master)
{
    struct control_outcome outcome = { .ok = false, .error = "the daemon is ending" };

    assert(master->phase != MASTER_RUNS);
    control_reply(&master->control, CONTROL_WAIT_RELOAD, &outcome);
    control_reply(&master->control, CONTROL_WAIT_UPGRADE, &outcome);
    control_reply(&master->control, CONTROL_WAIT_RESUME, &outcome);
    if (master->phase == MASTER_TERMINATES)
        control_reply(
            &master->control, CONTROL_WAIT_QUIT, &(struct control_outcome) { .ok = true });
}

static void refuse_resume(struct master *master, const char *why)
{
    struct control_outcome outcome = { .error = why };

    log_event(&master->log, "resume_refused", LEVEL_ERROR, 0, "resume refused: %s", why);
    control_reply(&master->control, CONTROL_WAIT_RESUME, &outcome);
}

/* Begins to serve again by what is a reload from here on. */
static void resume(struct master *master)
{
    char text[64] = "";
    pid_t other = 0;

    if (master->is_left) {
        refuse_resume(master, "the service manager knows this process no more: start the service");
        return;
    }
    if (!is_alone(master))
        other = master->upgrade.other;
    else
        pidfile_is_taken(master->endpoints.pidfile.path, &other);
    if (other > 0)
        snprintf(text, sizeof(text), "master process %d runs", (int)other);
    else if (master->pool.serving == NULL)
        snprintf(text, sizeof(text), "nothing was served yet");
    if (text[0] != '\0') {
        refuse_resume(master, text);
        return;
    }
    service_manager_drop_stored(&master->manager);
    master_set_phase(master, MASTER_RESUMES);
    pool_set_ending(&master->pool, false);
    control_wait_on(&master->control, CONTROL_WAIT_RESUME, CONTROL_WAIT_RELOAD_END);
    reload_begin(master);
}

/* In the child: becomes the master of the parent's workers. */
static void become_master(struct master *master, int ready)
{
    struct log *log = &master->log;

    assert(!master->is_left);
    log->pid = process_ops->self();
    worker_list_take_over(&master->list, process_ops->parent(), log);
    master->is_left = true;
    master->alarm = (struct alarm) { .deadline_ms = 0 }; /* no interval timer is inherited */
    service_manager_done(&master->manager);
    notify_forget(); /* a child has nothing to say */
    if (process_ops->wakeup_begin() == -1 || os_process_adopt_orphans() == -1 ||
        pool_take_over(&master->pool) == -1 || control_take_over(&master->control) == -1)
        log_write(log, LEVEL_ALERT, errno, "not all workers and clients can wake this process");
    endpoints_step_aside(&master->endpoints);
    process_ops->raise(SIGIO); /* signals of the meantime have woken the parent */
    process_ready_tell(ready, 0);
}

/* Copies for the exit of the parent: the child has the rest. */
struct leaving {
    struct log log;
    struct pidfile pidfile;
    char path[PATH_MAX]; /* the pid file's */
    int ends[2];         /* a pipe, written by the child after taking over */
};

/* In the parent: exits when the child has taken over, and returns when the child has ended. */
static void wait_for_heir(void *arg, pid_t child)
{
    struct leaving *leaving = arg;

    descriptor_close(leaving->ends[1]);
    if (process_ready_wait(leaving->ends[0]) == 0) {
        pidfile_remove_second(&leaving->pidfile, &leaving->log); /* the child has its own */
        signals_forward(child, &leaving->log);
        log_write(
            &leaving->log, LEVEL_NOTICE, 0, "exit, process %d lets the sessions end", (int)child);
        free(leaving);
        process_ops->exit(EXIT_SUCCESS);
    }
    free(leaving);
}

/* Returns as fork() does; in the child *ready is the child's end of the pipe. */
static pid_t fork_leaving(const struct master *master, int *ready)
{
    struct leaving *leaving = malloc(sizeof(*leaving));
    int ends[2];
    pid_t pid;

    if (leaving == NULL || descriptor_pipe(leaving->ends, 0) == -1) {
        free(leaving);
        return -1;
    }
    memcpy(ends, leaving->ends, sizeof(ends));
    leaving->log = master->log;
    leaving->pidfile = master->endpoints.pidfile;
    snprintf(leaving->path, sizeof(leaving->path), "%s", leaving->pidfile.path);
    leaving->pidfile.path = leaving->path;
    *ready = ends[1];
    pid = process_ops->fork_heir(wait_for_heir, leaving);
    if (pid <= 0)
        descriptor_close(ends[0]);
    if (pid == -1) {
        descriptor_close(ends[1]);
        free(leaving);
    }
    return pid;
}

/* Leaves the rest of a graceful end to a child, which goes on from here in our place, and exits.
 * Where that fails clients are told, and this process goes on. */
static void leave_to_child(struct master *master)
{
    struct control_outcome outcome = { .error = "no child process could be left" };
    struct log *log = &master->log;
    pid_t pid = -1;
    int ready;

    assert(role_is(ROLE_MASTER));
    assert(master->phase == MASTER_QUITS && !master->is_left);
    master->leaves = false;
    if (!pool_has_workers(&master->pool)) /* the process that left ends now */
        return;
    if (pool_leave_begin(&master->pool) == 0)
        pid = fork_leaving(master, &ready);
    if (pid == 0) {
        become_master(master, ready);
        return;
    }
    if (pid > 0) /* it has ended */
        errno = ECHILD;
    log_write(log, LEVEL_ALERT, errno, "no child process could be left");
    pool_leave_undo(&master->pool);
    control_reply(&master->control, CONTROL_WAIT_QUIT, &outcome);
}

void quit_advance(struct master *master)
{
    static const struct control_outcome outcome = { .ok = true };
    struct endpoints *endpoints = &master->endpoints;

    assert(master->phase == MASTER_QUITS);
    /* a daemon that never served has no names */
    if (is_alone(master) && master->pool.serving != NULL && endpoints->phase != ENDPOINTS_ASIDE)
        endpoints_step_aside(endpoints);
    if (pool_find_holder(&master->pool) != NULL)
        return;
    if (endpoints->phase == ENDPOINTS_ASIDE && endpoints->pidfile.lock_fd != -1)
        pidfile_unlock(&endpoints->pidfile, &master->log);
    if (master->leaves) {
        if (!service_manager_may_exit(&master->manager))
            return;
        leave_to_child(master);
    }
    control_reply(&master->control, CONTROL_WAIT_QUIT, &outcome);
    if (commands_take(&master->commands, COMMAND_RESUME))
        resume(master);
}

bool quit_is_by_manager(const struct master *master)
{
    return notify_is_on() && (master->commands.sender == SERVICE_MANAGER_PID ||
                                 master->commands.sender == process_ops->parent());
}

void quit_begin(struct master *master, bool gracefully)
{
    bool by_service_manager = notify_is_on() && master->commands.sender == SERVICE_MANAGER_PID;
    bool running;

    if (master->phase == MASTER_RESUMES) { /* gives up, unless that has succeeded */
        reload_cancel(master);
        transaction_conclude(&master->pool);
        assert(master->phase != MASTER_RESUMES);
    }
    if (gracefully && master->phase == MASTER_QUITS)
        return;
    running = master->phase == MASTER_RUNS;
    master_set_phase(master, gracefully ? MASTER_QUITS : MASTER_TERMINATES);
    /* a waiting reload, or a SIGHUP from before the command, takes no end back */
    process_ops->admit_signals();
    signals_take(COMMAND_RELOAD, NULL);
    master->commands.requested &= ~(1u << COMMAND_RELOAD);
    reload_cancel(master);
    transaction_conclude(&master->pool);
    upgrade_ending(&master->upgrade, gracefully, by_service_manager);
    /* before the listeners are closed: the path of a socket stays for copies of it */
    if (running && gracefully && !master->leaves && !master->termed && !quit_is_by_manager(master))
        service_manager_drop_stored(&master->manager);
    if (running) /* later a unix path may belong to a second daemon */
        pool_close_listeners(&master->pool);
    pool_end(&master->pool, gracefully);
    if (!gracefully && !master->failed)
        left_behind_end(&master->left);
    /* a manager that was told of an end kills the rest after a timeout; an operator's end may be
     * taken back */
    if (!gracefully || quit_is_by_manager(master))
        service_manager_stopping(&master->manager);
    quit_refuse_waiting(master);
}
