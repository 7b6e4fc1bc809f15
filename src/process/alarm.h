/* SPDX-License-Identifier: BSD-2-Clause */
/* The sleep of a process whose events are all signals: SIGALRM wakes it for the earliest of its
 * timers. The interval timer is the process's own, and nobody else may set it. */
#pragma once

#include "base/clock.h"
#include "event/timer.h"

#include <stdint.h>

struct alarm {
    uint64_t deadline_ms; /* when SIGALRM comes; 0: it is not set, or has come */
};

/* Sleeps until a signal comes, or the earliest of these timers has expired, and reads the clock. */
void alarm_sleep(struct alarm *alarm, const struct timers *timers, struct clock *clock);
