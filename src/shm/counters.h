/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of one worker. Only the slot's own worker writes them, so that a plain load and
 * store are enough; the master folds them into the totals when the worker has died. */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum counter {
    COUNTER_ACCEPTS,   /* connections taken from the kernel */
    COUNTER_HANDLED,   /* accepted connections that were given to a server */
    COUNTER_REQUESTS,  /* served, as the protocols count them */
    COUNTER_RECLAIMED, /* idle connections closed for want of room */
    COUNTER_PASSES,    /* times that clients were left to a worker with fewer, which was woken */
    COUNTER_YIELDS,    /* times that too many clients made the worker let others go first */
    COUNTER_GAUGES,    /* the counters from here on fall again, and end with their worker */
    COUNTER_ACTIVE = COUNTER_GAUGES, /* connections open */
    COUNTER_READING,                 /* open connections that hold part of a request */
    COUNTER_WRITING,                 /* open connections with output that the peer has not taken */
    COUNTER_SLOTS,                   /* worker_connections in use, or kept for servers */
    COUNTERS,
};

struct counters {
    _Atomic uint64_t n[COUNTERS];
};

/* Adds to a counter of this worker; `by` may be negative for a gauge. */
static inline void counters_add(struct counters *counters, enum counter counter, int64_t by)
{
    uint64_t n = atomic_load_explicit(&counters->n[counter], memory_order_relaxed);

    assert(counter < COUNTERS && (by >= 0 || counter >= COUNTER_GAUGES));
    atomic_store_explicit(&counters->n[counter], n + (uint64_t)by, memory_order_relaxed);
}
