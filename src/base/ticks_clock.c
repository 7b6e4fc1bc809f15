/* SPDX-License-Identifier: BSD-2-Clause */
/* The system's clock in the place of a counter: nanoseconds. */
#include "base/clock.h"

uint64_t ticks_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
