/* SPDX-License-Identifier: BSD-2-Clause */
/* Waking a loop, as the system has it: notices of threads, ticks of timer_resolution, signals
 * that come while the loop is busy. For the files loop_wake*.c alone. */
#pragma once

#include "event/loop.h"

/* Opens what loop_notify_descriptor() makes readable; -1 with errno. A second descriptor that this
 * takes is loop->notify_fd, which loop_done() closes. */
int loop_wake_open(struct loop *loop);
/* loop_wake.c: Has timers expire by the ticks of `ms` from now on, none of them early. */
void loop_wake_begin_ticks(struct loop *loop, uint64_t ms);
/* loop_wake.c: Reads the clock at a tick. */
void loop_wake_tick(struct loop *loop);
/* Takes what has made it readable. */
void loop_wake_drain(int fd);
