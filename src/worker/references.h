/* SPDX-License-Identifier: BSD-2-Clause */
/* References of connections and of workers, the same in every worker: from the highest bits the
 * incarnation of a worker's slot, and a name. A worker's name is the rest of its serial, so that
 * 2^32 lives of a slot differ. A connection has a greater name, which cannot be guessed. A
 * reference without a target is old, or a guess. */
#pragma once

#include "session/use.h"
#include "worker/worker.h"

#define REFERENCES_NAME_BITS (64 - INCARNATION_BITS)
#define REFERENCES_NAME(ref) ((ref) & ((UINT64_C(1) << REFERENCES_NAME_BITS) - 1))
/* Bits of a serial in an incarnation, and in a worker's name. */
#define REFERENCES_SERIAL_LOW_BITS (INCARNATION_BITS - SLOT_BITS)
#define REFERENCES_SERIAL_HIGH_BITS (32 - REFERENCES_SERIAL_LOW_BITS)

static inline uint32_t references_incarnation(fb_ref ref)
{
    return (uint32_t)(ref >> REFERENCES_NAME_BITS);
}

static inline bool references_is_worker(fb_ref ref)
{
    return ref != 0 && REFERENCES_NAME(ref) >> REFERENCES_SERIAL_HIGH_BITS == 0;
}

static inline fb_ref references_of_slot(struct slot_id id)
{
    assert(slot_id_is_valid(id));
    return (fb_ref)slot_incarnation(id) << REFERENCES_NAME_BITS |
           id.serial >> REFERENCES_SERIAL_LOW_BITS;
}

static inline uint32_t references_own(const struct worker *worker)
{
    return slot_incarnation(worker->heritage->slot);
}

static inline fb_ref references_own_worker(const struct worker *worker)
{
    return references_of_slot(worker->heritage->slot);
}

/* Finds a living connection of the worker, or NULL. */
static inline struct fb_conn *references_find(struct worker *worker, fb_ref ref)
{
    if (references_incarnation(ref) != references_own(worker))
        return NULL;
    return session_find(&worker->stream, REFERENCES_NAME(ref));
}
