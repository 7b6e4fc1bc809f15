/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop: a mechanism, the table of sources, queues of posted events, timers, and cached
 * time. The worker has the order of a turn (worker/turn.c). All state is the loop's, so that two
 * loops live in one process. */
#pragma once

#include "event/loop_queue.h"

struct loop_options {
    const struct mechanism *mechanism;
    struct mechanism_values mechanism_values;
    uint32_t slots; /* the number of sources, besides the loop's own */
    size_t stride;  /* bytes of a slot: of a struct that begins with a struct source */
    const sigset_t *wait_mask;
    struct log *log;
};

/* Makes a loop; -1 after an emerg line, with nothing left to undo. */
int loop_init(struct loop *loop, const struct loop_options *options);
/* Closes a loop after all sources, except for the loop's, have been put back. */
void loop_done(struct loop *loop);
/* Asserts the rules of the whole loop between two waits: queues, sources, timers. */
void loop_check(const struct loop *loop);

/* ---- Sources of the loop's own, which wake the loop, and signals: loop_wake.c ---- */

/* Makes a source without a descriptor, whose event is posted. NULL after an emerg line. */
struct source *loop_make_own(
    struct loop *loop, enum event_queue queue, const struct source_ops *ops);
/* Makes mechanism->notify() work, to run `notified` on the loop; -1 after an emerg line. */
int loop_set_notified(struct loop *loop, void (*notified)(struct loop *loop));
/* The notify() of mechanisms without notices of the kernel's: by a descriptor of the loop's. */
int loop_notify_descriptor(struct loop *loop);
/* Takes the time from a ticker every `ms` instead of once a turn; -1 after an emerg line. */
int loop_set_resolution(struct loop *loop, uint64_t ms);
/* For tests: begins ticks of `ms`, by which timers expire, never early; and reads the clock. */
void loop_wake_begin_ticks(struct loop *loop, uint64_t ms);
void loop_wake_tick(struct loop *loop);
/* Watches the signals blocked outside of the wait: by a signalfd, as a wait with a ready event
 * delivers no signal; or, where the wait takes no mask, by the pipe of loop->signal_fd, by which a
 * handler ends a wait before its begin. -1 after an emerg line. */
int loop_watch_signals(struct loop *loop);
/* Let these signals through, and block them again: for mechanisms whose wait takes no mask. The
 * first stores the mask for the second; both keep errno, and do nothing without a wait_mask. */
void loop_let_signals(const struct loop *loop, sigset_t *blocked);
void loop_hold_signals(const struct loop *loop, const sigset_t *blocked);
