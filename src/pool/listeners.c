/* SPDX-License-Identifier: BSD-2-Clause */
/* Repairs shared means of accepting: listening sockets that a worker has shut down, connected,
 * or given other options, and the accept mutex, which is given up after repeated damage. A
 * worker's message only makes the master look at its own sockets, at a bounded rate; each death
 * of a worker does so too. Rescans are merged: one for all requests within a short time. */
#include "pool/listeners.h"

#include "base/compiler.h"
#include "net/listener_options.h"
#include "net/listener_socket.h"
#include "pool/outbox.h"
#include "systemd/fdstore.h"

#include <assert.h>

/* Between two looks at the listeners. */
#define MEND_MS 100
/* Sockets to restore before any other work. */
#define RESTORE_MOST 256
/* Reports of damage after which a generation goes on without the accept mutex. */
#define DAMAGE_MOST 2

/* Returns the configuration with listening sockets; NULL: none. */
static struct cycle *listening_cycle(const struct pool *pool)
{
    if (pool->starting != NULL && pool->starting->phase == GENERATION_COMMITTED)
        return pool->starting->cycle;
    return pool->serving != NULL && pool->serving->phase == GENERATION_SERVING
               ? pool->serving->cycle
               : NULL;
}

static void mend_listener_socket(
    struct pool *pool, struct cycle *cycle, struct listener *listener, int fd)
{
    /* a new socket would take the address from another master process; beside a serving generation,
     * a starting one has looked at the path's file already, or bound the path again */
    bool shared = (pool->starting != NULL && pool->serving != NULL) ||
                  pool->ops->is_handed_over(pool->host, listener);
    struct pool_worker *worker;

    if (shared && listener->address.any.sa_family == AF_UNIX)
        return;
    if (listener_mend(listener, fd, &cycle->stream.listeners, !shared && listener->kept_n == 0,
            pool->log) != LISTENER_REPLACED)
        return;
    if (listener->stored_n > 0) { /* the service manager has copies of the old socket */
        fdstore_drop(listener, pool->log);
        fdstore_add(&cycle->stream.listeners, pool->log);
    }
    POOL_FOREACH_SERVING (worker, pool)
        pool_outbox_listener(worker, fd);
}

static void look_at_socket(
    struct pool *pool, struct cycle *cycle, struct listener *listener, int fd)
{
    struct pool_worker *worker;

    if (listener_is_broken(listener, fd)) {
        mend_listener_socket(pool, cycle, listener, fd);
        return;
    }
    /* a message with the new socket may have been lost, or the worker was forked before */
    POOL_FOREACH_WORKER (worker, pool)
        if (worker->broken_listener == fd)
            pool_outbox_listener(worker, fd);
}

void pool_mend_listeners(struct pool *pool)
{
    struct cycle *cycle = listening_cycle(pool);
    struct pool_worker *worker;
    struct listener *listener;

    pool->mended_ms = pool->clock->mono_ms;
    if (cycle != NULL && !pool->ending)
        STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
            for (unsigned i = 0; i < listener->fd_n; i++)
                if (listener->fds[i] != -1)
                    look_at_socket(pool, cycle, listener, listener->fds[i]);
    POOL_FOREACH_WORKER (worker, pool)
        worker->broken_listener = -1;
}

static void mend_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    pool_mend_listeners(container_of(timer, struct pool, mend));
}

void pool_look_at_listeners(struct pool *pool)
{
    pool->mend.expired = mend_expired;
    if (!timer_is_set(&pool->mend))
        timers_arm_at(pool->timers, &pool->mend, pool->mended_ms + MEND_MS);
}

void pool_read_untouched(struct pool *pool)
{
    const struct listener *listener;

    STAILQ_FOREACH (listener, &pool->serving->cycle->stream.listeners.list, link)
        if (listener->address.any.sa_family != AF_UNIX)
            listener_untouched_of(listener, &pool->untouched);
}

