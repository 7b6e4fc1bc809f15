/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of upgrade/: the service manager, and whether the daemon serves. */
#include "master/upgrade_host.h"

#include "base/check.h"
#include "master/master.h"

#include <assert.h>

static bool is_serving(void *host)
{
    const struct master *master = master_of(host);

    return master->phase == MASTER_RUNS && master->pool.serving != NULL;
}

static void give_way_as_main(void *host, pid_t to, bool stored)
{
    struct master *master = master_of(host);

    if (stored)
        service_manager_give_way(&master->manager, to);
    else
        notify_mainpid(&master->log, to);
}

static void become_main(void *host)
{
    struct master *master = master_of(host);

    notify_cancel_mainpid();          /* no news for an ended process */
    if (master->pool.serving != NULL) /* else told once a generation serves */
        service_manager_ready(&master->manager);
}

static const struct upgrade_ops ops = {
    .serves = is_serving,
    .leave_main = give_way_as_main,
    .become_main = become_main,
};

void upgrade_host_init(
    struct master *master, struct exec_state *inheritance, const struct binary *binary)
{
    upgrade_init(&master->upgrade,
        &(struct upgrade) {
            .ops = &ops,
            .host = master,
            .binary = binary,
            .pool = &master->pool,
            .endpoints = &master->endpoints,
            .clients = &master->control,
        },
        inheritance);
}

void upgrade_host_begin(struct master *master)
{
    assert(master->reload.phase == RELOAD_IDLE);
    assert(master->pool.starting == NULL && master->pool.serving != NULL);
    upgrade_begin(&master->upgrade, master->phase != MASTER_RUNS ? "the daemon is ending" : NULL,
        master->pool.serving->cycle->core.worker_start_timeout);
    if (master->upgrade.phase == UPGRADE_STARTING)
        commands_note_upgrade(&master->commands, &master->timers);
}
