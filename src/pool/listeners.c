/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, commits and retires listeners on behalf of a generation. Which sockets are taken over
 * from which configuration is decided here; how a socket is opened is net/listener.c's affair. */
#include "pool/listeners.h"

#include "net/overlaps.h"
#include "process/role.h"
#include "systemd/fdstore.h"

#include <assert.h>

/* Returns the listeners of the configuration that is in force, or NULL. */
#define IN_FORCE(pool) ((pool)->serving != NULL ? &(pool)->serving->cycle->stream.listeners : NULL)

/* Returns the listener whose sockets this one takes over, or NULL. */
static struct listener *find_previous_holder(
    const struct pool *pool, const struct listener *listener)
{
    struct listener *from = NULL;

    if (pool->serving != NULL)
        from = listener_find(&pool->serving->cycle->stream.listeners, listener);
    return from != NULL ? from : adopted_holder(pool->adopted, listener);
}

void listeners_abandon(struct pool *pool, struct cycle *cycle, const struct listener *last)
{
    struct listener *listener;

    assert(pool->serving == NULL || pool->serving->cycle != cycle);
    overlaps_allow(&cycle->stream.listeners, IN_FORCE(pool), &pool->adopted->holders, false);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link) {
        if (listener == last)
            return;
        listener_undo_open(listener, find_previous_holder(pool, listener));
    }
}

int listeners_open(struct pool *pool, struct cycle *cycle)
{
    unsigned slots = (unsigned)cycle->core.worker_processes;
    struct listener *listener;

    assert(role_is(ROLE_MASTER));
    assert(pool->starting == NULL);
    if (pool->serving != NULL && cycle_keep_listeners(cycle, IN_FORCE(pool)) == -1) {
        log_write(pool->log, LEVEL_EMERG, 0, "no memory for the listeners");
        return -1;
    }
    overlaps_allow(&cycle->stream.listeners, IN_FORCE(pool), &pool->adopted->holders, true);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        if (listener_open(listener, find_previous_holder(pool, listener), slots, pool->log) == -1) {
            listeners_abandon(pool, cycle, listener);
            return -1;
        }
    return 0;
}

int listeners_commit(struct pool *pool, struct cycle *cycle)
{
    struct listener *listener;

    assert(pool->starting != NULL && pool->starting->cycle == cycle);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        if (listener_commit(listener, pool->log) == -1)
            return -1;
    overlaps_allow(&cycle->stream.listeners, IN_FORCE(pool), &pool->adopted->holders, false);
    return 0;
}

void listeners_restore(struct pool *pool, struct cycle *cycle)
{
    struct listener *listener;

    assert(pool->serving != NULL);
    listeners_abandon(pool, cycle, NULL);
    STAILQ_FOREACH (listener, &pool->serving->cycle->stream.listeners, link) {
        /* has listener_commit() set options that are not configured, too: the failed commit may
         * have changed them */
        listener->adopted = true;
        listener_commit(listener, pool->log);
    }
}

/* Closes the master's sockets of a listener, and unlinks its path unless another master listens
 * there. */
static void close_listener(struct pool *pool, struct listener *listener)
{
    if (!pool->ops->is_shared(pool->host, listener))
        listener_unlink(listener, pool->log);
    listener_close(listener);
}

void listeners_retire(struct pool *pool, struct cycle *old, struct cycle *new)
{
    struct listener *listener;

    assert(old != new);
    assert(pool->serving != NULL && pool->serving->cycle == old);
    STAILQ_FOREACH (listener, &old->stream.listeners, link) {
        if (listener_find(&new->stream.listeners, listener) != NULL) {
            for (unsigned i = 0; i < listener->fd_n; i++)
                listener->fds[i] = -1;
            continue;
        }
        fdstore_drop(listener, pool->log);
        close_listener(pool, listener);
    }
}

void pool_close_listeners(struct pool *pool)
{
    struct listener *listener;

    if (pool->serving == NULL)
        return;
    STAILQ_FOREACH (listener, &pool->serving->cycle->stream.listeners, link)
        close_listener(pool, listener);
}
