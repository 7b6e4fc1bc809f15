/* SPDX-License-Identifier: BSD-2-Clause */
/* Summaries of histograms, for the status. Numbers too great to be counts are bounded, so that sums
 * do not overflow. */
#include "shm/histogram.h"

#define MOST (UINT64_C(1) << 56) /* a bucket's; the sum of all stays below 2^63 */

static_assert(HISTOGRAM_BUCKETS <= 64, "the sum of bounded buckets fits");

void histogram_count_any(struct histogram *histogram, uint64_t us)
{
    unsigned bucket = 0;

    while (bucket < HISTOGRAM_BUCKETS - 1 && us >> bucket > 0)
        bucket++;
    atomic_fetch_add_explicit(&histogram->n[bucket], 1, memory_order_relaxed);
}

/* Returns the upper end of the bucket, below which `n` of the times lie. */
static uint64_t end_of(const uint64_t counts[HISTOGRAM_BUCKETS], uint64_t n)
{
    unsigned i = 0;

    for (uint64_t sum = counts[0]; sum < n && i < HISTOGRAM_BUCKETS - 1; sum += counts[i])
        i++;
    return UINT64_C(1) << i;
}

/* Returns `thousandths` of n, rounded up. */
static uint64_t share(uint64_t n, unsigned thousandths)
{
    return n / 1000 * thousandths + (n % 1000 * thousandths + 999) / 1000;
}

void histogram_summarize(const struct histogram *histogram, struct histogram_summary *out)
{
    uint64_t counts[HISTOGRAM_BUCKETS], n = 0;

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        counts[i] = atomic_load_explicit(&histogram->n[i], memory_order_relaxed);
        if (counts[i] > MOST)
            counts[i] = MOST;
        n += counts[i];
    }
    *out = (struct histogram_summary) { .n = n };
    if (n == 0)
        return;
    out->p50_us = end_of(counts, share(n, 500));
    out->p90_us = end_of(counts, share(n, 900));
    out->p99_us = end_of(counts, share(n, 990));
    out->p999_us = end_of(counts, share(n, 999));
    out->max_us = end_of(counts, n);
}
