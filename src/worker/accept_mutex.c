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

static bool is_same_slot(struct slot_id a, struct slot_id b)
{
    return a.slot == b.slot && a.serial == b.serial;
}

/* Takes the mutex from `owner`, 0 for a free mutex, for one turn. Reports damage, but not more
 * often than once in the bound. */
static enum accept_mutex_status take_mutex(
    struct accept_mutex *mutex, uint64_t owner, bool damaged, uint64_t now)
{
    uint64_t word = shm_lock_word(mutex->id, ++mutex->turn);

    if (word == owner) /* somebody has written it before us */
        word = shm_lock_word(mutex->id, ++mutex->turn);
    if (!shm_lock_take(mutex->lock, owner, word))
        return ACCEPT_MUTEX_BUSY;
    mutex->word = mutex->seen = word; /* the next holder's was not seen before */
    mutex->taken_ms = now;
    if (mutex->robbed >= ROBBED_MOST) {
        mutex->robbed = 0;
        damaged = true;
    }
    if (!damaged || (mutex->damaged_ms != 0 && now - mutex->damaged_ms < mutex->bound_ms))
        return ACCEPT_MUTEX_ACQUIRED;
    mutex->damaged_ms = now;
    return ACCEPT_MUTEX_DAMAGED;
}

/* The time until the holder that was noted has had the mutex for long enough, or 0. */
static uint64_t time_left(const struct accept_mutex *mutex, uint64_t now)
{
    uint64_t still = now - mutex->since_ms, turning = now - mutex->rival_ms;
    uint64_t most = ONLY_HOLDER_BOUNDS * mutex->bound_ms;

    still = still < mutex->bound_ms ? mutex->bound_ms - still : 0;
    turning = turning < most ? most - turning : 0;
    return still < turning ? still : turning;
}

uint64_t accept_mutex_wait(const struct accept_mutex *mutex, uint64_t now)
{
    uint64_t left = time_left(mutex, now);

    return left > 0 ? left : 1;
}

enum accept_mutex_status accept_mutex_try(struct accept_mutex *mutex, uint64_t now, bool leaves)
{
    uint64_t owner = shm_lock_owner(mutex->lock);
    struct slot_id holder = shm_lock_id(owner);
    bool is_forged = owner != 0 && is_same_slot(holder, mutex->id); /* our name without a turn */
    enum accept_mutex_status status = ACCEPT_MUTEX_BUSY;

    if (is_forged || (owner == 0 && !leaves))
        status = take_mutex(mutex, owner, is_forged, now);
    if (status != ACCEPT_MUTEX_BUSY)
        return status;
    /* a sibling holds the mutex, or the mutex is to be left to siblings */
    if (owner != mutex->seen)
        mutex->since_ms = now;
    mutex->seen = owner;
    if (owner == 0 || !is_same_slot(holder, mutex->rival))
        mutex->rival_ms = now;
    mutex->rival = holder;
    /* the master frees the slot of a dead worker after its mutex: the owner is made up */
    if (owner != 0 && !slot_is_used(mutex->shared, holder))
        status = take_mutex(mutex, owner, true, now);
    return status == ACCEPT_MUTEX_BUSY && time_left(mutex, now) == 0 ? ACCEPT_MUTEX_DUE : status;
}

enum accept_mutex_status accept_mutex_rob(struct accept_mutex *mutex, uint64_t now)
{
    return take_mutex(mutex, mutex->seen, false, now);
}

/* Only a worker breaking the rules takes turns that have just begun, but by chance. */
void accept_mutex_release(struct accept_mutex *mutex, uint64_t now)
{
    bool robbed = accept_mutex_is_lost(mutex) && now - mutex->taken_ms < mutex->bound_ms;

    mutex->robbed = robbed ? mutex->robbed + 1 : 0;
    if (!robbed)
        mutex->rival = (struct slot_id) { .serial = 0 };
    shm_lock_release(mutex->lock, mutex->word);
}
