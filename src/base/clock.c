/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the system's clocks. Only the log reads the clocks by itself; all other code uses a struct
 * clock. */
#include "base/clock.h"

#include <time.h>

void clock_read(struct clock *clock)
{
    struct timespec mono, wall;

    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME, &wall);
    clock->mono_ms = (uint64_t)mono.tv_sec * 1000 + (uint64_t)mono.tv_nsec / 1000000;
    clock->wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
}
