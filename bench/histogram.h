/* SPDX-License-Identifier: BSD-2-Clause */
/* Latencies in nanoseconds, counted in steps of at most 1.6 %. Plain memory without pointers, so
 * that processes can share it. */
#pragma once

#include <stdint.h>

#define HISTOGRAM_STEPS 64
#define HISTOGRAM_BUCKETS (HISTOGRAM_STEPS * 40)

struct histogram {
    uint64_t n, max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);

/* The latency that `share` (0 to 1) of all do not exceed; 0 if there are none. */
uint64_t histogram_percentile(const struct histogram *histogram, double share);
