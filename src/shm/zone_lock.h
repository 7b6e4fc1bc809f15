/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks in the memory of a zone, whose word names its acquisition: by the holder's slot and serial,
 * and a number. Any process with the zone can write the word: it is read as input, and a lock may
 * be taken from its holder at any time. A holder that stood still may go on afterwards, so that it
 * looks at its lock before each store that publishes something, and gives up.
 *
 * Stores that other processes may see are releasing ones: the compiler keeps their order. */
#pragma once

#include "shm/slot.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZONE_LOAD(object) atomic_load_explicit(&(object), memory_order_acquire)
#define ZONE_STORE(object, value) atomic_store_explicit(&(object), (value), memory_order_release)

/* The word of a lock. 0: free. */
struct zone_lock {
    _Atomic uint64_t word;
};

/* A lock that this process holds. */
struct zone_hold {
    struct zone_lock *lock; /* NULL: none */
    uint64_t word;          /* the lock's, while this process holds it */
    uint32_t stood;         /* incarnation of the robbed holder; 0: none */
};

/* A process's state for locking in one zone. */
struct zone_locker {
    struct slot_id id; /* this process */
    /* serial of the last dead worker, by slot, whose locks are free; 0: none. Only the master
     * writes here */
    const _Atomic uint32_t *released;
    uint32_t acquired;     /* locks, ever; it wraps */
    uint32_t impatient_at; /* `acquired` when it last took a lock from somebody */
    uint32_t patience;     /* naps before it does that again */
    uint32_t taken;        /* locks whose holders stood still */
};

enum zone_lock_state {
    ZONE_LOCK_BUSY,  /* another process has it */
    ZONE_LOCK_FREE,  /* the lock was free, and is held now */
    ZONE_LOCK_LEFT,  /* the holder is dead, and it is locked: what it guards is to be repaired */
    ZONE_LOCK_TAKEN, /* taken from a holder that stood still, `stood`: the same */
};

/* Waits for as long as the holder goes on, at most for ten times as long as for one that stands
 * still; never BUSY. */
enum zone_lock_state zone_lock(
    struct zone_locker *locker, struct zone_lock *lock, struct zone_hold *hold);
enum zone_lock_state zone_lock_try(
    struct zone_locker *locker, struct zone_lock *lock, struct zone_hold *hold);
/* Shows that the holder goes on, in long works; false: the lock was taken from it. */
bool zone_lock_renew(struct zone_locker *locker, struct zone_hold *hold);
/* Unlocks; false: the lock was taken meanwhile. */
bool zone_lock_release(struct zone_hold *hold);
/* Whether the incarnation, a slot_incarnation(), is this process's or has died. */
bool zone_lock_is_past(const struct zone_locker *locker, uint32_t incarnation);

static inline bool zone_lock_holds(const struct zone_hold *hold)
{
    return ZONE_LOAD(hold->lock->word) == hold->word;
}
