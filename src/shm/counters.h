/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of one worker. Only the slot's own worker writes them, so that a plain load and
 * store are enough; the master folds them into the totals when the worker has died. */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum fb_counter {
    FB_ACCEPTS,            /* connections taken from the kernel */
    FB_HANDLED,            /* accepted connections that were given to a server */
    FB_REQUESTS,           /* served, as the protocols count them */
    FB_GAUGES,             /* the counters from here on fall again, and end with their worker */
    FB_ACTIVE = FB_GAUGES, /* connections open */
    FB_READING,            /* open connections that hold part of a request */
    FB_WRITING,            /* open connections with output that the peer has not taken */
    FB_COUNTERS,
};

struct fb_counters {
    _Atomic uint64_t n[FB_COUNTERS];
};

/* Adds to a counter of this worker; `by` may be negative for a gauge. */
static inline void fb_count(struct fb_counters *counters, enum fb_counter counter, int64_t by)
{
    uint64_t n = atomic_load_explicit(&counters->n[counter], memory_order_relaxed);

    assert(counter < FB_COUNTERS && (by >= 0 || counter >= FB_GAUGES));
    atomic_store_explicit(&counters->n[counter], n + (uint64_t)by, memory_order_relaxed);
}
