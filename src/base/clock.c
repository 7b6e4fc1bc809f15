/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the system's clocks, for a struct clock. Only the log has its own readings. */
#include "base/clock.h"

#include "base/compiler.h"

static int64_t to_ms(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000 + (long)((unsigned long)time->tv_nsec / 1000000);
}

static NOINLINE void read_wall(struct clock *clock)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    clock->wall_ms = to_ms(&wall);
}

void clock_read(struct clock *clock)
{
    uint64_t ms;

    clock_gettime(CLOCK_MONOTONIC, &clock->mono);
    ms = (uint64_t)to_ms(&clock->mono);
    if (ms == clock->mono_ms)
        return;
    clock->mono_ms = ms;
    read_wall(clock);
}
