/* SPDX-License-Identifier: BSD-2-Clause */
/* The cached time. Its owner reads the clocks once and uses that time until its next turn: a loop
 * for one turn, the master for one wake-up. Nothing here arms a timer. */
#pragma once

#include <stdint.h>

struct clock {
    uint64_t mono_ms; /* monotonic, for timers */
    int64_t wall_ms;  /* since the epoch, for people */
};

/* Reads the system's clocks. */
void clock_read(struct clock *clock);
