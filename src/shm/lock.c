/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner of a lock is one word, changed by compare and exchange. No assertion looks at the word:
 * any worker can write it. */
#include "shm/lock.h"

#include <assert.h>

static_assert(SLOT_BITS + SHM_LOCK_TURN_BITS == 32, "slot and turn are half of a word");

bool shm_lock_try(struct shm_lock *lock, uint64_t word)
{
    /* the load goes first: a failed exchange would still take the line from the holder's cache */
    return shm_lock_owner(lock) == 0 && shm_lock_take(lock, 0, word);
}

bool shm_lock_take(struct shm_lock *lock, uint64_t from, uint64_t word)
{
    assert(slot_id_is_valid(shm_lock_id(word)) && from != word);
    return atomic_compare_exchange_strong_explicit(
        &lock->owner, &from, word, memory_order_acquire, memory_order_relaxed);
}

void shm_lock_release(struct shm_lock *lock, uint64_t word)
{
    assert(slot_id_is_valid(shm_lock_id(word)));
    atomic_compare_exchange_strong_explicit(
        &lock->owner, &word, 0, memory_order_release, memory_order_relaxed);
}

bool shm_lock_reclaim(struct shm_lock *lock, struct slot_id dead)
{
    uint64_t owner = shm_lock_owner(lock);
    struct slot_id id = shm_lock_id(owner);

    assert(slot_id_is_valid(dead));
    return id.slot == dead.slot && id.serial == dead.serial &&
           atomic_compare_exchange_strong(&lock->owner, &owner, 0);
}
