/* SPDX-License-Identifier: BSD-2-Clause */
/* Tries the accept mutex, and takes the mutex from a stalled holder, judged by the worker's record
 * of the owner: no other process has to help. */
#include "worker/accept_mutex.h"

#include "shm/shared.h"

#include <assert.h>

/* Bounds for a holder that does not turn; less where accept_mutex_delay is short. */
#define BOUND_MAX_MS 1000
#define SOON_MS 20
/* Bounds for a holder that turns without leaving the mutex to a rival. */
#define ONLY_HOLDER_BOUNDS 2
/* Our turns in a row that are taken from us at once, and the mutex is damaged. */
#define ROBBED_MOST 3

void accept_mutex_init(struct accept_mutex *mutex, struct shared *shared, struct slot_id id,
    uint64_t delay_ms, bool soon)
{
    uint64_t most = soon ? SOON_MS : BOUND_MAX_MS;

    assert(delay_ms > 0);
    *mutex = (struct accept_mutex) {
        .shared = shared,
        .lock = &shared->common->accept_mutex,
        .id = id,
        .bound_ms = delay_ms < most / 2 ? 2 * delay_ms : most,
        .word = shm_lock_word(id, 0),
        .seen = shm_lock_word(id, 0),
    };
}

#define NOBODY ((struct slot_id) { .serial = 0 })

static bool is_same_slot(struct slot_id a, struct slot_id b)
{
    return a.slot == b.slot && a.serial == b.serial;
}

/* Takes the mutex from `owner`, 0 for a free mutex, for one turn. */
static bool take_mutex(struct accept_mutex *mutex, uint64_t owner, uint64_t now)
{
    uint64_t word = shm_lock_word(mutex->id, ++mutex->turn);

    if (word == owner) /* somebody has written it before us */
        word = shm_lock_word(mutex->id, ++mutex->turn);
    if (!shm_lock_take(mutex->lock, owner, word))
        return false;
    mutex->word = mutex->seen = word; /* the next holder's was not seen before */
    mutex->taken_ms = now;
    return true;
}

/* The mutex was taken. Reports damage, but not more often than once in the bound. */
static enum accept_mutex_status acquired(struct accept_mutex *mutex, bool damaged, uint64_t now)
{
    if (mutex->robbed >= ROBBED_MOST) {
        mutex->robbed = 0;
        damaged = true;
    }
    if (!damaged || (mutex->damaged_ms != 0 && now - mutex->damaged_ms < mutex->bound_ms))
        return ACCEPT_MUTEX_ACQUIRED;
    mutex->damaged_ms = now;
    return ACCEPT_MUTEX_DAMAGED;
}

/* Notes the owner, or (0) that the mutex is free, and since when. */
static void note_owner(struct accept_mutex *mutex, uint64_t owner, uint64_t now)
{
    struct slot_id holder = shm_lock_id(owner);

    if (owner != mutex->seen)
        mutex->since_ms = now;
    mutex->seen = owner;
    if (owner == 0 || !is_same_slot(holder, mutex->rival))
        mutex->rival_ms = now;
    mutex->rival = holder;
}

/* Whether the holder that was noted has had the mutex for long enough. */
static bool holder_is_due(const struct accept_mutex *mutex, uint64_t now)
{
    return now - mutex->since_ms >= mutex->bound_ms ||
           now - mutex->rival_ms >= ONLY_HOLDER_BOUNDS * mutex->bound_ms;
}

/* A sibling holds the mutex, or the mutex is to be left to siblings. */
static enum accept_mutex_status wait_for_holder(
    struct accept_mutex *mutex, uint64_t owner, uint64_t now)
{
    bool damaged;

    note_owner(mutex, owner, now);
    /* the master frees the slot of a dead worker after its mutex: the owner is made up */
    damaged = owner != 0 && !slot_is_used(mutex->shared, mutex->rival);
    if (damaged && take_mutex(mutex, owner, now))
        return acquired(mutex, true, now);
    return holder_is_due(mutex, now) ? ACCEPT_MUTEX_DUE : ACCEPT_MUTEX_BUSY;
}

enum accept_mutex_status accept_mutex_try(struct accept_mutex *mutex, uint64_t now, bool leaves)
{
    uint64_t owner = shm_lock_owner(mutex->lock);

    if (owner == 0 && !leaves && take_mutex(mutex, 0, now))
        return acquired(mutex, false, now);
    /* forged: this worker's name without a turn */
    if (owner != 0 && is_same_slot(shm_lock_id(owner), mutex->id) && take_mutex(mutex, owner, now))
        return acquired(mutex, true, now);
    return wait_for_holder(mutex, owner, now);
}

enum accept_mutex_status accept_mutex_rob(struct accept_mutex *mutex, uint64_t now)
{
    return take_mutex(mutex, mutex->seen, now) ? acquired(mutex, false, now) : ACCEPT_MUTEX_BUSY;
}

static uint64_t bound_time_left(uint64_t since_ms, uint64_t bound_ms, uint64_t now)
{
    uint64_t passed = now - since_ms;

    return passed < bound_ms ? bound_ms - passed : 1;
}

uint64_t accept_mutex_wait(const struct accept_mutex *mutex, uint64_t now)
{
    uint64_t still = bound_time_left(mutex->since_ms, mutex->bound_ms, now);
    uint64_t only = bound_time_left(mutex->rival_ms, ONLY_HOLDER_BOUNDS * mutex->bound_ms, now);

    return still < only ? still : only;
}

/* Only a worker breaking the rules takes turns that have just begun, but by chance. */
void accept_mutex_release(struct accept_mutex *mutex, uint64_t now)
{
    bool robbed = accept_mutex_is_lost(mutex) && now - mutex->taken_ms < mutex->bound_ms;

    mutex->robbed = robbed ? mutex->robbed + 1 : 0;
    if (!robbed)
        mutex->rival = NOBODY;
    shm_lock_release(mutex->lock, mutex->word);
}
