/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the rate of the counter: after a millisecond right to a thousandth. */
#include "base/ticks.h"

#include <time.h>

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
