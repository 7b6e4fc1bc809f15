/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock in shared memory that is owned by a worker slot, not by a pid: pids are used again, and
 * the master must be able to take a dead worker's lock back without guessing. It is only ever
 * tried, and nobody waits for it. */
#pragma once

#include "shm/slot.h"

struct fb_shm_lock {
    _Atomic uint64_t owner; /* serial and slot of the holder; 0: free */
};

/* Takes a free lock; false when it is held, also by the caller itself. */
bool fb_shm_lock_try(struct fb_shm_lock *lock, struct fb_slot_id id);
/* Releases a lock that the caller holds. */
void fb_shm_lock_release(struct fb_shm_lock *lock, struct fb_slot_id id);
/* The master: frees the lock if a dead worker held it; returns whether it did. */
bool fb_shm_lock_reclaim(struct fb_shm_lock *lock, struct fb_slot_id dead);
