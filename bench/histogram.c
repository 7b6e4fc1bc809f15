/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts latencies in buckets with a width growing with the value: 64 buckets for every power of
 * two. */
#include "bench/histogram.h"

/* Values below 64 have a bucket each; above, the highest six bits below the first choose the
 * bucket. */
static unsigned bucket_of(uint64_t ns)
{
    unsigned shift, bucket;

    if (ns < HISTOGRAM_STEPS)
        return (unsigned)ns;
    shift = 57 - (unsigned)__builtin_clzll(ns);
    bucket = (shift + 1) * HISTOGRAM_STEPS + (unsigned)((ns >> shift) - HISTOGRAM_STEPS);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static uint64_t greatest_of(unsigned bucket)
{
    unsigned shift = bucket / HISTOGRAM_STEPS;

    if (shift == 0)
        return bucket;
    shift--;
    return ((uint64_t)(bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
    histogram->n++;
    histogram->buckets[bucket_of(ns)]++;
    if (histogram->max < ns)
        histogram->max = ns;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    into->n += from->n;
    if (into->max < from->max)
        into->max = from->max;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t histogram_percentile(const struct histogram *histogram, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)histogram->n), seen = 0;

    if (histogram->n == 0)
        return 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > wanted || seen == histogram->n)
            return greatest_of(i) < histogram->max ? greatest_of(i) : histogram->max;
    }
    return histogram->max;
}
