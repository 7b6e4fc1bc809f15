/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks in the memory of a zone, with a word that names the acquisition: the holder's slot and
 * serial, and a number. Any process with the zone can write the word: the word is read as input,
 * and a holder may lose the lock at any time. A holder that stood still may go on afterwards, so
 * that it looks at the lock before each publishing store, and gives up. Stores visible to other
 * processes are releasing stores: the compiler keeps the order. */
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

/* A process's state for locks in a zone. */
struct zone_locker {
    struct slot_id id; /* this process */
    /* serial of the last dead worker, by slot, whose locks are free; 0: none. Only the master
     * writes here */
    const _Atomic uint32_t *released;
    uint32_t acquired;     /* locks, ever; it wraps */
    uint32_t impatient_at; /* `acquired` at the last taking of a lock from a holder */
    uint32_t patience;     /* naps before the next taking */
    uint32_t taken;        /* locks whose holders stood still */
};

enum zone_lock_state {
    ZONE_LOCK_BUSY,  /* another process has it */
    ZONE_LOCK_FREE,  /* the lock was free, and is held now */
    ZONE_LOCK_LEFT,  /* the holder is dead, and we have the lock: the guarded data need a repair */
    ZONE_LOCK_TAKEN, /* taken from the holder `stood`, standing still: the guarded data need a
                      * repair */
};

/* Waits for as long as the holder goes on, at most for ten times as long as for one that stands
 * still; never BUSY. */
enum zone_lock_state zone_lock(
    struct zone_locker *locker, struct zone_lock *lock, struct zone_hold *hold);
enum zone_lock_state zone_lock_try(
    struct zone_locker *locker, struct zone_lock *lock, struct zone_hold *hold);
/* Shows that the holder goes on, in long works; false: the lock was taken. */
bool zone_lock_renew(struct zone_locker *locker, struct zone_hold *hold);
/* Unlocks; false: the lock was taken meanwhile. */
bool zone_lock_release(struct zone_hold *hold);
/* Whether the incarnation, a slot_incarnation(), is this process's or has died. */
bool zone_lock_is_past(const struct zone_locker *locker, uint32_t incarnation);

static inline bool zone_lock_holds(const struct zone_hold *hold)
{
    return ZONE_LOAD(hold->lock->word) == hold->word;
}
