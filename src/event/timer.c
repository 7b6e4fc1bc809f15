/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps timers in a tree and runs timers with a deadline passed by the owner's cached clock. */
#include "event/timer.h"

#include "event/loop.h"

/* The most timers run in a turn, when many expire at once. */
#define EXPIRE_A_TURN 256

static int compare_timers(const struct timer *a, const struct timer *b)
{
    if (a->deadline != b->deadline)
        return a->deadline < b->deadline ? -1 : 1;
    return (a > b) - (a < b);
}

RB_GENERATE_INTERNAL(timer_tree, timer, node, compare_timers, static __attribute__((unused)))

void timers_init(struct timers *timers, const struct clock *clock, struct loop *loop)
{
    assert(clock != NULL);
    RB_INIT(&timers->tree);
    timers->soonest = TIMERS_NONE;
    timers->clock = clock;
    timers->due_by = &clock->mono_ms;
    timers->loop = loop;
}

static inline void remove_timer(struct timers *timers, struct timer *timer)
{
    RB_REMOVE(timer_tree, &timers->tree, timer);
    if (timer->deadline == timers->soonest) {
        const struct timer *first = RB_MIN(timer_tree, &timers->tree);

        timers->soonest = first != NULL ? first->deadline : TIMERS_NONE;
    }
    timer->deadline = 0;
}

static inline void insert_timer(struct timers *timers, struct timer *timer, uint64_t deadline)
{
    timer->deadline = deadline;
    RB_INSERT(timer_tree, &timers->tree, timer);
    if (deadline < timers->soonest)
        timers->soonest = deadline;
}

void timers_arm_at(struct timers *timers, struct timer *timer, uint64_t deadline)
{
    uint64_t soonest = *timers->due_by + 1;

    assert(timer->expired != NULL);
    if (timer->deadline != 0)
        timers_disarm(timers, timer);
    insert_timer(timers, timer, deadline > soonest ? deadline : soonest);
    debug_loop(timers->loop, "timer %p set: in %" PRIu64 " ms", (void *)timer,
        timer->deadline - timers->clock->mono_ms);
}

void timers_arm(struct timers *timers, struct timer *timer, uint64_t ms)
{
    timers_arm_at(timers, timer, timers->clock->mono_ms + ms);
}

void timers_disarm(struct timers *timers, struct timer *timer)
{
    if (timer->deadline == 0)
        return;
    debug_loop(timers->loop, "timer %p deleted: %" PRId64 " ms were left", (void *)timer,
        (int64_t)(timer->deadline - timers->clock->mono_ms));
    remove_timer(timers, timer);
}

void timers_expire(struct timers *timers)
{
    for (int n = 0; n < EXPIRE_A_TURN && timers->soonest <= *timers->due_by; n++) {
        struct timer *timer = RB_MIN(timer_tree, &timers->tree);

        debug_loop(timers->loop, "timer %p expires: %" PRIu64 " ms late", (void *)timer,
            timers->clock->mono_ms - timer->deadline);
        remove_timer(timers, timer);
        timer->expired(timers->loop, timer);
    }
}

size_t timers_check(const struct timers *timers)
{
    struct timer *timer, *before = NULL;
    size_t n = 0;

    assert(timers->clock != NULL);
    assert(RB_EMPTY(&timers->tree) == (timers->soonest == TIMERS_NONE));
    RB_FOREACH (timer, timer_tree, (struct timer_tree *)&timers->tree) {
        assert(timer->deadline != 0);
        assert(timer->expired != NULL);
        assert(before == NULL ? timer->deadline == timers->soonest
                              : compare_timers(before, timer) < 0);
        before = timer;
        n++;
    }
    return n;
}

void timer_set(struct loop *loop, struct timer *timer, uint64_t ms)
{
    uint64_t deadline = loop->clock.mono_ms + (ms > 0 ? ms : 1), old = timer->deadline;

    if (old != 0) {
        uint64_t apart = old > deadline ? old - deadline : deadline - old;

        if (apart < TIMER_LAZY_MS) {
            debug_loop(loop, "timer %p stays: the new deadline is %" PRIu64 " ms apart",
                (void *)timer, apart);
            return;
        }
        remove_timer(&loop->timers, timer);
    }
    insert_timer(&loop->timers, timer, deadline);
    debug_loop(loop, "timer %p %s: in %" PRIu64 " ms", (void *)timer, old != 0 ? "moved" : "set",
        deadline - loop->clock.mono_ms);
}

void timer_del(struct loop *loop, struct timer *timer)
{
    timers_disarm(&loop->timers, timer);
}
