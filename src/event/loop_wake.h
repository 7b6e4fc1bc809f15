/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of a loop's own, which wake the loop, and signals during the wait. */
#pragma once

#include "event/loop_queue.h"

/* Makes a source without a descriptor, whose event is posted. NULL after an emerg line. */
struct source *loop_make_own(
    struct loop *loop, enum event_queue queue, const struct source_ops *ops);

/* Makes mechanism->notify() work, to run `notified` on the loop; -1 after an emerg line. */
int loop_set_notified(struct loop *loop, void (*notified)(struct loop *loop));
/* The notify() of mechanisms without notices of the kernel's: by a descriptor of the loop's. */
int loop_notify_descriptor(struct loop *loop);

/* Takes the time from a ticker every `ms` instead of once a turn; -1 after an emerg line. */
int loop_set_resolution(struct loop *loop, uint64_t ms);
/* Waits without reading the clock, a task of the ticker. */
void loop_wait_for_tick(struct loop *loop, int timeout);
/* For tests: begins ticks of `ms`, by which timers expire, never early; and reads the clock. */
void loop_wake_begin_ticks(struct loop *loop, uint64_t ms);
void loop_wake_tick(struct loop *loop);

/* Watches, by a signalfd, the signals blocked outside of the wait, which a busy loop would starve: a
 * wait with a ready event delivers no signal. -1 after an emerg line. */
int loop_watch_signals(struct loop *loop);
/* Watches these signals where the wait takes no mask: opens the pipe of loop->signal_fd, by which a
 * handler ends a wait before its begin. -1 after an emerg line. */
int loop_open_signal_pipe(struct loop *loop);
/* Let these signals through, and block them again: for mechanisms whose wait takes no mask. The
 * first stores the mask for the second; both keep errno, and do nothing without a wait_mask. */
void loop_let_signals(const struct loop *loop, sigset_t *blocked);
void loop_hold_signals(const struct loop *loop, const sigset_t *blocked);
