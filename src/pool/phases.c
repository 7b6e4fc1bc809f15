/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases of generations and of workers' records: each is changed here alone, by a step that
 * must be legal. A worker's step sets the deadline of the next one; the last one gives up what the
 * record has of a process that has gone. */
#include "pool/outbox.h"

#include "process/fd_passing.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>

void pool_set_generation_phase(struct generation *generation, enum generation_phase phase)
{
    static const unsigned legal[] = {
        [GENERATION_STARTING] =
            1u << GENERATION_COMMITTED | 1u << GENERATION_DRAINING | 1u << GENERATION_CLOSING,
        [GENERATION_COMMITTED] = 1u << GENERATION_SERVING,
        [GENERATION_SERVING] =
            1u << GENERATION_REPLACED | 1u << GENERATION_DRAINING | 1u << GENERATION_CLOSING,
        [GENERATION_REPLACED] = 1u << GENERATION_DRAINING | 1u << GENERATION_CLOSING,
        [GENERATION_DRAINING] = 1u << GENERATION_CLOSING,
        [GENERATION_CLOSING] = 0,
    };

    assert(role_is(ROLE_MASTER));
    assert((legal[generation->phase] >> phase & 1) != 0);
    generation->phase = phase;
}

void pool_worker_set_phase(struct pool_worker *worker, enum pool_worker_phase phase)
{
    struct pool *pool = worker->generation->pool;
    static const unsigned legal[] = {
        [POOL_WORKER_EMPTY] = 1u << POOL_WORKER_STARTING,
        [POOL_WORKER_STARTING] = 1u << POOL_WORKER_EMPTY | 1u << POOL_WORKER_READY,
        [POOL_WORKER_READY] =
            1u << POOL_WORKER_EMPTY | 1u << POOL_WORKER_ACCEPTING | 1u << POOL_WORKER_RELEASED,
        [POOL_WORKER_ACCEPTING] = 1u << POOL_WORKER_EMPTY | 1u << POOL_WORKER_RELEASED,
        [POOL_WORKER_RELEASED] = 1u << POOL_WORKER_EMPTY,
    };

    assert(role_is(ROLE_MASTER));
    assert((legal[worker->phase] >> phase & 1) != 0);
    assert(worker->pid > 1 && worker->channel.fd != -1);
    worker->phase = phase;
    if (phase == POOL_WORKER_STARTING) {
        worker->generation->process_n++;
        worker->started_ms = pool->clock->mono_ms;
        worker->outbox = (struct pool_outbox) { .inbox = -1, .gone = pool->gone_n };
        worker->fills++;
        pool_deadline_set(worker, POOL_KILL_START_LATE);
    } else if (phase != POOL_WORKER_EMPTY) {
        pool_deadline_set(worker, POOL_KILL_NONE);
    } else {
        worker->generation->process_n--;
        timers_disarm(pool->timers, &worker->deadline);
        process_ops->wakeup_remove(worker->channel.fd);
        fd_close_socket(worker->channel.fd);
        channel_end_close(&worker->channel);
        output_close(&worker->output, &worker->lines, worker->pid);
        if (worker->known)
            pool_outbox_drop_inbox(worker);
        if (worker->handle != -1)
            process_ops->handle_close(worker->handle);
        worker->handle = -1;
        worker->pid = 0;
        worker->broken_listener = -1;
        worker->due = worker->killed = POOL_KILL_NONE;
        worker->known = worker->drains = worker->accept_asked = worker->asks_others = false;
        worker->watch = (struct pool_watch) { .repeats = 0 };
    }
}
