/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock in shared memory, owned by a worker slot, not by a pid: pids are reused, and the master
 * must be able to take a dead worker's lock back without guessing. A process only tries the lock
 * and never waits. The owner is one word, in which a holder that turns (acquires again) differs
 * from a holder that stands still and may lose the lock. No assertion looks at the word: any worker
 * can write there. */
#pragma once

#include "shm/slot.h"

struct shm_lock {
    _Atomic uint64_t owner; /* a word of shm_lock_word(); 0: free */
};

/* Turn bits in an owner's word, between slot and serial. */
#define SHM_LOCK_TURN_BITS (32 - SLOT_BITS)

/* Returns the word of a holder in turn number `turn`, cut to the turn bits. */
static inline uint64_t shm_lock_word(struct slot_id id, uint32_t turn)
{
    assert(slot_id_is_valid(id));
    return (uint64_t)id.serial << 32 | (uint64_t)(turn << SLOT_BITS) | id.slot;
}

/* Returns the holder in a word; any process may have written the word. */
static inline struct slot_id shm_lock_id(uint64_t word)
{
    return (struct slot_id) {
        .slot = (uint32_t)word & ((1u << SLOT_BITS) - 1),
        .serial = (uint32_t)(word >> 32),
    };
}

/* Reads the owner's word. */
static inline uint64_t shm_lock_owner(const struct shm_lock *lock)
{
    return atomic_load_explicit(&lock->owner, memory_order_relaxed);
}

/* Acquires the lock from `from`, a holder's word, or 0 for a free lock; returns false if the owner
 * has changed. */
static inline bool shm_lock_take(struct shm_lock *lock, uint64_t from, uint64_t word)
{
    assert(slot_id_is_valid(shm_lock_id(word)) && from != word);
    return atomic_compare_exchange_strong_explicit(
        &lock->owner, &from, word, memory_order_acquire, memory_order_relaxed);
}

/* Releases the caller's lock, unless another process has taken the lock since. */
static inline void shm_lock_release(struct shm_lock *lock, uint64_t word)
{
    assert(slot_id_is_valid(shm_lock_id(word)));
    atomic_compare_exchange_strong_explicit(
        &lock->owner, &word, 0, memory_order_release, memory_order_relaxed);
}

/* Called by the master: releases the lock of a dead worker; returns whether the worker had it. */
static inline bool shm_lock_reclaim(struct shm_lock *lock, struct slot_id dead)
{
    uint64_t owner = shm_lock_owner(lock);
    struct slot_id id = shm_lock_id(owner);

    assert(slot_id_is_valid(dead));
    return id.slot == dead.slot && id.serial == dead.serial &&
           atomic_compare_exchange_strong(&lock->owner, &owner, 0);
}
