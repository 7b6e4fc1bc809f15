/* SPDX-License-Identifier: BSD-2-Clause */
/* Waking a loop, as the system has it: notices of threads, ticks of timer_resolution, signals
 * that come while the loop is busy. For the files loop_wake*.c alone. */
#pragma once

#include "event/loop.h"

/* Opens what loop_notify_descriptor() makes readable; -1 with errno. A second descriptor that this
 * takes is loop->notify_fd, which loop_done() closes. */
int loop_wake_open(struct loop *loop);
/* Takes what has made it readable. */
void loop_wake_drain(int fd);
