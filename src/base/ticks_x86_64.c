/* SPDX-License-Identifier: BSD-2-Clause */
/* The time stamp counter, which counts at a constant rate on all processors of these years. */
#include "base/clock.h"

#include <x86intrin.h>

uint64_t ticks_now(void)
{
    return __rdtsc();
}
