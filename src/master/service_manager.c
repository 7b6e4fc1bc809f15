/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the state of the daemon into words for the service manager, and serves the watchdog. Only
 * the last text is kept. */
#include "master/service_manager.h"

#include "base/compiler.h"
#include "master/master.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "systemd/fdstore.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

/* The end: how many workers are waited for. */
static void describe_draining(const struct service_manager *manager, char *text, size_t size)
{
    unsigned n = pool_count_workers(manager->pool, false) + pool_count_workers(manager->pool, true);

    if (*manager->phase != MASTER_TERMINATES)
        snprintf(text, size, "Draining: the sessions of %u worker%s may end by themselves", n,
            plural(n));
    else
        snprintf(text, size, "Stopping: %u worker%s", n, plural(n));
}

/* A failure stands first and stays until a reload succeeds. */
static void describe_service(const struct service_manager *manager, char *text, size_t size)
{
    unsigned n = pool_count_workers(manager->pool, false);
    unsigned draining = pool_count_workers(manager->pool, true);
    const struct reload_status *result = &manager->reload->result;
    size_t used = 0;

    if (manager->reload->phase != RELOAD_IDLE)
        used = (size_t)snprintf(text, size, "Reloading; serving: ");
    else if (result->any && !result->ok)
        used = (size_t)snprintf(text, size, "Reload failed: %s; serving: ", result->why);
    else if (manager->pool->serving->phase == GENERATION_DRAINING)
        used = (size_t)snprintf(text, size, "Not accepting: ");
    else if (!manager->pool->serving->crashing)
        used = (size_t)snprintf(text, size, "Serving: ");
    if (manager->pool->serving->crashing && used < size)
        used += (size_t)snprintf(text + used, size - used, "Crashing, nobody serves: ");
    if (used >= size)
        return;
    used += (size_t)snprintf(text + used, size - used, "%u worker%s, generation %u", n, plural(n),
        manager->pool->serving->number);
    if (draining > 0 && used < size)
        snprintf(text + used, size - used, ", %u draining", draining);
}

static void watchdog_due(struct loop *loop, struct timer *timer)
{
    struct service_manager *manager = container_of(timer, struct service_manager, alive);

    (void)loop;
    if (*manager->is_main)
        notify_tell(manager->pool->log, NOTIFY_ALIVE);
    timers_arm(manager->pool->timers, timer, (notify_interval() + 1) / 2);
}

/* Ends the wait of an exit for a manager without a confirmation. */
static void exit_expired(struct loop *loop, struct timer *timer)
{
    struct service_manager *manager = container_of(timer, struct service_manager, exit);

    (void)loop;
    manager->late = true;
    log_write(manager->pool->log, LEVEL_WARN, 0, NOTIFY_EXIT_LATE, NOTIFY_EXIT_MS);
}

void service_manager_init(struct service_manager *manager, const struct service_manager *from)
{
    assert(from->pool != NULL && from->reload != NULL);
    assert(from->phase != NULL && from->is_main != NULL);
    *manager = *from;
    manager->any = notify_is_on();
    manager->alive.expired = watchdog_due;
    manager->exit.expired = exit_expired;
    notify_attend(manager->pool->timers, manager->pool->log);
}

void service_manager_show(struct service_manager *manager)
{
    char text[NOTIFY_STATUS_MAX] = "";

    if (!*manager->is_main || !notify_is_on())
        return;
    if (*manager->phase != MASTER_RUNS)
        describe_draining(manager, text, sizeof(text));
    else if (manager->pool->serving != NULL)
        describe_service(manager, text, sizeof(text));
    if (strcmp(text, manager->status) == 0)
        return;
    memcpy(manager->status, text, sizeof(text));
    notify_status(manager->pool->log, text);
}

void service_manager_ready(struct service_manager *manager)
{
    if (!*manager->is_main || !notify_is_on())
        return;
    if (notify_interval() > 0)
        timers_arm(manager->pool->timers, &manager->alive, 0);
    timers_disarm(manager->pool->timers, &manager->exit);
    manager->late = false;
    manager->status[0] = '\0';            /* status of an earlier main process may show */
    if (*manager->phase != MASTER_RUNS) { /* we are the main process again, and end */
        service_manager_stopping(manager);
        return;
    }
    assert(manager->pool->serving != NULL);
    service_manager_show(manager);
    fdstore_add(&manager->pool->serving->cycle->stream.listeners, manager->pool->log);
    notify_tell(manager->pool->log, NOTIFY_READY);
}

void service_manager_drop_stored(struct service_manager *manager)
{
    struct listener *listener;

    if (manager->pool->serving != NULL)
        STAILQ_FOREACH (listener, &manager->pool->serving->cycle->stream.listeners.list, link)
            fdstore_drop(listener, manager->pool->log);
}

bool service_manager_may_exit(struct service_manager *manager)
{
    assert(*manager->phase != MASTER_RUNS || manager->pool->serving == NULL);
    if (manager->late || notify_confirm(manager->pool->log)) {
        timers_disarm(manager->pool->timers, &manager->exit);
        return true;
    }
    if (!timer_is_set(&manager->exit))
        timers_arm(manager->pool->timers, &manager->exit, NOTIFY_EXIT_MS);
    return false;
}

void service_manager_done(struct service_manager *manager)
{
    timers_disarm(manager->pool->timers, &manager->alive);
    timers_disarm(manager->pool->timers, &manager->exit);
    notify_attend(NULL, NULL);
}

/* The status comes before the readiness: a failed reload is explained when the wait ends. */
void service_manager_reload(struct service_manager *manager)
{
    bool ended = manager->reload->phase == RELOAD_IDLE;
    struct clock now = { .mono_ms = 0 };

    assert(role_is(ROLE_MASTER));
    if (*manager->phase != MASTER_RUNS || !*manager->is_main || !notify_is_on())
        return;
    if (!ended) {
        process_ops->read_clock(&now);
        notify_reloading(manager->pool->log, &now.mono);
    }
    service_manager_show(manager);
    if (ended)
        notify_tell(manager->pool->log, NOTIFY_READY);
}

void service_manager_stopping(struct service_manager *manager)
{
    assert(*manager->phase != MASTER_RUNS);
    if (!*manager->is_main || !notify_is_on())
        return;
    notify_tell(manager->pool->log, NOTIFY_STOPPING);
    service_manager_show(manager);
}
