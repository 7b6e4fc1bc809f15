/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the system's clocks, for a struct clock, and finds the rate of the counter: after a
 * millisecond right to a thousandth. Only the log has its own readings. */
#include "base/clock.h"

#include "base/compiler.h"

#define TO_MS(time)                                                                                \
    ((int64_t)(time).tv_sec * 1000 + (long)((unsigned long)(time).tv_nsec / 1000000))

static NOINLINE void read_wall(struct clock *clock)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    clock->wall_ms = TO_MS(wall);
}

void clock_read(struct clock *clock)
{
    uint64_t ms;

    clock_gettime(CLOCK_MONOTONIC, &clock->mono);
    ms = (uint64_t)TO_MS(clock->mono);
    if (ms == clock->mono_ms)
        return;
    clock->mono_ms = ms;
    read_wall(clock);
}

struct ticks_mark ticks_mark(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct ticks_mark) {
        .ticks = ticks_now(),
        .ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
    };
}

uint32_t ticks_rate(const struct ticks_mark *since)
{
    struct ticks_mark now = ticks_mark();
    double ticks = (double)(now.ticks - since->ticks), us = (double)(now.ns - since->ns) / 1000;

    if (now.ticks <= since->ticks || us > ticks)
        return 0;
    return (uint32_t)(us / ticks * (1 << TICKS_RATE_BITS));
}
