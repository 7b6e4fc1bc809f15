/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks in a zone's memory. The word of a lock is input: a process waiting for an unchanged word
 * takes the lock in the end, at once where the word names no living process. So waits are short,
 * whatever the word, and no holder is sure of the lock: holders look before publishing. Waiting is
 * napping, without a wake-up call: a lock is held for a microsecond, and the kernel is not given a
 * word writable by other processes. Naps are counted, not time: a process not run itself does not
 * blame the holder. */
#include "shm/zone_lock.h"

#include "base/compiler.h"

#include <time.h>

#define SPINS 200
#define SHORT_NAPS 16 /* naps of 20 us, before those of 1 ms */
#define SHORT_NAP_NS 20000
#define LONG_NAP_NS 1000000
/* Naps before a lock is taken from a still holder: 100 ms, less after each such lock, for a
 * while. */
#define PATIENCE_MOST (SHORT_NAPS + 100)
#define PATIENCE_LEAST (SHORT_NAPS + 4)
#define CALM_LOCKS 10000
/* Factor for the wait for a holder that goes on, or for competitors that get the lock first. */
#define WAITS_MOST 10

static_assert(SLOT_HALVES * SLOT_MAX == 1 << SLOT_BITS, "any slot in a word is an index");

/* Whether the word names a dead holder, or this process: no process waits for its own lock. */
static bool is_left(const struct zone_locker *locker, uint64_t word)
{
    struct slot_id holder = shm_lock_id(word);
    uint32_t released = ZONE_LOAD(locker->released[holder.slot]);

    if (holder.serial == 0 ||
        (holder.slot == locker->id.slot && holder.serial == locker->id.serial))
        return true;
    return released != 0 && (int32_t)(released - holder.serial) >= 0;
}

bool zone_lock_is_past(const struct zone_locker *locker, uint32_t incarnation)
{
    const uint32_t bits = INCARNATION_BITS - SLOT_BITS;
    uint32_t released = ZONE_LOAD(locker->released[incarnation & ((1u << SLOT_BITS) - 1)]);
    uint32_t since = (released - (incarnation >> SLOT_BITS)) & ((1u << bits) - 1);

    return incarnation == 0 || incarnation == slot_incarnation(locker->id) ||
           (released != 0 && since < 1u << (bits - 1));
}

/* Replaces the word `seen`; false when the word has changed meanwhile. */
static bool take(
    struct zone_locker *locker, struct shm_lock *lock, uint64_t seen, struct zone_hold *hold)
{
    uint64_t word = shm_lock_word(locker->id, ++locker->acquired);

    if (!shm_lock_take(lock, seen, word))
        return false;
    *hold = (struct zone_hold) { .lock = lock, .word = word };
    return true;
}

static ALWAYS_INLINE enum zone_lock_state try_lock(
    struct zone_locker *locker, struct shm_lock *lock, struct zone_hold *hold)
{
    uint64_t seen = shm_lock_owner(lock);

    assert(hold->lock == NULL);
    if (seen == 0)
        return take(locker, lock, 0, hold) ? ZONE_LOCK_FREE : ZONE_LOCK_BUSY;
    return is_left(locker, seen) && take(locker, lock, seen, hold) ? ZONE_LOCK_LEFT
                                                                   : ZONE_LOCK_BUSY;
}

enum zone_lock_state zone_lock_try(
    struct zone_locker *locker, struct shm_lock *lock, struct zone_hold *hold)
{
    return try_lock(locker, lock, hold);
}

static void nap(uint32_t naps)
{
    struct timespec time = { .tv_nsec = naps < SHORT_NAPS ? SHORT_NAP_NS : LONG_NAP_NS };

    nanosleep(&time, NULL); /* a signal may shorten the nap */
}

static COLD enum zone_lock_state wait_for_lock(
    struct zone_locker *locker, struct shm_lock *lock, struct zone_hold *hold)
{
    uint64_t seen = ZONE_LOAD(lock->word), before;
    uint32_t still = 0, quarter;

    assert(hold->lock == NULL);
    if (locker->patience == 0 || locker->acquired - locker->impatient_at > CALM_LOCKS)
        locker->patience = PATIENCE_MOST;
    for (uint32_t naps = 0;; naps++) {
        enum zone_lock_state state;

        for (int i = 0; i < SPINS && ZONE_LOAD(lock->word) != 0; i++)
            ;
        state = zone_lock_try(locker, lock, hold);
        if (state != ZONE_LOCK_BUSY)
            return state;
        before = seen;
        seen = ZONE_LOAD(lock->word);
        still = seen == before ? still + 1 : 0;
        if (seen != 0 && (still > locker->patience || naps > WAITS_MOST * locker->patience) &&
            take(locker, lock, seen, hold)) {
            hold->stood = slot_incarnation(shm_lock_id(seen));
            quarter = locker->patience / 4;
            locker->patience = quarter > PATIENCE_LEAST ? quarter : PATIENCE_LEAST;
            locker->impatient_at = locker->acquired;
            locker->taken++;
            return ZONE_LOCK_TAKEN;
        }
        nap(naps);
    }
}

enum zone_lock_state zone_lock(
    struct zone_locker *locker, struct shm_lock *lock, struct zone_hold *hold)
{
    enum zone_lock_state state = try_lock(locker, lock, hold);

    return state != ZONE_LOCK_BUSY ? state : wait_for_lock(locker, lock, hold);
}

bool zone_lock_renew(struct zone_locker *locker, struct zone_hold *hold)
{
    uint64_t held = hold->word, word = shm_lock_word(locker->id, ++locker->acquired);

    assert(hold->lock != NULL);
    if (!atomic_compare_exchange_strong_explicit(
            &hold->lock->word, &held, word, memory_order_acq_rel, memory_order_relaxed))
        return false;
    hold->word = word;
    return true;
}

bool zone_lock_goes_on(struct zone_locker *locker, struct zone_hold *hold, uint32_t n)
{
    assert(hold->lock != NULL);
    return n % ZONE_LOCK_RENEW_EVERY == ZONE_LOCK_RENEW_EVERY - 1 ? zone_lock_renew(locker, hold)
                                                                  : zone_lock_holds(hold);
}

bool zone_lock_release(struct zone_hold *hold)
{
    bool released;

    assert(hold->lock != NULL && hold->word != 0);
    released = shm_lock_release(hold->lock, hold->word);
    *hold = (struct zone_hold) { .lock = NULL };
    return released;
}
