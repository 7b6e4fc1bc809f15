/* SPDX-License-Identifier: BSD-2-Clause */
/* The cached time, read once a turn of a loop or a wake-up of the master. Never arms a timer. */
#pragma once

#include <stdint.h>
#include <time.h>

struct clock {
    uint64_t mono_ms;     /* monotonic, for timers */
    int64_t wall_ms;      /* since the epoch, for people; at most 1 ms behind mono_ms */
    struct timespec mono; /* the system's own, to the nanosecond */
};

/* Reads the clocks, the wall clock once a millisecond. The struct is zero before the first time. */
void clock_read(struct clock *clock);
