/* SPDX-License-Identifier: BSD-2-Clause */
/* `master_process off`: one process is the worker and does what a master must: it opens
 * listeners, logs and zones, writes the pid file, and removes what it has made. It cannot
 * reload, nor change its binary. */
#include "master/single.h"

#include "process/conf_hooks.h"
#include "process/configuration.h"
#include "process/environment.h"
#include "process/listeners.h"
#include "process/logs.h"
#include "process/process_ops.h"
#include "systemd/fdstore.h"
#include "systemd/notify.h"
#include "worker/worker.h"

#include <assert.h>
#include <stdlib.h>

/* Closes the listeners that the worker's part has not closed, because it never began to accept. */
static void close_listeners(struct cycle *cycle, struct log *log)
{
    struct listener *listener;

    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link) {
        if (listener->fd_n == 0 || listener->fds[0] == -1)
            continue; /* a path that we did not bind may be another daemon's */
        listener_unlink(listener, log);
        listener_close(listener);
    }
}

static int open_listeners(struct cycle *cycle, struct adopted *inherited, struct log *log)
{
    if (listeners_open(cycle, NULL, inherited, 1, log) == -1 ||
        listeners_commit(cycle, NULL, inherited, log) == -1)
        return -1;
    fdstore_add(&cycle->stream.listeners, log);
    fdstore_drop_unclaimed(inherited, &cycle->stream.listeners, log);
    adopted_finish(inherited, &cycle->stream.listeners, log);
    adopted_close_others(inherited, &cycle->stream.listeners); /* no reload will want them */
    return 0;
}

/* Reaps a container's orphans that have ended before we took signals; the kernel reaps later ones,
 * because this role ignores SIGCHLD. */
static void reap_orphans(void)
{
    while (process_ops->reap(-1, NULL, false) > 0)
        continue;
}

int single_main(struct start *start)
{
    struct cycle *cycle = start->cycle;
    const struct cycle *accepted = NULL;
    struct shared *shared = start->shared;
    struct adopted *inherited = start->inheritance.sockets;
    struct pidfile pidfile = start->pidfile;
    struct log log = start->log;
    struct heritage heritage = { .cycle = cycle, .shared = shared, .channel = -1 };
    int status;

    assert(cycle != NULL && shared != NULL);
    descriptors_done(&start->opened); /* no worker is forked that would need them */
    reap_orphans();
    if (slot_acquire(shared, &heritage.slot) && open_listeners(cycle, inherited, &log) == 0 &&
        zones_open(&cycle->zones, NULL, &log) == 0 && pidfile_write_pid(&pidfile, &log) == 0) {
        zones_slot_acquired(&cycle->zones, heritage.slot);
        process_background_done(start->background, logs_standard(&cycle->core));
        logs_lead_output(&cycle->core, -1);
        log.failures = NULL;
        conf_hooks_change(&accepted, cycle, &log);
        status = worker_main(&heritage, ROLE_SINGLE);
        conf_hooks_change(&accepted, NULL, &log);
    } else {
        status = log_exit_code(&log);
        process_background_failed(start->background, status);
    }
    close_listeners(cycle, &log);
    notify_wait(&log, process_ops->pause);
    pidfile_release(&pidfile, &log);
    free((char *)pidfile.path);
    configuration_discard(&cycle, &log);
    exec_state_done(&start->inheritance);
    shared_destroy(&shared);
    return status;
}
