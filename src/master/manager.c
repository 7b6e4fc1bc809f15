/* SPDX-License-Identifier: BSD-2-Clause */
#include "master/manager.h"

#include "master/master.h"
#include "systemd/fdstore.h"

#include <stdio.h>
#include <string.h>

static unsigned worker_n(const struct fb_master *master, bool draining)
{
    const struct fb_generation *generation;
    unsigned n = 0;

    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++)
            n += generation != master->starting && generation->draining == draining &&
                 generation->seats[i].pid > 0;
    return n;
}

static const char *plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

/* Of the end: how many are waited for. */
static void describe_end(const struct fb_master *master, char *text, size_t size)
{
    unsigned n = worker_n(master, false) + worker_n(master, true);

    if (master->state == FB_MASTER_QUITS)
        snprintf(text, size, "Draining: the sessions of %u worker%s may end by themselves", n,
            plural(n));
    else
        snprintf(text, size, "Stopping: %u worker%s", n, plural(n));
}

/* A failure stands first and stays until a reload succeeds. */
static void describe_service(const struct fb_master *master, char *text, size_t size)
{
    unsigned n = worker_n(master, false), draining = worker_n(master, true);
    size_t used = 0;

    if (master->reloading)
        used = (size_t)snprintf(text, size, "Reloading; serving: ");
    else if (master->result.any && !master->result.ok)
        used = (size_t)snprintf(text, size, "Reload failed: %s; serving: ", master->result.why);
    else
        used = (size_t)snprintf(text, size, "Serving: ");
    if (used >= size)
        return;
    used += (size_t)snprintf(
        text + used, size - used, "%u worker%s, generation %u", n, plural(n), master->live->number);
    if (draining > 0 && used < size)
        snprintf(text + used, size - used, ", %u draining", draining);
}

/* Whether we are listened to: the main process is. */
static bool speaks(const struct fb_master *master)
{
    return fb_notify_is_on() && master->upgrade.main;
}

void fb_manager_show(struct fb_master *master)
{
    char text[FB_NOTIFY_STATUS_MAX] = "";

    if (!speaks(master))
        return;
    if (master->state != FB_MASTER_RUNS)
        describe_end(master, text, sizeof(text));
    else if (master->live != NULL)
        describe_service(master, text, sizeof(text));
    if (strcmp(text, master->manager.status) == 0)
        return;
    memcpy(master->manager.status, text, sizeof(text));
    fb_notify_status(&master->log, text);
}

void fb_manager_ready(struct fb_master *master)
{
    if (!speaks(master))
        return;
    if (fb_notify_interval() > 0)
        master->manager.alive_ms = master->clock.mono_ms;
    if (master->state != FB_MASTER_RUNS) { /* we are the main process again, and end */
        fb_manager_stopping(master);
        return;
    }
    fb_manager_show(master);
    fb_store_listeners(&master->live->cycle->stream.listeners, &master->log);
    fb_notify_ready(&master->log);
}

void fb_manager_give_way(struct fb_master *master, pid_t to)
{
    struct fb_listener *listener;

    if (master->live != NULL)
        STAILQ_FOREACH (listener, &master->live->cycle->stream.listeners, link)
            fb_store_forget(listener, &master->log);
    fb_notify_mainpid(&master->log, to);
}

void fb_manager_reloading(struct fb_master *master)
{
    if (!speaks(master))
        return;
    fb_notify_reloading(&master->log);
    fb_manager_show(master);
}

/* Who has waited for us to be ready finds the status that says why nothing has changed. */
void fb_manager_reloaded(struct fb_master *master)
{
    if (master->state != FB_MASTER_RUNS || !speaks(master))
        return;
    fb_manager_show(master);
    fb_notify_ready(&master->log);
}

void fb_manager_stopping(struct fb_master *master)
{
    if (!speaks(master))
        return;
    fb_notify_stopping(&master->log);
    fb_manager_show(master);
}

void fb_manager_meet_deadlines(struct fb_master *master, uint64_t *next)
{
    struct fb_manager *manager = &master->manager;

    if (manager->alive_ms == 0 || !speaks(master))
        return;
    if (manager->alive_ms <= master->clock.mono_ms) {
        fb_notify_alive(&master->log);
        manager->alive_ms = master->clock.mono_ms + (fb_notify_interval() + 1) / 2;
    }
    if (*next == 0 || manager->alive_ms < *next)
        *next = manager->alive_ms;
}
