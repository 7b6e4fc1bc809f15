/* SPDX-License-Identifier: BSD-2-Clause */
/* The accept mutex from the view of one worker. A holder that stands still, or keeps the mutex
 * beyond twice the bound, loses the mutex to any worker. Every worker can write the word in memory:
 * an impossible owner, or an owner blocking all turns, is damage, reported and never asserted on.
 * Several holders at once do no harm. */
#pragma once

#include "shm/zone_lock.h"

struct shared;

struct accept_mutex {
    struct shared *shared;
    struct shm_lock *lock;
    struct slot_id id;
    uint64_t bound_ms;    /* limit for a holder that stands still */
    uint32_t turn;        /* counts our turns as the holder */
    uint64_t word;        /* ours, of the latest turn */
    uint64_t taken_ms;    /* when that turn began */
    unsigned robbed;      /* turns in a row, ended by rivals before the bound */
    uint64_t seen;        /* the latest owner during a wait */
    uint64_t since_ms;    /* when `seen` was seen first */
    struct slot_id rival; /* the latest holder */
    uint64_t rival_ms;    /* since when `rival` has had the mutex */
    uint64_t damaged_ms;  /* when damage was reported last; 0: never */
};

enum accept_mutex_status {
    ACCEPT_MUTEX_BUSY,     /* another worker's, or left to others */
    ACCEPT_MUTEX_DUE,      /* due: to be taken with accept_mutex_rob() if clients wait */
    ACCEPT_MUTEX_ACQUIRED, /* ours for a turn */
    ACCEPT_MUTEX_DAMAGED,  /* ours for a turn, after an impossible owner: to be reported */
};

/* Begins to take part for the worker of this slot; `soon`: with a short bound. */
void accept_mutex_init(struct accept_mutex *mutex, struct shared *shared, struct slot_id id,
    uint64_t delay_ms, bool soon);
/* Acquires the mutex if free and not with `leaves`, at the loop's time `now`. The mutex is due when
 * the holder stands still, or when the mutex was left in vain: the holder may wait for clients, and
 * taking the mutex then wakes two workers for a client. */
enum accept_mutex_status accept_mutex_try(struct accept_mutex *mutex, uint64_t now, bool leaves);
/* Takes the mutex from the holder, after ACCEPT_MUTEX_DUE. */
enum accept_mutex_status accept_mutex_rob(struct accept_mutex *mutex, uint64_t now);
/* After a try in vain: the time until the holder loses the mutex, at least 1. */
uint64_t accept_mutex_wait(const struct accept_mutex *mutex, uint64_t now);
/* Ends our turn: gives the mutex back, if it is still ours. */
void accept_mutex_release(struct accept_mutex *mutex, uint64_t now);

static inline bool accept_mutex_is_free(const struct accept_mutex *mutex)
{
    return shm_lock_owner(mutex->lock) == 0;
}

/* Whether the mutex was taken by a rival in this turn; a freed mutex is not lost. */
static inline bool accept_mutex_is_lost(const struct accept_mutex *mutex)
{
    uint64_t owner = shm_lock_owner(mutex->lock);

    return owner != mutex->word && owner != 0;
}
