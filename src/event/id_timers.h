/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers with ids of the owner's user, in a red-black tree by id. A live timer is in the tree, and
 * its loop timer is set, for `due` or earlier. */
#pragma once

#include "base/memory.h"
#include "event/timer.h"

struct id_timer;

/* The owner's member; RB_INIT() makes it empty. */
RB_HEAD(id_timers, id_timer);
/* Called from the loop for a timer perhaps expired; id_timers_take() decides. */
typedef void (*id_timer_expired)(struct loop *loop, struct timer *expired);
/* Sets or moves a timer: expiry in `ms`, at least 1. -1 without memory, and nothing changes. */
int id_timers_set(struct id_timers *owner, struct loop *loop, const struct memory *memory,
    id_timer_expired expired, uint32_t id, uint64_t ms);
void id_timers_cancel(
    struct id_timers *owner, struct loop *loop, const struct memory *memory, uint32_t id);
void id_timers_clear(struct id_timers *owner, struct loop *loop, const struct memory *memory);
/* Returns the owner of a timer that is given to the function above. */
struct id_timers *id_timers_owner(struct timer *expired);
/* Frees the timer, and gives the id; false for a timer moved back, now set again. */
bool id_timers_take(
    struct timer *expired, struct loop *loop, const struct memory *memory, uint32_t *id);
