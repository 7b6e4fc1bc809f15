/* SPDX-License-Identifier: BSD-2-Clause */
/* Watching of sources: the mechanism watches the directions that owners arm. */
#pragma once

#include "event/source.h"

/* Arms a direction. The event of a ready source is posted by loop_post_soon(): no second edge would
 * come. -1 with errno where the mechanism refuses (no memory). */
int source_arm(struct loop *loop, struct source *source, enum event_direction direction);
void source_disarm_armed(struct loop *loop, struct source *source, enum event_direction direction);
/* Pauses a direction; costs no system call where events are edges. */
static inline void source_disarm(
    struct loop *loop, struct source *source, enum event_direction direction)
{
    if (source->events[direction].armed)
        source_disarm_armed(loop, source, direction);
}
int source_arm_both(struct loop *loop, struct source *source);
/* Start and end watching a listener; `exclusive`: the kernel wakes a single waiting worker. */
int source_arm_listener(struct loop *loop, struct source *source, bool exclusive);
void source_disarm_listener(struct loop *loop, struct source *source);
/* Drops the kernel's references to disarmed listeners. Not within a callback with lent input. */
void source_release_disarmed(struct loop *loop);
/* Makes a source with `level` wait for exactly these directions: no direction is paused, so that an
 * unwanted direction costs no report, and `ready` means nothing. -1 with errno, and nothing has
 * changed. */
int source_watch_level(struct loop *loop, struct source *source, bool read, bool write);
/* Gives a slot back after foreign code has closed the descriptor; the number may be reused. */
void source_abandon(struct loop *loop, struct source *source);
/* Ends watching and posting, closes the descriptor (if any) and gives the slot back. */
void source_close(struct loop *loop, struct source *source, bool reset);
/* Ends watching and posting and gives the slot back, but leaves the descriptor open. */
void source_detach(struct loop *loop, struct source *source);
/* Gives a source's descriptor to a source without one; neither is watched then. */
void source_move(struct loop *loop, struct source *from, struct source *to);
