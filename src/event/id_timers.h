/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers with ids that their owner's user chooses: any number an owner, found by their ids in a
 * red-black tree. An owner without timers costs the tree's root alone. A timer is in its owner's
 * tree as long as it lives, and its loop timer is set, for `due` or earlier. */
#pragma once

#include "base/memory.h"
#include "event/timer.h"

struct id_timer;

/* The owner's member; RB_INIT() makes it empty. */
RB_HEAD(id_timers, id_timer);

/* Called from the loop for each timer that may have expired, which id_timers_take() says. */
typedef void (*id_timer_expired)(struct loop *loop, struct timer *expired);

/* Sets the timer with this id, or moves it: it expires in `ms`, at least 1. -1 without memory, and
 * then nothing has changed. */
int id_timers_set(struct id_timers *owner, struct loop *loop, const struct memory *memory,
    id_timer_expired expired, uint32_t id, uint64_t ms);
/* Forgets the timer with this id, if there is one. */
void id_timers_cancel(
    struct id_timers *owner, struct loop *loop, const struct memory *memory, uint32_t id);
/* Forgets all. */
void id_timers_clear(struct id_timers *owner, struct loop *loop, const struct memory *memory);

/* Returns the owner of a timer that is given to the function above. */
struct id_timers *id_timers_owner(struct timer *expired);
/* Frees the timer, and gives its id; false when it was moved back since it was set, and is set
 * again for its time. */
bool id_timers_take(
    struct timer *expired, struct loop *loop, const struct memory *memory, uint32_t *id);
