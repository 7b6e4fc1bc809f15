/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, commits and retires all listeners of a configuration, and decides on sockets to be taken
 * over from another configuration. Never opens a socket itself (net/listener_open.c). */
#include "configuration/listeners.h"

#include "conf/report.h"
#include "configuration/await.h"
#include "net/listener_open.h"
#include "net/listener_set.h"
#include "net/listener_socket.h"
#include "process/role.h"
#include "systemd/fdstore.h"

#include <assert.h>
#include <unistd.h>

/* Failures of an opening that are reported: each port of a range may fail. */
#define FAILED_MAX 50

/* Returns the previous holder of the listener's sockets, or NULL. */
static struct listener *find_previous_holder(
    const struct cycle *in_force, const struct adopted *adopted, const struct listener *listener)
{
    struct listener *from = NULL;

    if (in_force != NULL)
        from = listener_set_find(&in_force->stream.listeners, listener);
    return from != NULL ? from : adopted_holder(adopted, listener);
}

/* Allows or forbids sockets to be bound to overlap with bound sockets. */
static void allow_overlaps(const struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, bool allow)
{
    listener_set_allow_all(&cycle->stream.listeners,
        in_force != NULL ? &in_force->stream.listeners : NULL, &adopted->holders, allow);
}

void listeners_abandon(
    struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted)
{
    struct listener *listener;

    assert(in_force != cycle);
    allow_overlaps(cycle, in_force, adopted, false);
    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        listener_undo_open(listener, find_previous_holder(in_force, adopted, listener));
}

/* Excerpts go to standard error at a start, unless in JSON, and to diagnostics at a reload (-1). */
static int excerpts_of(const struct cycle *cycle, const struct cycle *in_force)
{
    const struct core_settings *core = &cycle->core;

    for (unsigned i = 0; i < core->log_n; i++)
        if (core->logs[i].fd == STDERR_FILENO && core->logs[i].format == LOG_FORMAT_JSON)
            return -1;
    return in_force == NULL ? STDERR_FILENO : -1;
}

/* Opens a listener, or commits it to `system`; log lines name its place. */
static int open_or_commit(struct listener *listener, const struct listener *from, unsigned slots,
    struct listener_system *system, int excerpts, struct log *log)
{
    struct report_place place;
    int status;

    log->place = report_place_init(&place, listener->word, listener->arena);
    status = system != NULL ? listener_commit(listener, system, log)
                            : listener_open(listener, from, slots, log);
    log->place = NULL;
    if (status == -1)
        report_show_excerpt(&place, excerpts);
    return status;
}

unsigned listeners_count_lost(const struct cycle *cycle, unsigned *in_use)
{
    const struct listener *listener;
    unsigned lost = 0;

    *in_use = 0;
    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        if (listener_is_path_lost(listener)) {
            lost++;
            *in_use += listener_is_path_in_use(listener);
        }
    return lost;
}

void listeners_note_lost(struct cycle *in_force, bool bind_again)
{
    struct listener *listener;

    STAILQ_FOREACH (listener, &in_force->stream.listeners.list, link)
        listener->path_lost = bind_again && listener_is_path_lost(listener);
}

bool listeners_must_bind(
    const struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted)
{
    const struct listener *listener;

    assert(in_force != cycle);
    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        if (listener->address.any.sa_family != AF_UNIX &&
            find_previous_holder(in_force, adopted, listener) == NULL)
            return true;
    return false;
}

int listeners_open(struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted,
    unsigned slots, struct log *log)
{
    int excerpts = excerpts_of(cycle, in_force);
    struct listener *listener;
    unsigned failed = 0;

    assert(role_is(ROLE_MASTER));
    assert(in_force != cycle && slots > 0);
    if (in_force != NULL && cycle_keep_listeners(cycle, &in_force->stream.listeners) == -1) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the listeners");
        return -1;
    }
    allow_overlaps(cycle, in_force, adopted, true);
    if (in_force == NULL)
        await_addresses(&cycle->stream.listeners, adopted, log);
    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link) {
        const struct listener *from = find_previous_holder(in_force, adopted, listener);

        if (open_or_commit(listener, from, slots, NULL, excerpts, log) == -1 &&
            ++failed == FAILED_MAX) {
            log_write(log, LEVEL_EMERG, 0, "too many addresses failed, the rest was not tried");
            log_note_temporary(log);
            break;
        }
    }
    if (failed == 0)
        return 0;
    listeners_abandon(cycle, in_force, adopted);
    return -1;
}

int listeners_commit(struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, struct log *log)
{
    int excerpts = excerpts_of(cycle, in_force);
    /* at a reload the pool puts back options, little by little */
    struct listener_system system = { .restores = in_force == NULL };
    struct listener *listener;

    assert(in_force != cycle);
    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        if (open_or_commit(listener, NULL, 0, &system, excerpts, log) == -1)
            return -1;
    allow_overlaps(cycle, in_force, adopted, false);
    if (in_force != NULL) /* the new socket is stored under the same name */
        STAILQ_FOREACH (listener, &in_force->stream.listeners.list, link)
            if (listener->path_lost)
                fdstore_drop(listener, log);
    return 0;
}

void listeners_restore(struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, struct log *log)
{
    struct listener_system system = { 0 };
    struct listener *listener;

    assert(in_force != NULL);
    listeners_abandon(cycle, in_force, adopted);
    STAILQ_FOREACH (listener, &in_force->stream.listeners.list, link) {
        /* makes listener_commit() set all options changed by the failed commit */
        listener->adopted = true;
        listener_commit(listener, &system, log);
    }
}

/* Closes our sockets of a listener, and unlinks its path unless another master listens there. */
static void close_listener(
    struct listener *listener, const struct listeners_sharing *sharing, struct log *log)
{
    if (!listener_is_open(listener)) /* closed by a quit: the path may be another process's */
        return;
    if (!sharing->is_shared(sharing->host, listener))
        listener_unlink(listener, log);
    listener_close(listener);
}

void listeners_retire(const struct cycle *old, const struct cycle *new,
    const struct listeners_sharing *sharing, struct log *log)
{
    struct listener *listener;

    assert(old != new);
    STAILQ_FOREACH (listener, &old->stream.listeners.list, link) {
        const struct listener *next = listener_set_find(&new->stream.listeners, listener);

        if (next != NULL) {
            listener_hand_over(listener, next);
            continue;
        }
        fdstore_drop(listener, log);
        close_listener(listener, sharing, log);
    }
}

void listeners_close(
    const struct cycle *cycle, const struct listeners_sharing *sharing, struct log *log)
{
    struct listener *listener;

    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        close_listener(listener, sharing, log);
}
