/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner of a lock is one word, changed by compare and exchange; only its owner and the master
 * free it. No assertion looks at the word: another worker can write it. */
#include "shm/lock.h"

#include <assert.h>

static uint64_t owner_of(struct slot_id id)
{
    return (uint64_t)id.serial << 32 | id.slot;
}

bool shm_lock_try(struct shm_lock *lock, struct slot_id id)
{
    uint64_t free = 0;

    assert(slot_id_is_valid(id));
    /* the load goes first: a failed exchange would still take the line from the holder's cache */
    return atomic_load_explicit(&lock->owner, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(
               &lock->owner, &free, owner_of(id), memory_order_acquire, memory_order_relaxed);
}

void shm_lock_release(struct shm_lock *lock, struct slot_id id)
{
    assert(slot_id_is_valid(id));
    atomic_store_explicit(&lock->owner, 0, memory_order_release);
}

bool shm_lock_reclaim(struct shm_lock *lock, struct slot_id dead)
{
    uint64_t owner = owner_of(dead);

    assert(slot_id_is_valid(dead));
    return atomic_compare_exchange_strong(&lock->owner, &owner, 0);
}
