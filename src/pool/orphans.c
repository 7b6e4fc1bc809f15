/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers whose master process has left them to a child of its own: they are not our children.
 * Their channels and shared memory were inherited, so that nothing changes for them; but their
 * exits are seen by their handles, at intervals, and without an exit code. Only a pool that ends is
 * left. */
#include "pool/pool.h"

#include "os/process.h"
#include "os/sockets.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>

#define LOOK_MS 100

/* Lets a forked child inherit the memory that is shared with workers, or no longer. */
static int set_inherited(struct pool *pool, bool inherited)
{
    struct generation *generation;
    int status = segment_set_inherited(&pool->shared->segment, inherited);

    TAILQ_FOREACH (generation, &pool->generations, link)
        if (zones_set_inherited(&generation->cycle->zones, inherited) == -1)
            status = -1;
    return status;
}

int pool_leave_begin(struct pool *pool)
{
    struct generation *generation;
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    assert(pool->ending);
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation) {
            if (worker->pid > 0 && worker->handle == -1)
                worker->handle = process_ops->handle_open(worker->pid);
            if (worker->pid > 0 && worker->handle == -1)
                return -1;
        }
    return set_inherited(pool, true);
}

void pool_leave_undo(struct pool *pool)
{
    struct generation *generation;
    struct pool_worker *worker;

    /* a worker with a handle is not waited for */
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            if (worker->handle != -1) {
                process_ops->handle_close(worker->handle);
                worker->handle = -1;
            }
    set_inherited(pool, false);
}

/* A worker that nobody reaps keeps its number, and then its channel tells of its end. */
static bool has_ended(const struct pool_worker *worker)
{
    if (worker->pid == 0 || worker->handle == -1)
        return false;
    return process_ops->handle_has_ended(worker->handle) ||
           (!os_handle_is_exact() && os_socket_is_closed(worker->channel.fd));
}

/* Buries one orphan that has ended; false if there is none. The record's generation may be gone
 * then. */
static bool bury_one(struct pool *pool)
{
    struct generation *generation;
    struct pool_worker *worker;

    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            if (has_ended(worker)) {
                pool_bury_orphan(worker);
                return true;
            }
    return false;
}

static void look(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, orphans);

    (void)loop;
    while (bury_one(pool))
        continue;
    timers_arm(pool->timers, timer, LOOK_MS);
}

int pool_take_over(struct pool *pool)
{
    struct generation *generation;
    struct pool_worker *worker;
    int status = 0;

    assert(pool->ending);
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            if (worker->pid > 0 && (process_ops->wakeup_add(worker->channel.fd) == -1 ||
                                       output_take_over(&worker->output) == -1))
                status = -1;
    pool->orphans.expired = look;
    timers_arm(pool->timers, &pool->orphans, 0);
    return status;
}
