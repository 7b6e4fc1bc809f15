/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers: a red-black tree by deadline for each loop, and one for the master, which SIGALRM wakes.
 * A timer is in at most one tree, and has a deadline exactly while in a tree. Never reads a clock
 * or sleeps. */
#pragma once

#include "base/clock.h"

#include <bsd/sys/tree.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define TIMER_LAZY_MS 300

struct loop;

struct timer {
    RB_ENTRY(timer) node;
    uint64_t deadline; /* monotonic milliseconds; 0: not set */
    /* runs when the timer has left the tree; `loop` is NULL for a timer of the master */
    void (*expired)(struct loop *loop, struct timer *timer);
};

RB_HEAD(timer_tree, timer);
#define TIMERS_NONE UINT64_MAX

struct timers {
    struct timer_tree tree;
    uint64_t soonest;          /* the earliest deadline; TIMERS_NONE without timers */
    const struct clock *clock; /* cached by the owner; the base for setting timers */
    const uint64_t *due_by;    /* timers up to here expire; behind the clock by timer_resolution */
    struct loop *loop;         /* for `expired`; NULL in the master */
};

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->deadline != 0;
}

/* Makes an empty tree; clock and loop live longer. */
void timers_init(struct timers *timers, const struct clock *clock, struct loop *loop);
/* Expires in `ms` (at least 1) from the cached time; a set timer is moved, exactly. */
void timers_arm(struct timers *timers, struct timer *timer, uint64_t ms);
/* Expires at this time of the monotonic clock; at least 1 ms after the cached time. */
void timers_arm_at(struct timers *timers, struct timer *timer, uint64_t deadline);
/* Stops a timer, set or not. */
void timers_disarm(struct timers *timers, struct timer *timer);
/* Returns the milliseconds to the earliest deadline, 0 for a past deadline, -1 without timers. */
static inline int timers_wait(const struct timers *timers)
{
    uint64_t now = *timers->due_by;

    if (timers->soonest <= now)
        return 0;
    if (timers->soonest - now <= INT_MAX)
        return (int)(timers->soonest - now);
    return timers->soonest == TIMERS_NONE ? -1 : INT_MAX;
}

/* Runs the expired timers by the cached time; of many a part, and then timers_wait() is 0. */
void timers_expire(struct timers *timers);
static inline void timers_run(struct timers *timers)
{
    if (timers->soonest <= *timers->due_by)
        timers_expire(timers);
}

/* Asserts that the tree is in order and holds set timers alone; returns how many. */
size_t timers_check(const struct timers *timers);
/* Sets or moves a loop's timer: expiry in `ms` (at least 1); a move of less than TIMER_LAZY_MS is
 * none. */
void timer_set(struct loop *loop, struct timer *timer, uint64_t ms);
/* Stops a timer, set or not. */
void timer_del(struct loop *loop, struct timer *timer);
