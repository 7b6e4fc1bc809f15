/* SPDX-License-Identifier: BSD-2-Clause */
#include "event/timer.h"

#include "event/loop.h"

#include <limits.h>

static int compare(const struct fb_timer *a, const struct fb_timer *b)
{
    if (a->deadline != b->deadline)
        return a->deadline < b->deadline ? -1 : 1;
    return (a > b) - (a < b);
}

RB_GENERATE_INTERNAL(fb_timers, fb_timer, node, compare, static __attribute__((unused)))

void fb_timer_set(struct fb_loop *loop, struct fb_timer *timer, uint64_t ms)
{
    uint64_t deadline = loop->clock.mono_ms + (ms > 0 ? ms : 1);

    if (fb_timer_is_set(timer)) {
        uint64_t old = timer->deadline;
        uint64_t apart = old > deadline ? old - deadline : deadline - old;

        if (apart < FB_TIMER_LAZY_MS)
            return;
        RB_REMOVE(fb_timers, &loop->timers, timer);
    }
    timer->deadline = deadline;
    RB_INSERT(fb_timers, &loop->timers, timer);
}

void fb_timer_del(struct fb_loop *loop, struct fb_timer *timer)
{
    if (!fb_timer_is_set(timer))
        return;
    RB_REMOVE(fb_timers, &loop->timers, timer);
    timer->deadline = 0;
}

int fb_timers_distance(const struct fb_loop *loop)
{
    const struct fb_timer *first = RB_MIN(fb_timers, (struct fb_timers *)&loop->timers);
    uint64_t now = loop->clock.mono_ms;

    if (first == NULL)
        return -1;
    if (first->deadline <= now)
        return 0;
    return first->deadline - now > INT_MAX ? INT_MAX : (int)(first->deadline - now);
}

void fb_timers_expire(struct fb_loop *loop)
{
    struct fb_timer *timer;

    /* ends although handlers set timers: what they set lies at least 1 ms after the cached time */
    while ((timer = RB_MIN(fb_timers, &loop->timers)) != NULL &&
           timer->deadline <= loop->clock.mono_ms) {
        fb_timer_del(loop, timer);
        timer->expired(loop, timer);
    }
}
