/* SPDX-License-Identifier: BSD-2-Clause */
/* The region that master and workers share: mapped before the first fork, it outlives every reload.
 *
 * Each worker writes only the line of its own slot, without locked instructions; only the master
 * assigns slots, and it folds the counters of a dead worker into the totals. */
#pragma once

#include "shm/lock.h"
#include "shm/slot.h"

struct shared {
    uint32_t magic, version; /* the layout's */
    _Atomic uint32_t slot_n; /* no slot beyond has ever been used */
    _Atomic uint32_t folds;  /* odd while the master moves counters, so that readers try again */
    struct counters folded;
    /* half of the slot numbers that this master process uses: they begin at half * SLOT_MAX */
    uint32_t half;
    uint32_t serial; /* the first incarnation of a slot has the serial after this one */
    alignas(CACHE_LINE) struct shm_lock accept_mutex;
    struct slot slots[SLOT_MAX];
};

#define SHARED_MAGIC 0x6662656bu
#define SHARED_VERSION 2u

/* Maps a region that children share; NULL with errno. Pages are touched as slots come into use. */
struct shared *shared_create(void);
void shared_destroy(struct shared **shared);

/* Sets the half of the slot numbers and the first serial, which are 0 at first, before the first
 * slot is acquired. Zones outlive a master process: a slot and serial that a zone remembers must
 * never name another worker. */
void shared_begin(struct shared *shared, uint32_t half, uint32_t serial);
/* The half of a master process that runs beside this one; 0 or 1, whatever a worker has written. */
uint32_t shared_other_half(const struct shared *shared);
/* The greatest serial that a slot has had. */
uint32_t shared_serial(const struct shared *shared);

/* Returns the line of a slot of this region. */
static inline struct slot *shared_slot(struct shared *shared, struct slot_id id)
{
    assert(id.slot < SLOT_HALVES * SLOT_MAX);
    return &shared->slots[id.slot % SLOT_MAX];
}

/* Sums the counters of the living workers and the dead. */
void shared_totals(struct shared *shared, uint64_t totals[COUNTERS]);

/* Asserts what holds of the region while no worker can write to it: in tests, and of a worker
 * without a master. */
void shared_check(struct shared *shared);
