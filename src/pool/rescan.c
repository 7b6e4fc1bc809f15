/* SPDX-License-Identifier: BSD-2-Clause */
/* Rescans, of listeners and of names: all who asked for one within a short time get one together,
 * so that a process that asks without pause costs the others a bounded number of looks. */
#include "pool/pool.h"

#include "base/compiler.h"

#include <assert.h>

/* The least time between two rescans. */
#define RESCAN_MS 20

static void rescan_due(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, rescan.due);
    struct slot_id except = pool->rescan.except;
    struct generation *generation;
    struct pool_worker *worker;

    assert(loop == NULL);
    pool->rescan.last_ms = pool->clock->mono_ms;
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_SERVING (worker, generation) {
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
