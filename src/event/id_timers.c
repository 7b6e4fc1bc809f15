/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps timers by id. A timer moved back is a store: it expires at the old time, and is set
 * again. */
#include "event/id_timers.h"

#include "base/check.h"
#include "event/loop.h"

/* A time that never comes; sums with a clock's time do not overflow. */
#define MS_MOST (UINT64_MAX / 2)
#define ID_TIMER_KIND KIND('I', 'T', 'I', 'M')

struct id_timer {
    RB_ENTRY(id_timer) node;
    struct timer timer;
    struct id_timers *owner;
    uint64_t due; /* monotonic ms */
    uint32_t id;
    unsigned kind;
};

static int compare_ids(const struct id_timer *a, const struct id_timer *b)
{
    return (a->id > b->id) - (a->id < b->id);
}

RB_GENERATE_INTERNAL(id_timers, id_timer, node, compare_ids, static __attribute__((unused)))

static struct id_timer *find_timer(struct id_timers *owner, uint32_t id)
{
    struct id_timer wanted = { .id = id };

    return RB_FIND(id_timers, owner, &wanted);
}

static struct id_timer *timer_of(struct timer *expired)
{
    struct id_timer *timer = container_of(expired, struct id_timer, timer);

    CHECK_KIND(timer, ID_TIMER_KIND);
    return timer;
}

static void free_timer(struct id_timer *timer, struct loop *loop, const struct memory *memory)
{
    CHECK_KIND(timer, ID_TIMER_KIND);
    timer_del(loop, &timer->timer);
    RB_REMOVE(id_timers, timer->owner, timer);
    timer->kind = 0;
    memory_release(memory, timer);
}

int id_timers_set(struct id_timers *owner, struct loop *loop, const struct memory *memory,
    id_timer_expired expired, uint32_t id, uint64_t ms)
{
    struct id_timer *timer = find_timer(owner, id);

    if (timer == NULL) {
        timer = memory_alloc(memory, sizeof(*timer));
        if (timer == NULL)
            return -1;
        *timer = (struct id_timer) { .kind = ID_TIMER_KIND, .owner = owner, .id = id };
        timer->timer.expired = expired;
        RB_INSERT(id_timers, owner, timer);
    }
    if (ms == 0)
        ms = 1;
    if (ms > MS_MOST)
        ms = MS_MOST;
    timer->due = loop->clock.mono_ms + ms;
    /* a later deadline costs nothing until the timer expires */
    if (timer_is_set(&timer->timer) && timer->timer.deadline <= timer->due)
        return 0;
    timer_del(loop, &timer->timer);
    timer_set(loop, &timer->timer, ms);
    return 0;
}

void id_timers_cancel(
    struct id_timers *owner, struct loop *loop, const struct memory *memory, uint32_t id)
{
    struct id_timer *timer = find_timer(owner, id);

    if (timer != NULL)
        free_timer(timer, loop, memory);
}

void id_timers_clear(struct id_timers *owner, struct loop *loop, const struct memory *memory)
{
    while (!RB_EMPTY(owner))
        free_timer(RB_ROOT(owner), loop, memory);
}

struct id_timers *id_timers_owner(struct timer *expired)
{
    return timer_of(expired)->owner;
}

bool id_timers_take(
    struct timer *expired, struct loop *loop, const struct memory *memory, uint32_t *id)
{
    struct id_timer *timer = timer_of(expired);
    uint64_t now = loop->clock.mono_ms;

    if (timer->due > now) { /* moved back since it was set */
        timer_set(loop, expired, timer->due - now);
        return false;
    }
    *id = timer->id;
    free_timer(timer, loop, memory);
    return true;
}
