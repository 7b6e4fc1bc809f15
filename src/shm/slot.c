/* SPDX-License-Identifier: BSD-2-Clause */
/* Acquires and releases worker slots. The master reads memory that workers can write: what it reads
 * may decide which slot is used, but never causes an assertion or an error. */
#include "shm/slot.h"

#include "shm/shared.h"

#include <assert.h>
#include <unistd.h>

static_assert(sizeof(struct slot) == CACHE_LINE, "a slot is a line of its own");
static_assert(SLOT_HALVES * SLOT_MAX == 1 << SLOT_BITS, "a slot fits into its bits");

bool slot_acquire(struct shared *shared, struct slot_id *id)
{
    for (uint32_t i = 0; i < SLOT_MAX; i++) {
        struct slot *slot = &shared->slots[i];
        uint32_t serial;

        if (slot->pid != 0)
            continue;
        serial = (i < shared->slot_n ? slot->serial : shared->serial) + 1;
        serial += serial == 0;
        /* made of what was read once: the id is valid whatever workers have written */
        *id = (struct slot_id) {
            .slot = shared->half % SLOT_HALVES * SLOT_MAX + i,
            .serial = serial,
        };
        assert(slot_id_is_valid(*id));
        slot->serial = serial;
        if (i >= shared->slot_n)
            shared->slot_n = i + 1;
        slot->heartbeat.now = CALLBACK_NONE;
        slot->pid = (uint32_t)getpid(); /* ours until the worker writes its own */
        return true;
    }
    return false;
}

bool slot_release(struct shared *shared, struct slot_id id)
{
    struct slot *slot = shared_slot(shared, id);
    bool held = shm_lock_reclaim(&shared->accept_mutex, id);

    assert(slot_id_is_valid(id));
    shared->folds++;
    for (int i = 0; i < COUNTERS; i++) {
        if (i < COUNTER_GAUGES)
            shared->folded.n[i] += slot->counters.n[i];
        slot->counters.n[i] = 0;
    }
    slot->pid = 0;
    shared->folds++;
    return held;
}
