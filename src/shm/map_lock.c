/* SPDX-License-Identifier: BSD-2-Clause */
/* The locks of a map: a word that names its acquisition, by the holder's slot and serial and a
 * number. The word is input: whoever waits for a word that does not change takes the lock in the
 * end, at once where it names nobody who lives. So nobody waits long, whatever is written there,
 * and no holder is sure of its lock: it looks before it publishes anything.
 *
 * Waiting is napping, without a call to wake anybody: a lock is held for a microsecond, and no call
 * of the kernel is given a word that others write. Naps are counted, not time: a process that is
 * itself not run does not blame the holder. */
#include "shm/map_private.h"

#include <assert.h>
#include <time.h>

#define SPINS 200
#define SHORT_NAPS 16 /* naps of 20 us, before those of 1 ms */
#define SHORT_NAP_NS 20000
#define LONG_NAP_NS 1000000
/* Naps before a lock is taken from a holder that stands still: 100 ms at first. They are a quarter
 * after each such lock, and the most again after many locks. */
#define PATIENCE_MOST (SHORT_NAPS + 100)
#define PATIENCE_LEAST (SHORT_NAPS + 4)
#define CALM_LOCKS 10000
/* How many times as long a holder is waited for that goes on, or others that get the lock first. */
#define WAITS_MOST 10

#define NUMBER_MASK ((1u << (32 - SLOT_BITS)) - 1)
#define SLOT_MASK ((1u << SLOT_BITS) - 1)

static_assert(SLOT_HALVES * SLOT_MAX == 1 << SLOT_BITS, "any slot in a word is an index");

static uint64_t next_word(struct shm_map *map)
{
    uint32_t number = ++map->acquired & NUMBER_MASK;

    assert(slot_id_is_valid(map->id));
    return (uint64_t)map->id.serial << 32 | number << SLOT_BITS | map->id.slot;
}

static struct slot_id holder_of(uint64_t word)
{
    return (
        struct slot_id) { .slot = (uint32_t)word & SLOT_MASK, .serial = (uint32_t)(word >> 32) };
}

/* Whether the word names nobody who can still hold the lock: this process knows what it holds. */
static bool is_left(const struct shm_map *map, uint64_t word)
{
    struct slot_id holder = holder_of(word);
    uint32_t released = SHM_LOAD(map->header->released[holder.slot]);

    if (holder.serial == 0 || (holder.slot == map->id.slot && holder.serial == map->id.serial))
        return true;
    return released != 0 && (int32_t)(released - holder.serial) >= 0;
}

bool shm_map_lock_is_past(const struct shm_map *map, uint32_t incarnation)
{
    const uint32_t bits = INCARNATION_BITS - SLOT_BITS;
    uint32_t released = SHM_LOAD(map->header->released[incarnation & SLOT_MASK]);
    uint32_t since = (released - (incarnation >> SLOT_BITS)) & ((1u << bits) - 1);

    return incarnation == 0 || incarnation == slot_incarnation(map->id) ||
           (released != 0 && since < 1u << (bits - 1));
}

/* Replaces a word that was seen; false when it has changed meanwhile. */
static bool take(
    struct shm_map *map, struct shm_map_lock *lock, uint64_t seen, struct shm_map_hold *hold)
{
    uint64_t word = next_word(map);

    if (!atomic_compare_exchange_strong_explicit(
            &lock->word, &seen, word, memory_order_acquire, memory_order_relaxed))
        return false;
    *hold = (struct shm_map_hold) { .lock = lock, .word = word };
    return true;
}

enum shm_map_lock_state shm_map_lock_try(
    struct shm_map *map, struct shm_map_lock *lock, struct shm_map_hold *hold)
{
    uint64_t seen = atomic_load_explicit(&lock->word, memory_order_relaxed);

    assert(hold->lock == NULL);
    if (seen == 0)
        return take(map, lock, 0, hold) ? SHM_MAP_LOCKED : SHM_MAP_BUSY;
    return is_left(map, seen) && take(map, lock, seen, hold) ? SHM_MAP_LEFT : SHM_MAP_BUSY;
}

static void nap(uint32_t naps)
{
    struct timespec time = { .tv_nsec = naps < SHORT_NAPS ? SHORT_NAP_NS : LONG_NAP_NS };

    nanosleep(&time, NULL); /* a signal shortens it, which is as well */
}

/* Takes the lock from a holder that stands still; false when it does not. */
static bool rob(
    struct shm_map *map, struct shm_map_lock *lock, uint64_t seen, struct shm_map_hold *hold)
{
    if (!take(map, lock, seen, hold))
        return false;
    hold->stood = slot_incarnation(holder_of(seen));
    map->patience = map->patience / 4 > PATIENCE_LEAST ? map->patience / 4 : PATIENCE_LEAST;
    map->impatient_at = map->acquired;
    map->mended.taken++;
    return true;
}

static enum shm_map_lock_state wait_for(
    struct shm_map *map, struct shm_map_lock *lock, struct shm_map_hold *hold)
{
    uint64_t seen = SHM_LOAD(lock->word), before;
    uint32_t still = 0;

    if (map->patience == 0 || map->acquired - map->impatient_at > CALM_LOCKS)
        map->patience = PATIENCE_MOST;
    for (uint32_t naps = 0;; naps++) {
        enum shm_map_lock_state state;

        for (int i = 0; i < SPINS && SHM_LOAD(lock->word) != 0; i++)
            ;
        state = shm_map_lock_try(map, lock, hold);
        if (state != SHM_MAP_BUSY)
            return state;
        before = seen;
        seen = SHM_LOAD(lock->word);
        still = seen == before ? still + 1 : 0;
        if (seen != 0 && (still > map->patience || naps > WAITS_MOST * map->patience) &&
            rob(map, lock, seen, hold))
            return SHM_MAP_TAKEN;
        nap(naps);
    }
}

enum shm_map_lock_state shm_map_lock(
    struct shm_map *map, struct shm_map_lock *lock, struct shm_map_hold *hold)
{
    enum shm_map_lock_state state = shm_map_lock_try(map, lock, hold);

    return state != SHM_MAP_BUSY ? state : wait_for(map, lock, hold);
}

bool shm_map_lock_renew(struct shm_map *map, struct shm_map_hold *hold)
{
    uint64_t held = hold->word, word = next_word(map);

    assert(hold->lock != NULL);
    if (!atomic_compare_exchange_strong_explicit(
            &hold->lock->word, &held, word, memory_order_acq_rel, memory_order_relaxed))
        return false;
    hold->word = word;
    return true;
}

void shm_map_lock_release(struct shm_map_hold *hold)
{
    uint64_t held = hold->word;

    assert(hold->lock != NULL && held != 0);
    atomic_compare_exchange_strong_explicit(
        &hold->lock->word, &held, 0, memory_order_release, memory_order_relaxed);
    *hold = (struct shm_map_hold) { .lock = NULL };
}