/* Puts back the options of some sockets, from a number on; whether no more follow. */
static bool restore_some(struct pool *pool, struct cycle *cycle, unsigned from)
{
    struct listener *listener;
    unsigned n = 0;

    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        for (unsigned i = 0; i < listener->fd_n; i++) {
            if (n++ < from || listener->fds[i] == -1)
                continue;
            if (n > from + RESTORE_MOST)
                return false;
            if (!listener_is_broken(listener, listener->fds[i]))
                listener_restore(listener, listener->fds[i], &pool->untouched, pool->log);
        }
    return true;
}

/* A death during a pass adds a pass. */
static void restore_expired(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, restore);
    struct cycle *cycle = listening_cycle(pool);

    assert(loop == NULL && pool->restore_passes > 0);
    if (cycle == NULL || pool->ending) {
        pool->restore_passes = 0;
        return;
    }
    if (restore_some(pool, cycle, pool->restore_at)) {
        pool->restore_at = 0;
        pool->restore_passes--;
    } else {
        pool->restore_at += RESTORE_MOST;
    }
    if (pool->restore_passes > 0)
        timers_arm_at(pool->timers, timer, pool->clock->mono_ms + 1);
}

void pool_restore_listeners(struct pool *pool)
{
    pool_look_at_listeners(pool);
    pool->restore.expired = restore_expired;
    pool->restore_passes = pool->restore_at > 0 ? 2 : 1;
    if (!timer_is_set(&pool->restore))
        timers_arm_at(pool->timers, &pool->restore, pool->clock->mono_ms + MEND_MS);
}

void pool_note_damaged_mutex(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;
    struct log *log = generation->pool->log;

    if (generation->without_mutex)
        return;
    assert(generation->mutex_damage < DAMAGE_MOST);
    if (++generation->mutex_damage < DAMAGE_MOST) {
        log_quota_write(&worker->lines, LEVEL_ALERT, 0,
            "the accept mutex was damaged, and was mended by worker process %d", (int)worker->pid);
        return;
    }
    log_write(log, LEVEL_ALERT, 0,
        "the accept mutex was damaged again, generation %u goes on without the mutex",
        generation->number);
    generation->without_mutex = true;
    GENERATION_FOREACH_SERVING (worker, generation)
        if (worker->phase >= POOL_WORKER_READY)
            channel_end_send(&worker->channel, MESSAGE_MUTEX_OFF);
}

/* The least time between two rescans. */
#define RESCAN_MS 20

static void rescan_due(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, rescan.due);
    struct slot_id except = pool->rescan.except;
    struct pool_worker *worker;

    assert(loop == NULL);
    pool->rescan.last_ms = pool->clock->mono_ms;
    POOL_FOREACH_SERVING (worker, pool) {
        if (pool->rescan.names && worker->phase != POOL_WORKER_EMPTY)
            channel_end_send(&worker->channel, MESSAGE_NAMES);
        if (pool->rescan.listeners && worker->phase == POOL_WORKER_ACCEPTING &&
            (worker->slot.slot != except.slot || worker->slot.serial != except.serial))
            channel_end_send(&worker->channel, MESSAGE_RESCAN);
    }
    if (pool->rescan.host)
        pool->ops->rescan(pool->host);
    pool->rescan.host = pool->rescan.listeners = pool->rescan.names = false;
}

static void set_due(struct pool *pool)
{
    struct pool_rescan *rescan = &pool->rescan;

    rescan->due.expired = rescan_due;
    if (rescan->due.deadline == 0)
        timers_arm_at(pool->timers, &rescan->due, rescan->last_ms + RESCAN_MS);
}

void pool_rescan_names(struct pool *pool)
{
    pool->rescan.names = true;
    set_due(pool);
}

void pool_rescan(struct pool *pool, const struct pool_worker *asker)
{
    struct pool_rescan *rescan = &pool->rescan;
    struct slot_id id = asker != NULL ? asker->slot : (struct slot_id) { .serial = 0 };

    rescan->host = rescan->host || asker != NULL;
    if (!rescan->listeners) {
        rescan->listeners = true;
        rescan->except = id;
        set_due(pool);
    } else if (id.slot != rescan->except.slot || id.serial != rescan->except.serial) {
        rescan->except.serial = 0;
    }
}
