/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock in shared memory that is owned by a worker slot, not by a pid: pids are used again, and
 * the master must be able to take a dead worker's lock back without guessing. A process only tries
 * the lock and never waits for it. */
#pragma once

#include "shm/slot.h"

struct shm_lock {
    _Atomic uint64_t owner; /* serial and slot of the holder; 0: free */
};

/* Acquires a free lock; returns false if any process, even the caller, has it. */
bool shm_lock_try(struct shm_lock *lock, struct slot_id id);
/* Releases a lock that the caller has acquired. */
void shm_lock_release(struct shm_lock *lock, struct slot_id id);
/* Called by the master: releases the lock of a dead worker; returns whether the worker had it. */
bool shm_lock_reclaim(struct shm_lock *lock, struct slot_id dead);
