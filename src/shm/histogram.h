/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram of times, with buckets that double from a microsecond on. The worker alone counts,
 * with plain stores; readers take the numbers for the worker's claims. */
#pragma once

#include "base/compiler.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

/* The first bucket has the times below 1 us, number k those from 2^(k-1) us to below 2^k us, and
 * the last all from HISTOGRAM_GREATEST_US on. */
#define HISTOGRAM_BUCKETS 24
#define HISTOGRAM_GREATEST_US (UINT64_C(1) << (HISTOGRAM_BUCKETS - 2))

struct histogram {
    _Atomic uint64_t n[HISTOGRAM_BUCKETS];
};

/* Upper bounds for shares of the times, in microseconds: powers of two. All 0 without a counted
 * time. */
struct histogram_summary {
    uint64_t n;
    uint64_t p50_us, p90_us, p99_us, p999_us;
    uint64_t max_us;
};

/* Counts a time below HISTOGRAM_GREATEST_US, in microseconds times 2^bits. Nonsense, from a rate
 * written by a module, counts as no time. */
static inline void histogram_count_scaled(struct histogram *histogram, uint64_t time, unsigned bits)
{
    uint64_t least = UINT64_C(1) << (bits - 1); /* half a microsecond: lower times count as half */
    uint64_t top = (unsigned)__builtin_clzll(time | least) ^ 63; /* the highest bit */
    uint64_t number = top - (bits - 1) < HISTOGRAM_BUCKETS ? top - (bits - 1) : 0;
    _Atomic uint64_t *bucket = &histogram->n[number];

    atomic_store_explicit(
        bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Counts any time, which is rarely needed. */
void histogram_count_any(struct histogram *histogram, uint64_t us) COLD;
/* Reads the numbers once, whatever they are. */
void histogram_summarize(const struct histogram *histogram, struct histogram_summary *out);
