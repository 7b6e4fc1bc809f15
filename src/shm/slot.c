/* SPDX-License-Identifier: BSD-2-Clause */
/* Acquires and releases worker slots. The master's private records decide on the free slot and on
 * the serial of the next incarnation: of worker-writable memory only the counters are read, as
 * numbers. */
#include "shm/slot.h"

#include "shm/shared.h"

static_assert(sizeof(struct slot) <= 4096, "a slot fits into the smallest page");
static_assert(SLOT_MAX == 1 << PLACE_NUMBER_BITS, "a worker's number fits into the bits");
static_assert(SLOT_HALVES * SLOT_MAX == 1 << SLOT_BITS, "a slot fits into the bits");

static struct slot_record *record_of(struct shared *shared, struct slot_id id)
{
    assert(slot_id_is_valid(id) && id.slot / SLOT_MAX == shared->half);
    return &shared->records[id.slot % SLOT_MAX];
}

bool slot_acquire(struct shared *shared, struct slot_id *id)
{
    uint32_t i = 0;

    while (i < shared->slot_n && shared->records[i].used)
        i++;
    if (i == SLOT_MAX)
        return false;
    if (i == shared->slot_n) {
        shared->records[i].serial = shared->serial;
        shared->slot_n++;
        shared->published->slot_n = shared->slot_n;
    }
    shared->records[i].used = true;
    shared->records[i].serial += shared->records[i].serial == UINT32_MAX ? 2 : 1; /* never 0 */
    *id = (struct slot_id) {
        .slot = shared->half * SLOT_MAX + i,
        .serial = shared->records[i].serial,
    };
    shared->published->slots[i].serial = id->serial;
    shared->published->slots[i].place = PLACE_NONE;
    shared_slot(shared, *id)->heartbeat = (struct heartbeat) {
        .now = CALLBACK_NONE,
        .rate = ticks_rate(&shared->created),
    };
    assert(record_of(shared, *id)->used);
    return true;
}

void slot_set_place(struct shared *shared, struct slot_id id, uint32_t place)
{
    assert(record_of(shared, id)->used && place != PLACE_NONE);
    shared->published->slots[id.slot % SLOT_MAX].place = place;
}

bool slot_release(struct shared *shared, struct slot_id id)
{
    struct shared_published *published = shared->published;
    struct slot *slot = shared_slot(shared, id);
    struct slot_record *record = record_of(shared, id);
    bool held = shm_lock_reclaim(&shared->common->accept_mutex, id);

    assert(record->used && record->serial == id.serial);
    published->folds++;
    for (int i = 0; i < COUNTERS; i++) {
        if (i < COUNTER_GAUGES)
            published->folded.n[i] += slot->counters.n[i];
        slot->counters.n[i] = 0;
    }
    record->used = false;
    published->slots[id.slot % SLOT_MAX].serial = 0;
    published->slots[id.slot % SLOT_MAX].place = PLACE_NONE;
    slot->load = (struct slot_load) { .takes = 0 };
    slot->expiry = (struct slot_expiry) { .end = 0 };
    published->folds++;
    return held;
}

bool slot_is_used(const struct shared *shared, struct slot_id id)
{
    return slot_id_is_valid(id) && id.slot / SLOT_MAX == shared->half &&
           shared->published->slots[id.slot % SLOT_MAX].serial == id.serial;
}
