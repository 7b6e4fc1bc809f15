/* SPDX-License-Identifier: BSD-2-Clause */
/* The accept mutex as one worker takes part in it: its turns as the holder, and what it has seen
 * of the holder while it waits.
 *
 * Nobody waits for a holder that stands still: whoever has seen the same owner for the bound takes
 * the mutex, whatever the owner's word says, and after twice the bound from one that turns, if no
 * other was seen. The word is memory that any worker can write: an owner that cannot be, and one
 * that lets nobody else turn, are damage, which is found and reported, and never asserted on.
 * Several workers that each think that they hold it do no harm. */
#pragma once

#include "shm/lock.h"

struct shared;

struct accept_mutex {
    struct shared *shared;
    struct shm_lock *lock;
    struct slot_id id;
    uint64_t bound_ms;    /* time after which a holder that stands still loses it */
    uint32_t turn;        /* counts our turns as the holder */
    uint64_t word;        /* ours, of the latest turn */
    uint64_t taken_ms;    /* when that turn began */
    unsigned robbed;      /* turns in a row that another has ended before the bound */
    uint64_t seen;        /* the owner that was seen last, while another had it */
    uint64_t since_ms;    /* when that owner was seen first */
    struct slot_id rival; /* the holder that was seen last */
    uint64_t rival_ms;    /* since when no other was seen, nor the mutex free */
    uint64_t damaged_ms;  /* when damage was reported last; 0: never */
};

enum accept_mutex_status {
    ACCEPT_MUTEX_BUSY,     /* another worker's, or left to others */
    ACCEPT_MUTEX_DUE,      /* busy, and to be taken with accept_mutex_rob() if clients wait */
    ACCEPT_MUTEX_ACQUIRED, /* ours for a turn */
    ACCEPT_MUTEX_DAMAGED,  /* ours for a turn, and its owner could not be: to be reported */
};

/* Begins to take part for the worker of this slot. `soon`: the bound is short, so that hardly a
 * client waits for a holder that stands still. */
void accept_mutex_init(struct accept_mutex *mutex, struct shared *shared, struct slot_id id,
    uint64_t delay_ms, bool soon);
/* Acquires the mutex if it is free; `now` is the loop's time. With `leaves` a free mutex is left to
 * others. It is due when its holder stands still, or when nobody takes what is left: that holder
 * may wait for clients, and who takes the mutex then makes two of one that is woken. */
enum accept_mutex_status accept_mutex_try(struct accept_mutex *mutex, uint64_t now, bool leaves);
/* Takes the mutex from its holder, after a try that has found the mutex due. */
enum accept_mutex_status accept_mutex_rob(struct accept_mutex *mutex, uint64_t now);
/* After a try that found it busy: the time until the holder that was seen loses it, if no other is
 * seen; at least 1. */
uint64_t accept_mutex_wait(const struct accept_mutex *mutex, uint64_t now);
/* Ends our turn: gives the mutex back, if it is still ours. */
void accept_mutex_release(struct accept_mutex *mutex, uint64_t now);

static inline bool accept_mutex_is_free(const struct accept_mutex *mutex)
{
    return shm_lock_owner(mutex->lock) == 0;
}

/* Whether another worker has taken the mutex in our turn. One that somebody has freed is not
 * lost. */
static inline bool accept_mutex_is_lost(const struct accept_mutex *mutex)
{
    uint64_t owner = shm_lock_owner(mutex->lock);

    return owner != mutex->word && owner != 0;
}
