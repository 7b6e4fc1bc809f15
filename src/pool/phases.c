/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases of generations and of workers' records: each is changed here alone, by a step that
 * must be legal. */
#include "pool/pool.h"

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
        [GENERATION_DRAINING] = 1u << GENERATION_SERVING | 1u << GENERATION_CLOSING,
        [GENERATION_CLOSING] = 0,
    };

    assert(role_is(ROLE_MASTER));
    assert((legal[generation->phase] >> phase & 1) != 0);
    generation->phase = phase;
}

void pool_worker_set_phase(struct pool_worker *worker, enum pool_worker_phase phase)
{
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
    if (worker->phase == POOL_WORKER_EMPTY)
        worker->generation->process_n++;
    if (phase == POOL_WORKER_EMPTY)
        worker->generation->process_n--;
    worker->phase = phase;
}
