/* SPDX-License-Identifier: BSD-2-Clause */
/* The cached time. Its owner reads the clocks once and uses that time until its next turn: a loop
 * for one turn, the master for one wake-up. Nothing here arms a timer. */
#pragma once

#include <stdint.h>
#include <time.h>

struct clock {
    uint64_t mono_ms;     /* monotonic, for timers */
    int64_t wall_ms;      /* since the epoch, for people; at most 1 ms behind mono_ms */
    struct timespec mono; /* the system's own, to the nanosecond */
};

/* Reads the system's clocks: that for people only when the other has reached another millisecond.
 * The struct is all zero before the first time. */
void clock_read(struct clock *clock);
