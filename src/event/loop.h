/* SPDX-License-Identifier: BSD-2-Clause */
/* One event loop: a mechanism, the sources that it watches, posted events, timers, cached time. The
 * order of a turn is the worker's (worker/turn.c); here are its parts. */
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
    void *mechanism_state; /* the mechanism's */
    struct fb_source_table sources;
    struct fb_posted queues[FB_QUEUES];
    struct timers timers;
    struct fb_log *log;
    const sigset_t *wait_mask;  /* signals blocked within the wait; NULL: leave the mask alone */
    struct fb_source *notifier; /* an eventfd, or NULL */
    struct fb_source *signaler; /* a signalfd, with a wait_mask */
    struct fb_source *ticker;   /* timer_resolution's timerfd, or NULL */
    void (*notified)(struct fb_loop *loop);
};

struct fb_loop_options {
    const struct fb_mechanism *mechanism;
    int64_t mechanism_option;
    uint32_t slots; /* how many sources there can be */
    size_t stride;  /* bytes a slot: of a struct that begins with a struct fb_source */
    const sigset_t *wait_mask;
    struct fb_log *log;
};

/* -1 after an emerg line, with nothing left to undo. */
int fb_loop_init(struct fb_loop *loop, const struct fb_loop_options *options);
/* Every source but the loop's own has been put back. */
void fb_loop_done(struct fb_loop *loop);

/* Time comes from a timerfd every `ms` instead of from each turn; -1 after an emerg line. */
int fb_loop_set_resolution(struct fb_loop *loop, uint64_t ms);
/* Makes mechanism->notify() work, which has `notified` run on the loop; -1 after an emerg line. */
int fb_loop_set_notified(struct fb_loop *loop, void (*notified)(struct fb_loop *loop));

/* Has blocked signals that the wait mask lets through end a wait as events do, because a wait that
 * finds something ready does not look at signals; -1 after an emerg line. fb_loop_init() calls it. */
int fb_loop_watch_signals(struct fb_loop *loop);

/* Waits, reports, reads the clock. `timeout` in ms, -1 for ever. */
void fb_loop_wait(struct fb_loop *loop, int timeout);

/* Puts an event at a queue's end; it stays where it is when it is posted already. */
void fb_loop_post(struct fb_loop *loop, struct fb_event *event, enum fb_queue queue);
void fb_loop_unpost(struct fb_loop *loop, struct fb_event *event);
/* Runs a queue until it is empty: what handlers post to it is run too. */
void fb_loop_run(struct fb_loop *loop, enum fb_queue queue);
/* The next queue's events move to the normal queue; false when there were none. */
bool fb_loop_promote(struct fb_loop *loop);

/* Watch a direction. A source that is known to be ready is posted: its edge will not come again.
 * Returns -1 with errno where the mechanism refuses (no memory). */
int fb_source_arm(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction);
/* Pause it; costs no system call where events are edges. */
void fb_source_disarm(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction);
/* Arms both directions at once. */
int fb_source_arm_both(struct fb_loop *loop, struct fb_source *source);

int fb_listener_arm(struct fb_loop *loop, struct fb_source *source, bool exclusive);
void fb_listener_disarm(struct fb_loop *loop, struct fb_source *source);

/* Ends watching and posting, closes the descriptor (if any) and gives the slot back. */
void fb_source_close(struct fb_loop *loop, struct fb_source *source, bool reset);

/* For mechanisms: the source of a slot if it is still in that generation, else NULL. */
struct fb_source *fb_loop_source(struct fb_loop *loop, uint32_t index, uint32_t generation);
/* For mechanisms: the direction is ready. */
void fb_loop_report(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction);
