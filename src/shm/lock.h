/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock in shared memory that is owned by a worker slot, not by a pid: pids are used again, and
 * the master must be able to take a dead worker's lock back without guessing. A process only tries
 * the lock and never waits for it. The owner is one word, which tells a holder that turns (acquires
 * again) from one that stands still: whoever finds it standing still for too long takes it. */
#pragma once

#include "shm/slot.h"

struct shm_lock {
    _Atomic uint64_t owner; /* a word of shm_lock_word(); 0: free */
};

/* The turn's bits of an owner's word, between those of the slot and of the serial. */
#define SHM_LOCK_TURN_BITS (32 - SLOT_BITS)

/* Returns the word of a holder in its turn of this number, of which the lowest bits count. */
static inline uint64_t shm_lock_word(struct slot_id id, uint32_t turn)
{
    assert(slot_id_is_valid(id));
    return (uint64_t)id.serial << 32 | (uint64_t)(turn << SLOT_BITS) | id.slot;
}

/* Returns the holder that a word names; any process may have written it. */
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

/* Acquires a free lock; returns false if any process, even the caller, has it. */
bool shm_lock_try(struct shm_lock *lock, uint64_t word);
/* Acquires the lock from whoever has it in this turn; returns false if the owner has changed. */
bool shm_lock_take(struct shm_lock *lock, uint64_t from, uint64_t word);
/* Releases a lock that the caller has acquired, unless another process has taken it since. */
void shm_lock_release(struct shm_lock *lock, uint64_t word);
/* Called by the master: releases the lock of a dead worker; returns whether the worker had it. */
bool shm_lock_reclaim(struct shm_lock *lock, struct slot_id dead);
