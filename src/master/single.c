/* SPDX-License-Identifier: BSD-2-Clause */
/* `master_process off`: one process is the worker and does what a master must: it opens listeners, logs
 * and zones, writes the pid file, and removes what it has made. It cannot reload, nor change its
 * binary. */
#include "master/single.h"

#include "net/overlaps.h"
#include "process/environment.h"
#include "process/logs.h"
#include "systemd/fdstore.h"
#include "worker/worker.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/wait.h>

/* Closes the listeners that the worker's part has not closed, because it never began to accept. */
static void close_listeners(struct fb_cycle *cycle, struct fb_log *log)
{
    struct fb_listener *listener;

    STAILQ_FOREACH (listener, &cycle->stream.listeners, link) {
        if (listener->fd_n == 0 || listener->fds[0] == -1)
            continue; /* a path that we did not bind may be another daemon's */
        fb_listener_unlink(listener, log);
        fb_listener_close(listener);
    }
}

static int open_listeners(
    struct fb_cycle *cycle, struct fb_inherited *inherited, struct fb_log *log)
{
    struct fb_listener *listener;

    fb_overlaps_allow(&cycle->stream.listeners, NULL, &inherited->lenders, true);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        if (fb_listener_open(listener, fb_inherited_lender(inherited, listener), 1, log) == -1)
            return -1;
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        if (fb_listener_commit(listener, log) == -1)
            return -1;
    fb_overlaps_allow(&cycle->stream.listeners, NULL, &inherited->lenders, false);
    fb_store_listeners(&cycle->stream.listeners, log);
    fb_store_forget_unclaimed(inherited, &cycle->stream.listeners, log);
    fb_inherited_settle(inherited, &cycle->stream.listeners, log);
    fb_inherited_forget(inherited, &cycle->stream.listeners); /* no reload will want them */
    return 0;
}

/* Reaps a container's orphans that have ended before we took signals; the kernel reaps later ones,
 * because this role ignores SIGCHLD. */
static void reap_orphans(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

int single_main(struct start *start)
{
    struct fb_cycle *cycle = start->cycle;
    struct fb_shared *shared = start->shared;
    struct fb_inherited *inherited = start->inheritance.sockets;
    struct fb_pidfile pidfile = start->pidfile;
    struct fb_log log = start->log;
    struct fb_heritage heritage = { .cycle = cycle, .shared = shared, .channel = -1 };
    int status = EXIT_FAILURE;

    assert(cycle != NULL && shared != NULL);
    descriptors_done(&start->opened); /* no worker is forked that would need them */
    reap_orphans();
    if (fb_slot_take(shared, &heritage.slot) && open_listeners(cycle, inherited, &log) == 0 &&
        fb_zones_open(&cycle->zones, NULL, &log) == 0 && fb_pidfile_write(&pidfile, &log) == 0) {
        fb_process_background_done(start->background, fb_logs_use_stderr(&cycle->core));
        status = fb_worker_main(&heritage, FB_ROLE_SINGLE);
    }
    close_listeners(cycle, &log);
    fb_pidfile_remove(&pidfile, &log);
    free((char *)pidfile.path);
    fb_logs_close(&cycle->core);
    fb_zones_close(&cycle->zones);
    fb_cycle_destroy(&cycle);
    fb_inheritance_done(&start->inheritance);
    fb_shared_destroy(&shared);
    return status;
}
