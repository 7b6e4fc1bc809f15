/* SPDX-License-Identifier: BSD-2-Clause */
/* Tries the accept mutex, and takes it from a holder that stands still. What a worker remembers of
 * the owner is its own: no other process has to do anything for the mutex to heal. */
#include "worker/accept_mutex.h"

#include "shm/shared.h"

#include <assert.h>

/* A holder that has not turned for so long loses the mutex, and earlier if accept_mutex_delay is
 * short. */
#define BOUND_MAX_MS 1000

void accept_mutex_init(
    struct accept_mutex *mutex, struct shared *shared, struct slot_id id, uint64_t delay_ms)
{
    assert(delay_ms > 0);
    *mutex = (struct accept_mutex) {
        .shared = shared,
        .lock = &shared->common->accept_mutex,
        .id = id,
        .bound_ms = delay_ms < BOUND_MAX_MS / 2 ? 2 * delay_ms : BOUND_MAX_MS,
        .word = shm_lock_word(id, 0),
        .seen = shm_lock_word(id, 0),
    };
}

/* Takes the mutex from `owner`, 0 if it is free, for one turn. */
static bool take(struct accept_mutex *mutex, uint64_t owner)
{
    uint64_t word = shm_lock_word(mutex->id, ++mutex->turn);

    if (word == owner) /* somebody has written it before us */
        word = shm_lock_word(mutex->id, ++mutex->turn);
    if (!shm_lock_take(mutex->lock, owner, word))
        return false;
    mutex->word = mutex->seen = word; /* the next holder's was not seen before */
    return true;
}

static bool is_ours(const struct accept_mutex *mutex, uint64_t owner)
{
    struct slot_id id = shm_lock_id(owner);

    return id.slot == mutex->id.slot && id.serial == mutex->id.serial;
}

/* Reports damage, but not more often than once in the bound. */
static enum accept_mutex_status mended(struct accept_mutex *mutex, uint64_t now)
{
    if (mutex->damaged_ms != 0 && now - mutex->damaged_ms < mutex->bound_ms)
        return ACCEPT_MUTEX_ACQUIRED;
    mutex->damaged_ms = now;
    return ACCEPT_MUTEX_DAMAGED;
}

/* The mutex is another's, or to be left to others. */
static enum accept_mutex_status wait_for(struct accept_mutex *mutex, uint64_t owner, uint64_t now)
{
    bool damaged;

    if (owner != mutex->seen) {
        mutex->seen = owner;
        mutex->since_ms = now;
    }
    if (now - mutex->since_ms < mutex->bound_ms)
        return ACCEPT_MUTEX_BUSY;
    /* the master takes the mutex from a dead worker before it frees the slot, so that only an owner
     * that was made up is there when the slot is looked at first */
    damaged = owner != 0 && !slot_is_used(mutex->shared, shm_lock_id(owner));
    if (!take(mutex, owner))
        return ACCEPT_MUTEX_BUSY;
    return damaged ? mended(mutex, now) : ACCEPT_MUTEX_ACQUIRED;
}

enum accept_mutex_status accept_mutex_try(struct accept_mutex *mutex, uint64_t now, bool leaves)
{
    uint64_t owner = shm_lock_owner(mutex->lock);

    if (owner == 0 && !leaves && take(mutex, 0))
        return ACCEPT_MUTEX_ACQUIRED;
    /* our own name without a turn of ours: somebody else has written it */
    if (owner != 0 && is_ours(mutex, owner) && take(mutex, owner))
        return mended(mutex, now);
    return wait_for(mutex, owner, now);
}

uint64_t accept_mutex_wait(const struct accept_mutex *mutex, uint64_t now)
{
    uint64_t passed = now - mutex->since_ms;

    return passed < mutex->bound_ms ? mutex->bound_ms - passed : 1;
}

void accept_mutex_release(struct accept_mutex *mutex)
{
    shm_lock_release(mutex->lock, mutex->word);
}
