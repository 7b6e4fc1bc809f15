/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers: a red-black tree by deadline, and the cached clock that it goes by. The loop of a worker has
 * one tree, the master another, which nothing but a wake-up by SIGALRM drives. A timer is in at most
 * one tree, and has a deadline exactly while it is in it. Nothing here reads a clock or sleeps. */
#pragma once

#include "base/clock.h"

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Re-arming a loop's timer this near the old deadline leaves it where it is. */
#define FB_TIMER_LAZY_MS 300

struct fb_loop;

struct fb_timer {
    RB_ENTRY(fb_timer) node;
    uint64_t deadline; /* monotonic milliseconds; 0: not set */
    /* called once the timer has left its tree; `loop` is NULL for a timer of the master, which finds
     * its owner with fb_container() */
    void (*expired)(struct fb_loop *loop, struct fb_timer *timer);
};

RB_HEAD(timer_tree, fb_timer);

struct timers {
    struct timer_tree tree;
    const struct fb_clock *clock; /* the owner's, which reads it */
    struct fb_loop *loop;         /* given to `expired`; NULL in the master */
};

static inline bool fb_timer_is_set(const struct fb_timer *timer)
{
    return timer->deadline != 0;
}

/* An empty tree; clock and loop outlive it. */
void timers_init(struct timers *timers, const struct fb_clock *clock, struct fb_loop *loop);
/* Expires in `ms` (at least 1) from the cached time; a set timer is moved, exactly. */
void timers_arm(struct timers *timers, struct fb_timer *timer, uint64_t ms);
/* Expires at this time of the monotonic clock; at least 1 ms after the cached time. */
void timers_arm_at(struct timers *timers, struct fb_timer *timer, uint64_t deadline);
/* May be called on a timer that is not set. */
void timers_disarm(struct timers *timers, struct fb_timer *timer);
/* Milliseconds to the earliest deadline, 0 when it has passed, -1 without timers. */
int timers_wait(const struct timers *timers);
/* Runs what has expired by the cached time. */
void timers_run(struct timers *timers);
/* Asserts that the tree is in order and holds set timers alone; returns how many. */
size_t timers_check(const struct timers *timers);

/* The same for a loop's timers, with lazy re-arming. */

/* Expires in `ms` (at least 1) from the loop's cached time; a set timer is moved. */
void fb_timer_set(struct fb_loop *loop, struct fb_timer *timer, uint64_t ms);
/* May be called on a timer that is not set. */
void fb_timer_del(struct fb_loop *loop, struct fb_timer *timer);
/* Milliseconds to the earliest deadline, 0 when it has passed, -1 without timers. */
int fb_timers_distance(const struct fb_loop *loop);
/* Runs what has expired by the loop's cached time. */
void fb_timers_expire(struct fb_loop *loop);
