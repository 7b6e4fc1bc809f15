/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool's operations: what the master does when a generation commits, serves or fails, and
 * when a child exits. Each event is acted on where it arrives; nothing is looked for afterwards. */
#include "master/master.h"

#include "base/check.h"
#include "process/configuration.h"
#include "process/environment.h"
#include "process/logs.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "systemd/fdstore.h"

#include <assert.h>
#include <errno.h>
#include <sys/wait.h>

static void note_committed(void *host)
{
    struct master *master = master_of(host);
    struct listeners *listeners = &master->pool.starting->cycle->stream.listeners;

    if (master->upgrade.main)
        fdstore_add(listeners, &master->log);
    if (master->upgrade.phase != UPGRADE_NONE && master->pool.serving != NULL)
        upgrade_tell_listeners(&master->upgrade, listeners);
    assert(role_is(ROLE_MASTER));
    configuration_change_hooks(&master->accepted, master->pool.starting->cycle, &master->log);
    /* a start has no reload, and a way back has committed before */
    if (master->reload.phase == RELOAD_PREPARING)
        reload_set_phase(&master->reload, RELOAD_COMMITTED);
}

/* The daemon has begun to serve: the starting process goes on. */
static void finish_start(struct master *master)
{
    const struct core_settings *core = &master->pool.serving->cycle->core;

    service_manager_ready(&master->manager);
    process_background_done(master->background, logs_standard(core));
    master->background = -1;
    master->log.also = NULL;
    master->log.failures = NULL;
    log_update(&master->log);
}

static void note_serving(void *host, bool first)
{
    struct master *master = master_of(host);
    const struct core_settings *core = &master->pool.serving->cycle->core;

    assert(role_is(ROLE_MASTER));
    assert(first == (master->reload.phase == RELOAD_IDLE));
    /* the first pid file says to the outside that every listener is ready */
    if (!first) {
        endpoints_publish_again(&master->endpoints, core, master->upgrade.control, &master->log);
    } else if (endpoints_publish(&master->endpoints, core, master->upgrade.control, &master->log) ==
               -1) {
        master->failed = true; /* without endpoints no client would find us */
        if (master->phase == MASTER_RUNS)
            master_end(master, false);
        return;
    }
    worker_list_move(&master->list, master->endpoints.pidfile.path, &master->log);
    if (master->reload.phase == RELOAD_GOING_BACK) {
        log_write(&master->log, LEVEL_ERROR, 0,
            "reload failed: the previous configuration is in force again, correct the new one and "
            "try again");
        reload_end(master, false);
    } else if (master->pool.probation.before != NULL) {
        reload_set_phase(&master->reload, RELOAD_PROVING);
    } else if (!first) { /* the generation before had begun to drain, and cannot come back */
        reload_end(master, true);
    }
    if (master->upgrade.phase != UPGRADE_NONE)
        upgrade_announce(&master->upgrade);
    if (first)
        finish_start(master);
}

static void note_proved(void *host)
{
    struct master *master = master_of(host);

    reload_end(master, true);
}

static void note_way_back(void *host)
{
    struct master *master = master_of(host);

    reload_set_phase(&master->reload, RELOAD_GOING_BACK);
    endpoints_undo(
        &master->endpoints, &master->log); /* prepared by a generation that never served */
    /* the generation has given listeners up, even without having served */
    if (master->upgrade.phase != UPGRADE_NONE)
        upgrade_announce(&master->upgrade);
}

static void note_start_failed(void *host)
{
    struct master *master = master_of(host);

    if (master->reload.phase == RELOAD_GOING_BACK && master->phase == MASTER_RUNS) {
        log_write(&master->log, LEVEL_ERROR, 0,
            "reload failed, and the previous configuration could not be started again: the new one "
            "stays in force");
        /* a generation that never served has published nothing */
        endpoints_publish_again(&master->endpoints, &master->pool.serving->cycle->core,
            master->upgrade.control, &master->log);
        worker_list_move(&master->list, master->endpoints.pidfile.path, &master->log);
    }
    if (master->reload.phase != RELOAD_IDLE)
        reload_end(master, false);
    else
        master->failed = true;
}

static void rescan_other(void *host)
{
    struct master *master = master_of(host);

    if (master->upgrade.phase != UPGRADE_NONE)
        upgrade_send_rescan(&master->upgrade);
}

static bool is_listener_shared(void *host, const struct listener *listener)
{
    return listener->fd_n > 0 &&
           upgrade_sockets_have(&master_of(host)->upgrade.sockets, listener->fds[0]);
}

static bool is_listener_handed_over(void *host, const struct listener *listener)
{
    const struct master *master = master_of(host);

    if (listener == NULL)
        return master->upgrade.phase == UPGRADE_HANDED_OVER && master->upgrade.sockets.n > 0;
    return master->upgrade.phase == UPGRADE_HANDED_OVER && is_listener_shared(host, listener);
}

static enum pool_asked what_was_asked(int status)
{
    if (status == 0)
        return POOL_ASKED;
    return errno == EAGAIN ? POOL_ASK_LATER : POOL_ASK_NOBODY;
}

static enum pool_asked ask_others(void *host)
{
    return what_was_asked(upgrade_ask_others(&master_of(host)->upgrade));
}

static enum pool_asked ask_inbox(void *host, uint32_t incarnation, uint32_t asker)
{
    return what_was_asked(upgrade_ask_inbox(&master_of(host)->upgrade, incarnation, asker));
}

static void worker_gone(void *host, uint32_t incarnation)
{
    upgrade_tell_gone(&master_of(host)->upgrade, incarnation);
}

static void in_child(void *host, const struct cycle *cycle)
{
    if (master_of(host)->background != -1) /* a process waits for us, or reads our standard error */
        process_detach(logs_standard(&cycle->core));
}

static void child_exited(void *host, pid_t other)
{
    struct master *master = master_of(host);
    int status;

    if (master->control.socket->fd != -1)
        control_before_reaping(&master->control);
    if (other == 0 || process_ops->reap(other, &status, true) != other)
        return;
    if (master->reload.check.pid == other)
        reload_checked(master, status);
    else if (master->upgrade.phase != UPGRADE_NONE)
        upgrade_reaped(&master->upgrade, other, status);
}

const struct pool_ops master_pool_ops = {
    .committed = note_committed,
    .serves = note_serving,
    .proved = note_proved,
    .goes_back = note_way_back,
    .failed = note_start_failed,
    .rescan = rescan_other,
    .is_shared = is_listener_shared,
    .is_handed_over = is_listener_handed_over,
    .ask_others = ask_others,
    .ask_inbox = ask_inbox,
    .worker_gone = worker_gone,
    .in_child = in_child,
    .exited = child_exited,
};
