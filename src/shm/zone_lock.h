/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks in shared memory, with a word that names the acquisition: the holder's slot and serial, not
 * a pid, which is reused, and the turn, a number. The master can take a dead worker's lock back
 * without guessing. Any process with the memory can write the word: the word is read as input, no
 * assertion looks at it, and a holder may lose the lock at any time.
 *
 * shm_lock_*() only try, for the accept mutex. zone_lock*() wait for the lock of a zone's data. A
 * holder that stood still may go on afterwards, and so looks at the lock before each publishing
 * store, and gives up. Stores visible to other processes are releasing stores: the compiler keeps
 * the order. */
#pragma once

#include "shm/slot.h"

#include <stddef.h>

#define ZONE_LOAD(object) atomic_load_explicit(&(object), memory_order_acquire)
#define ZONE_STORE(object, value) atomic_store_explicit(&(object), (value), memory_order_release)

struct shm_lock {
    _Atomic uint64_t word; /* a word of shm_lock_word(); 0: free */
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

static inline uint64_t shm_lock_owner(const struct shm_lock *lock)
{
    return atomic_load_explicit(&lock->word, memory_order_relaxed);
}

/* Acquires the lock with the word `from`, 0 if free; false if the word has changed. */
static inline bool shm_lock_take(struct shm_lock *lock, uint64_t from, uint64_t word)
{
    return atomic_compare_exchange_strong_explicit(
        &lock->word, &from, word, memory_order_acquire, memory_order_relaxed);
}

/* Releases the caller's lock; false: a process has taken the lock since. */
static inline bool shm_lock_release(struct shm_lock *lock, uint64_t word)
{
    return atomic_compare_exchange_strong_explicit(
        &lock->word, &word, 0, memory_order_release, memory_order_relaxed);
}

/* Called by the master: releases the lock of a dead worker; returns whether the worker had it. */
static inline bool shm_lock_reclaim(struct shm_lock *lock, struct slot_id dead)
{
    uint64_t owner = shm_lock_owner(lock);
    struct slot_id id = shm_lock_id(owner);

    assert(slot_id_is_valid(dead));
    return id.slot == dead.slot && id.serial == dead.serial &&
           atomic_compare_exchange_strong(&lock->word, &owner, 0);
}

/* Steps of a long work between two renewals of its lock. */
#define ZONE_LOCK_RENEW_EVERY 4096

/* A lock that this process holds. */
struct zone_hold {
    struct shm_lock *lock; /* NULL: none */
    uint64_t word;         /* the lock's, while this process holds it */
    uint32_t stood;        /* incarnation of the robbed holder; 0: none */
};

/* A process's state for locks in a zone. */
struct zone_locker {
    struct slot_id id; /* this process */
    /* by slot: the last dead serial, written by the master only; 0: none */
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
    ZONE_LOCK_TAKEN, /* taken from the holder `stood`, standing still; as LEFT */
};

/* Waits while the holder goes on, at most ten times as long as for a still holder; never BUSY. */
enum zone_lock_state zone_lock(
    struct zone_locker *locker, struct shm_lock *lock, struct zone_hold *hold);
enum zone_lock_state zone_lock_try(
    struct zone_locker *locker, struct shm_lock *lock, struct zone_hold *hold);
/* Shows that the holder goes on, in long works; false: the lock was taken. */
bool zone_lock_renew(struct zone_locker *locker, struct zone_hold *hold);
/* The same, for step n of a long work: renews now and then. */
bool zone_lock_goes_on(struct zone_locker *locker, struct zone_hold *hold, uint32_t n);
/* Unlocks; false: the lock was taken meanwhile. */
bool zone_lock_release(struct zone_hold *hold);
/* Whether the incarnation, a slot_incarnation(), is this process's or has died. */
bool zone_lock_is_past(const struct zone_locker *locker, uint32_t incarnation);

static inline bool zone_lock_holds(const struct zone_hold *hold)
{
    return ZONE_LOAD(hold->lock->word) == hold->word;
}
