/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, commits and retires all listeners of a configuration. Which sockets are taken over
 * from which configuration is decided here; how a socket is opened is net/listener.c's affair. */
#include "process/listeners.h"

#include "net/overlaps.h"
#include "process/role.h"
#include "systemd/fdstore.h"

#include <assert.h>

/* Returns the listener whose sockets this one takes over, or NULL. */
static struct listener *find_previous_holder(
    const struct cycle *in_force, const struct adopted *adopted, const struct listener *listener)
{
    struct listener *from = NULL;

    if (in_force != NULL)
        from = listener_find(&in_force->stream.listeners, listener);
    return from != NULL ? from : adopted_holder(adopted, listener);
}

/* Lets the sockets that are to be bound overlap with those that are, or no more. */
static void allow_overlaps(const struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, bool allow)
{
    overlaps_allow(&cycle->stream.listeners, in_force != NULL ? &in_force->stream.listeners : NULL,
        &adopted->holders, allow);
}

void listeners_abandon(struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, const struct listener *last)
{
    struct listener *listener;

    assert(in_force != cycle);
    allow_overlaps(cycle, in_force, adopted, false);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link) {
        if (listener == last)
            return;
        listener_undo_open(listener, find_previous_holder(in_force, adopted, listener));
    }
}

int listeners_open(struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted,
    unsigned slots, struct log *log)
{
    struct listener *listener;

    assert(role_is(ROLE_MASTER));
    assert(in_force != cycle && slots > 0);
    if (in_force != NULL && cycle_keep_listeners(cycle, &in_force->stream.listeners) == -1) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the listeners");
        return -1;
    }
    allow_overlaps(cycle, in_force, adopted, true);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link) {
        const struct listener *from = find_previous_holder(in_force, adopted, listener);

        if (listener_open(listener, from, slots, log) == -1) {
            listeners_abandon(cycle, in_force, adopted, listener);
            return -1;
        }
    }
    return 0;
}

int listeners_commit(struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, struct log *log)
{
    struct listener *listener;

    assert(in_force != cycle);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        if (listener_commit(listener, log) == -1)
            return -1;
    allow_overlaps(cycle, in_force, adopted, false);
    return 0;
}

void listeners_restore(struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, struct log *log)
{
    struct listener *listener;

    assert(in_force != NULL);
    listeners_abandon(cycle, in_force, adopted, NULL);
    STAILQ_FOREACH (listener, &in_force->stream.listeners, link) {
        /* makes listener_commit() set options that are not configured, too: the failed commit may
         * have changed them */
        listener->adopted = true;
        listener_commit(listener, log);
    }
}

/* Closes our sockets of a listener, and unlinks its path unless another master listens there. */
static void close_listener(
    struct listener *listener, const struct listeners_sharing *sharing, struct log *log)
{
    if (!sharing->is_shared(sharing->host, listener))
        listener_unlink(listener, log);
    listener_close(listener);
}

void listeners_retire(const struct cycle *old, const struct cycle *new,
    const struct listeners_sharing *sharing, struct log *log)
{
    struct listener *listener;

    assert(old != new);
    STAILQ_FOREACH (listener, &old->stream.listeners, link) {
        if (listener_find(&new->stream.listeners, listener) != NULL) {
            for (unsigned i = 0; i < listener->fd_n; i++)
                listener->fds[i] = -1;
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

    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        close_listener(listener, sharing, log);
}
