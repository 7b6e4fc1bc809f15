/* SPDX-License-Identifier: BSD-2-Clause */
/* Time that its owner has read: a loop keeps it for one turn, the master for one wake-up. */
#pragma once

#include <stdint.h>

struct clock {
    uint64_t mono_ms; /* monotonic, for timers */
    int64_t wall_ms;  /* since the epoch, for people */
};

/* Reads the system's clocks. */
void clock_read(struct clock *clock);
