/* SPDX-License-Identifier: BSD-2-Clause */
/* The names by which the outside finds the daemon: pid file and control socket. A reload that moves them
 * makes the new ones before it commits, because that can fail, and removes the old ones once it serves. */
#include "master/master.h"

#include "process/role.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void master_undo_names(struct master *master)
{
    fb_control_undo(master);
    if (master->next_pidfile.lock_fd == -1)
        return;
    fb_pidfile_remove(&master->next_pidfile, &master->log);
    free((char *)master->next_pidfile.path);
    master->next_pidfile = (struct fb_pidfile) { .lock_fd = -1 };
}

static int lock_pid(
    struct fb_pidfile *now, struct fb_pidfile *next, const char *path, struct fb_log *log)
{
    char *copy;

    if (fb_pidfile_is_at(now, path) || fb_pidfile_is_at(next, path))
        return 0;
    copy = strdup(path);
    if (copy == NULL || fb_pidfile_lock(next, copy, log) == -1) {
        free(copy);
        *next = (struct fb_pidfile) { .lock_fd = -1 };
        return -1;
    }
    return 0;
}

int master_prepare_names(struct master *master, const struct fb_core_settings *core)
{
    struct fb_pidfile *now = &master->pidfile, *next = &master->next_pidfile;

    assert(role_is(FB_ROLE_MASTER));
    if (fb_upgrade_has_made_way(master)) /* they are the other's, until it has gone */
        return 0;
    if (lock_pid(now, next, core->pid, &master->log) == -1 ||
        fb_control_prepare(master, core->control) == -1)
        return -1;
    return fb_pidfile_write(next->lock_fd != -1 ? next : now, &master->log);
}

int master_publish(struct master *master, bool first)
{
    struct fb_pidfile *next = &master->next_pidfile;

    assert(master->pool.serving != NULL);
    /* to the outside the first pid file says that every listener is ready; and a reload has prepared
     * nothing while the names were another's */
    if (master_prepare_names(master, &master->pool.serving->cycle->core) == -1) {
        if (first)
            return -1;
        master_undo_names(master);
        fb_log(&master->log, FB_ERROR, 0,
            "the pid file and the control socket stay where they are, reload to try again");
        return 0;
    }
    fb_control_publish(master);
    if (next->lock_fd == -1)
        return 0;
    fb_pidfile_remove(&master->pidfile, &master->log);
    free((char *)master->pidfile.path);
    master->pidfile = *next;
    *next = (struct fb_pidfile) { .lock_fd = -1 };
    return 0;
}
