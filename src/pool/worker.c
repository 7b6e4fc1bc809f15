/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's record: the master waits for the worker to come further, sends to it,
 * schedules its replacement, clears it. Nothing here decides for a generation. */
#include "pool/pool.h"

#include "process/fd_passing.h"
#include "process/signals.h"

#include <assert.h>

/* A worker that was told to end at once, and has not ended so long afterwards, is killed. */
#define CLOSE_MS 2000

void pool_worker_respawn_in(struct pool_worker *worker, uint64_t ms)
{
    assert(worker->phase == POOL_WORKER_EMPTY);
    assert(worker->generation->phase < GENERATION_REPLACED);
    timers_arm(worker->generation->pool->timers, &worker->respawn, ms);
}

void pool_worker_clear(struct pool_worker *worker)
{
    assert(worker->phase != POOL_WORKER_EMPTY);
    assert(worker->channel != -1);
    fd_close_socket(worker->channel);
    if (worker->inbox != -1)
        fd_close_socket(worker->inbox);
    pool_outbox_done(worker);
    worker->channel = worker->inbox = worker->broken_listener = -1;
    worker->pid = 0;
    worker->due = worker->killed = POOL_KILL_NONE;
    worker->known = worker->drains = false;
    timers_disarm(worker->generation->pool->timers, &worker->deadline);
    worker->intake = (struct pool_intake) { .accept_n = 0 };
    worker->watch = (struct pool_watch) { .repeats = 0 };
    pool_worker_set_phase(worker, POOL_WORKER_EMPTY);
}

void pool_worker_arm(struct pool_worker *worker)
{
    int64_t limit = worker->generation->cycle->core.worker_start_timeout;

    assert(worker->phase >= POOL_WORKER_READY);
    pool_deadline_drop_start(worker);
    if (limit > 0)
        pool_deadline_set(worker, POOL_KILL_START_LATE, (uint64_t)limit);
    if (worker->generation->without_mutex)
        pool_outbox_send(worker, MESSAGE_MUTEX_OFF);
    pool_outbox_send(worker, MESSAGE_ACCEPT);
}

void pool_worker_drain(struct pool_worker *worker)
{
    assert(worker->phase != POOL_WORKER_EMPTY);
    pool_deadline_set_drain(worker);
    signals_send(worker->pid, SIGQUIT, worker->generation->pool->log);
}

void pool_worker_close(struct pool_worker *worker)
{
    assert(worker->phase != POOL_WORKER_EMPTY);
    pool_deadline_drop_start(worker);
    pool_deadline_set(worker, POOL_KILL_CLOSE_LATE, CLOSE_MS);
    /* `sigterm_shutdown` is about SIGTERM alone */
    signals_send(worker->pid, SIGINT, worker->generation->pool->log);
}
