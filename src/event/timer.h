/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers: a red-black tree by deadline, and the cached clock that it goes by. The loop of a worker
 * has one tree, the master another, which nothing but a wake-up by SIGALRM drives. A timer is in at
 * most one tree, and has a deadline exactly while it is in it. Nothing here reads a clock or
 * sleeps. */
#pragma once

#include "base/clock.h"

#include <bsd/sys/tree.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Re-arming a loop's timer this near the old deadline leaves it where it is. */
#define TIMER_LAZY_MS 300

struct loop;

struct timer {
    RB_ENTRY(timer) node;
    uint64_t deadline; /* monotonic milliseconds; 0: not set */
    /* called once the timer has left its tree; `loop` is NULL for a timer of the master, which
     * finds its owner with container_of() */
    void (*expired)(struct loop *loop, struct timer *timer);
};

RB_HEAD(timer_tree, timer);

#define TIMERS_NONE UINT64_MAX

struct timers {
    struct timer_tree tree;
    uint64_t soonest;          /* the earliest deadline; TIMERS_NONE without timers */
    const struct clock *clock; /* cached by the owner; timers are set by it */
    const uint64_t *due_by;    /* the time by which they expire; with timer_resolution an earlier
                                  one, because the clock may have been a tick old */
    struct loop *loop;         /* given to `expired`; NULL in the master */
};

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->deadline != 0;
}

/* An empty tree; clock and loop outlive it. */
void timers_init(struct timers *timers, const struct clock *clock, struct loop *loop);
/* Expires in `ms` (at least 1) from the cached time; a set timer is moved, exactly. */
void timers_arm(struct timers *timers, struct timer *timer, uint64_t ms);
/* Expires at this time of the monotonic clock; at least 1 ms after the cached time. */
void timers_arm_at(struct timers *timers, struct timer *timer, uint64_t deadline);
/* May be called on a timer that is not set. */
void timers_disarm(struct timers *timers, struct timer *timer);
/* Milliseconds to the earliest deadline, 0 when it has passed, -1 without timers. */
static inline int timers_wait(const struct timers *timers)
{
    uint64_t now = *timers->due_by;

    if (timers->soonest <= now)
        return 0;
    if (timers->soonest - now <= INT_MAX)
        return (int)(timers->soonest - now);
    return timers->soonest == TIMERS_NONE ? -1 : INT_MAX;
}

/* Runs timers that have expired by the cached time, of which there are some. */
void timers_expire(struct timers *timers);

/* Runs what has expired by the cached time; of many a part, and then timers_wait() is 0. */
static inline void timers_run(struct timers *timers)
{
    if (timers->soonest <= *timers->due_by)
        timers_expire(timers);
}

/* Asserts that the tree is in order and holds set timers alone; returns how many. */
size_t timers_check(const struct timers *timers);

/* A loop's timers are set with lazy re-arming; timers_wait() and timers_run() serve them as
 * well. */

/* Expires in `ms` (at least 1) from the loop's cached time; a set timer is moved. */
void timer_set(struct loop *loop, struct timer *timer, uint64_t ms);
/* May be called on a timer that is not set. */
void timer_del(struct loop *loop, struct timer *timer);
