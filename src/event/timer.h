/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers: a red-black tree by deadline. */
#pragma once

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stdint.h>

/* Re-arming this near the old deadline leaves the timer where it is. */
#define FB_TIMER_LAZY_MS 300

struct fb_loop;

struct fb_timer {
    RB_ENTRY(fb_timer) node;
    uint64_t deadline; /* monotonic milliseconds; 0: not set */
    void (*expired)(struct fb_loop *loop, struct fb_timer *timer);
};

RB_HEAD(fb_timers, fb_timer);

static inline bool fb_timer_is_set(const struct fb_timer *timer)
{
    return timer->deadline != 0;
}

/* Expires in `ms` (at least 1) from the loop's cached time; a set timer is moved. */
void fb_timer_set(struct fb_loop *loop, struct fb_timer *timer, uint64_t ms);
/* May be called on a timer that is not set. */
void fb_timer_del(struct fb_loop *loop, struct fb_timer *timer);

/* Milliseconds to the earliest deadline, 0 when it has passed, -1 without timers. */
int fb_timers_distance(const struct fb_loop *loop);
/* Runs what has expired by the loop's cached time. */
void fb_timers_expire(struct fb_loop *loop);
