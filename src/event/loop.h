/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop: a mechanism, the table of sources that it watches, queues of posted events,
 * timers, and cached time. The order of a turn is the worker's (worker/turn.c); here are its parts.
 *
 * All state is the loop's, so that two loops live in one process. An event is in at most one queue;
 * it is armed only while its source has a slot of the table. */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "event/mechanism.h"
#include "event/source.h"
#include "event/timer.h"

#include <signal.h>

TAILQ_HEAD(fb_posted, fb_event);

struct fb_loop {
    struct fb_clock clock; /* read once a turn, or once a tick of timer_resolution */
    const struct fb_mechanism *mechanism;
    void *mechanism_state; /* the mechanism's own, with a kind of its own */
    struct fb_source_table sources;
    struct fb_posted queues[FB_QUEUES];
    struct timers timers;
    struct fb_log *log;
    const sigset_t *wait_mask;  /* signals blocked within the wait; NULL: leave the mask alone */
    struct fb_source *notifier; /* the eventfd of notify(), or NULL */
    struct fb_source *signaler; /* the signalfd, with a wait_mask; else NULL */
    struct fb_source *ticker;   /* the timerfd of timer_resolution, or NULL */
    void (*notified)(struct fb_loop *loop); /* runs on the loop after notify() */
};

struct fb_loop_options {
    const struct fb_mechanism *mechanism;
    int64_t mechanism_option;
    uint32_t slots; /* the number of sources, besides the loop's own */
    size_t stride;  /* bytes of a slot: of a struct that begins with a struct fb_source */
    const sigset_t *wait_mask;
    struct fb_log *log;
};

/* Makes a loop; -1 after an emerg line, with nothing left to undo. */
int fb_loop_init(struct fb_loop *loop, const struct fb_loop_options *options);
/* Closes a loop whose sources, but for its own, have been put back. */
void fb_loop_done(struct fb_loop *loop);

/* Takes the time from a timerfd every `ms` instead of once a turn; -1 after an emerg line. */
int fb_loop_set_resolution(struct fb_loop *loop, uint64_t ms);
/* Makes mechanism->notify() work, which has `notified` run on the loop; -1 after an emerg line. */
int fb_loop_set_notified(struct fb_loop *loop, void (*notified)(struct fb_loop *loop));

/* Watches, by a signalfd, the signals that are blocked outside of the wait. Without it a busy loop
 * would starve them: a wait that finds an event ready returns before it delivers a signal. -1 after
 * an emerg line. fb_loop_init() calls it. */
int fb_loop_watch_signals(struct fb_loop *loop);

/* Waits for events, has them reported, and reads the clock. `timeout` in ms; -1: for ever. */
void fb_loop_wait(struct fb_loop *loop, int timeout);

/* Whether checks of whole structures run each turn: on a simulated kernel, and in a debug build. */
static inline bool loop_is_checked(const struct fb_loop *loop)
{
    return FB_DEBUG_BUILD || loop->mechanism->self != NULL;
}

/* Puts an event at a queue's end; an event that is posted already stays where it is. */
void fb_loop_post(struct fb_loop *loop, struct fb_event *event, enum fb_queue queue);
void fb_loop_unpost(struct fb_loop *loop, struct fb_event *event);
/* Runs a queue until it is empty, with the events that handlers post to it meanwhile. */
void fb_loop_run(struct fb_loop *loop, enum fb_queue queue);
/* Moves the next queue's events to the normal queue; false when there were none. */
bool fb_loop_promote(struct fb_loop *loop);

/* Returns the source of a slot if the slot is still in that generation, else NULL: for
 * mechanisms. */
struct fb_source *fb_loop_source(struct fb_loop *loop, uint32_t index, uint32_t generation);
/* Takes the mechanism's report that the direction is ready, and posts or runs its event. */
void fb_loop_report(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction);

/* Asserts what holds of the whole loop between two waits: queues, sources, timers. */
void loop_check(const struct fb_loop *loop);
