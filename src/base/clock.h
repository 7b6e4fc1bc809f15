/* SPDX-License-Identifier: BSD-2-Clause */
/* The cached time, read once a turn of a loop or a wake-up of the master; and short times by the
 * processor's cheapest counter: a reading costs a third of the clock's. A counter may differ
 * between processors, or go back: never for deadlines. Never arms a timer. */
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

#define TICKS_RATE_BITS 22

/* A moment, by the counter and by the clock. */
struct ticks_mark {
    uint64_t ticks, ns;
};

/* Reads the counter: an instruction, or the system's clock in nanoseconds (ticks_clock.c). */
#ifdef __x86_64__
#define ticks_now() ((uint64_t)__builtin_ia32_rdtsc())
#else
uint64_t ticks_now(void);
#endif
struct ticks_mark ticks_mark(void);
/* Returns microseconds a tick since the mark, times 2^TICKS_RATE_BITS; 0: no time has passed. */
uint32_t ticks_rate(const struct ticks_mark *since);

static inline uint64_t ticks_to_us(uint64_t ticks, uint64_t rate)
{
    return ticks * rate >> TICKS_RATE_BITS;
}
