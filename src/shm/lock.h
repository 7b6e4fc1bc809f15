/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock in shared memory that is owned by a worker slot, not by a pid: pids are used again, and
 * the master must be able to take a dead worker's lock back without guessing. It is only ever
 * tried, and nobody waits for it. */
#pragma once

#include "shm/slot.h"

struct shm_lock {
    _Atomic uint64_t owner; /* serial and slot of the holder; 0: free */
};

/* Takes a free lock; false when it is held, also by the caller itself. */
bool shm_lock_try(struct shm_lock *lock, struct slot_id id);
/* Releases a lock that the caller holds. */
void shm_lock_release(struct shm_lock *lock, struct slot_id id);
/* The master: frees the lock if a dead worker held it; returns whether it did. */
bool shm_lock_reclaim(struct shm_lock *lock, struct slot_id dead);
