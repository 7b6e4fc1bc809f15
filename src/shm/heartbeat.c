/* SPDX-License-Identifier: BSD-2-Clause */
/* Long times, and their callbacks. A counter that has gone back makes no time. */
#include "shm/heartbeat.h"

#define LIMIT_US (HISTOGRAM_GREATEST_US - 1)
#define COUNT_MOST (UINT64_C(1) << 56) /* a bucket's; the sum of all stays below 2^63 */

static_assert(HISTOGRAM_BUCKETS <= 64, "the sum of bounded buckets fits");

void heartbeat_start(struct heartbeat *heartbeat, uint64_t stall_us)
{
    uint64_t limit_us = stall_us > 0 && stall_us < LIMIT_US ? stall_us : LIMIT_US;

    heartbeat->stall_us = stall_us;
    heartbeat->limit = UINT64_MAX;
    if (heartbeat->rate > 0)
        heartbeat->limit = ((limit_us + 1) << HEARTBEAT_TIME_BITS) / heartbeat->rate;
    heartbeat->turn_since = ticks_now() << 16;
}

static uint64_t to_us(const struct heartbeat *heartbeat, uint64_t time)
{
    return (int64_t)time < 0 ? 0 : ticks_to_us(time >> 16, heartbeat->rate);
}

void heartbeat_count_any(struct histogram *histogram, uint64_t us)
{
    unsigned bucket = 0;

    while (bucket < HISTOGRAM_BUCKETS - 1 && us >> bucket > 0)
        bucket++;
    atomic_fetch_add_explicit(&histogram->n[bucket], 1, memory_order_relaxed);
}

bool heartbeat_count_otherwise(struct heartbeat *heartbeat, uint64_t now, uint64_t time)
{
    unsigned protocol = heartbeat_protocol(now);
    unsigned row = protocol < HEARTBEAT_PROTOCOLS ? protocol : HEARTBEAT_PROTOCOLS - 1;
    uint64_t us = to_us(heartbeat, time);

    if (heartbeat_callback(now) <= CALLBACK_WAIT)
        return false; /* a module has written there */
    heartbeat_count_any(&heartbeat->callbacks[row], us);
    if (heartbeat->stall_us == 0 || us <= heartbeat->stall_us)
        return false;
    atomic_fetch_add_explicit(&heartbeat->stalls, 1, memory_order_relaxed);
    heartbeat->stall = (struct heartbeat_stall) { heartbeat_callback(now), protocol, us };
    return true;
}

bool heartbeat_count_long_turn(struct heartbeat *heartbeat, uint64_t time)
{
    heartbeat_count_any(&heartbeat->turns, to_us(heartbeat, time));
    return heartbeat->stall.us > 0;
}

const char *heartbeat_stall_name(const struct heartbeat_stall *stall)
{
    const char *name =
        (unsigned)stall->callback < CALLBACKS ? heartbeat_callback_names[stall->callback] : NULL;

    return name != NULL ? name : "unknown";
}

struct heartbeat_stall heartbeat_take_stall(struct heartbeat *heartbeat)
{
    struct heartbeat_stall stall = heartbeat->stall;

    heartbeat->stall.us = 0;
    return stall;
}

/* Returns the upper end of the bucket, below which `n` of the times lie. */
static uint64_t bucket_end(const uint64_t counts[], unsigned buckets, uint64_t n)
{
    unsigned i = 0;

    for (uint64_t sum = counts[0]; sum < n && i < buckets - 1; sum += counts[i])
        i++;
    return UINT64_C(1) << i;
}

/* Returns `thousandths` of n, rounded up. */
static uint64_t share_of_times(uint64_t n, unsigned thousandths)
{
    return n / 1000 * thousandths + (n % 1000 * thousandths + 999) / 1000;
}

void histogram_summarize(uint64_t counts[], unsigned buckets, struct histogram_summary *out)
{
    uint64_t n = 0;

    assert(buckets > 0 && buckets <= 64);
    for (unsigned i = 0; i < buckets; i++) {
        if (counts[i] > COUNT_MOST)
            counts[i] = COUNT_MOST;
        n += counts[i];
    }
    *out = (struct histogram_summary) { .n = n };
    if (n == 0)
        return;
    out->p50 = bucket_end(counts, buckets, share_of_times(n, 500));
    out->p90 = bucket_end(counts, buckets, share_of_times(n, 900));
    out->p99 = bucket_end(counts, buckets, share_of_times(n, 990));
    out->p999 = bucket_end(counts, buckets, share_of_times(n, 999));
    out->max = bucket_end(counts, buckets, n);
}

void heartbeat_summarize(const struct histogram *histogram, struct histogram_summary *out)
{
    uint64_t counts[HISTOGRAM_BUCKETS];

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
        counts[i] = atomic_load_explicit(&histogram->n[i], memory_order_relaxed);
    histogram_summarize(counts, HISTOGRAM_BUCKETS, out);
}
