/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock in shared memory that is owned by a worker slot, not by a pid: pids are used again, and the
 * master must be able to take a dead worker's lock back without guessing. It is only ever tried. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fb_shm_lock {
    _Atomic uint64_t owner; /* 0: free */
};

/* Who holds a lock: a slot in one of its lives. */
struct fb_slot_id {
    uint32_t slot;
    uint32_t serial; /* counts the slot's lives, from 1 */
};

/* The two in few bits: the serial's come again after 8192 lives of a slot. */
#define FB_SLOT_BITS 11
#define FB_LIFE_BITS 24

static inline uint32_t fb_slot_life(struct fb_slot_id id)
{
    return (id.slot | id.serial << FB_SLOT_BITS) & ((1u << FB_LIFE_BITS) - 1);
}

bool fb_shm_lock_try(struct fb_shm_lock *lock, struct fb_slot_id id);
/* The caller holds it. */
void fb_shm_lock_release(struct fb_shm_lock *lock, struct fb_slot_id id);
/* Frees the lock if a dead worker held it; says whether it did. */
bool fb_shm_lock_reclaim(struct fb_shm_lock *lock, struct fb_slot_id dead);
