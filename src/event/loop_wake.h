/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of a loop's own, to wake it, and signals during the wait. */
#pragma once

#include "event/loop_queue.h"

/* Makes and arms a source of the loop's own, of a descriptor. NULL after an emerg line with `what`,
 * and the descriptor is closed; for a descriptor of -1 the line has errno. */
struct source *loop_watch_own(struct loop *loop, int fd, enum event_queue queue,
    const struct source_ops *ops, const char *what);
/* Makes a source without a descriptor: its event is posted, or given to loop_report_own(). NULL
 * after an emerg line. */
struct source *loop_make_own(
    struct loop *loop, enum event_queue queue, const struct source_ops *ops);

/* Makes mechanism->notify() work, to run `notified` on the loop; -1 after an emerg line. */
int loop_set_notified(struct loop *loop, void (*notified)(struct loop *loop));
/* A notify() by a descriptor of the loop's own, for mechanisms whose kernel has nothing better. */
int loop_notify_descriptor(struct loop *loop);

/* Takes the time from a ticker every `ms` instead of once a turn; -1 after an emerg line. */
int loop_set_resolution(struct loop *loop, uint64_t ms);
/* Waits without reading the clock, a task of the ticker. */
void loop_wait_for_tick(struct loop *loop, int timeout);
/* For tests: makes timers expire by the ticks of `ms` from now on, none of them early; and reads
 * the clock at a tick. */
void loop_wake_begin_ticks(struct loop *loop, uint64_t ms);
void loop_wake_tick(struct loop *loop);

/* Watches, by a signalfd, the signals blocked outside of the wait. Without it a busy loop would
 * starve signals: a wait with a ready event returns before delivering a signal. -1 after an emerg
 * line. */
int loop_watch_signals(struct loop *loop);
/* Watches the signals that are blocked outside of the wait, where the wait takes no mask: makes the
 * pipe of loop->signal_fd, by which a handler ends a wait that has not begun yet. Both ends are the
 * loop's. -1 after an emerg line. */
int loop_open_signal_pipe(struct loop *loop);
/* Let the signals through that are blocked outside of the wait, and block them again: for
 * mechanisms that cannot have the kernel do so within the wait. The first stores the mask for the
 * second; both leave errno alone, and do nothing without a wait_mask. */
void loop_let_signals(const struct loop *loop, sigset_t *blocked);
void loop_hold_signals(const struct loop *loop, const sigset_t *blocked);
