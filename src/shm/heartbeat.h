/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's heartbeat: the present callback, and histograms of the durations of callbacks and of
 * turns of the loop, as numbers written by the worker alone, with plain stores. The master's
 * watchdog reads them now and then, and the master once more when the worker has died. `now`
 * changes with every callback and every wait: a worker with a constant `now` is stuck. A reader
 * trusts no number, and bounds all by the functions below. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum callback {
    CALLBACK_NONE, /* the daemon's own code */
    CALLBACK_WAIT, /* for events */
#define CALLBACK(id, name) CALLBACK_##id,
#include "shm/callbacks.def"
#undef CALLBACK
    CALLBACKS,
};

#define HEARTBEAT_NO_PROTOCOL 0xffu
/* Histograms of protocols. All protocols from the last index on share the last histogram. */
#define HEARTBEAT_PROTOCOLS 16u

/* A histogram of times: the first bucket has the times below 1 us, number k the times from 2^(k-1)
 * us to below 2^k us, and the last bucket all from HISTOGRAM_GREATEST_US on. */
#define HISTOGRAM_BUCKETS 24
#define HISTOGRAM_GREATEST_US (UINT64_C(1) << (HISTOGRAM_BUCKETS - 2))

struct histogram {
    _Atomic uint64_t n[HISTOGRAM_BUCKETS];
};

/* Upper bounds for shares of the times, in the unit of the buckets: powers of two; 0 without a
 * counted time. */
struct histogram_summary {
    uint64_t n;
    uint64_t p50, p90, p99, p999;
    uint64_t max;
};

/* Counts a time below HISTOGRAM_GREATEST_US, in us times 2^bits; nonsense as no time. */
static inline void heartbeat_count_scaled(struct histogram *histogram, uint64_t time, unsigned bits)
{
    uint64_t least = UINT64_C(1) << (bits - 1); /* half a microsecond: lower times count as half */
    uint64_t top = (unsigned)__builtin_clzll(time | least) ^ 63; /* the highest bit */
    uint64_t number = top - (bits - 1) < HISTOGRAM_BUCKETS ? top - (bits - 1) : 0;
    _Atomic uint64_t *bucket = &histogram->n[number];

    atomic_store_explicit(
        bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* A callback that took longer than `stall_threshold`. */
struct heartbeat_stall {
    enum callback callback;
    unsigned protocol;
    uint64_t us; /* 0: none */
};

/* Announced ends of a worker process. */
enum heartbeat_end {
    HEARTBEAT_LIVES,       /* an exit now comes from a protocol's exit() */
    HEARTBEAT_RETURNED,    /* the worker has finished, or could not start */
    HEARTBEAT_THREAD_LEFT, /* a protocol has called pthread_exit() */
    HEARTBEAT_WAIT_FAILED, /* the wait for events has failed, with an errno */
};

struct heartbeat {
    /* from the lowest bits: callback (8), the protocol's index (8), since when, in ticks (48) */
    _Atomic uint64_t now;
    _Atomic uint64_t jobs; /* the protocol's index (8), the count of running jobs */
    _Atomic uint32_t end;  /* enum heartbeat_end (8), an errno */
    /* the measurement, read by the worker alone. Times are ticks times 2^16, as in `now` */
    uint64_t rate;                /* the ticks'; 0: all times are taken for 0 */
    uint64_t turn_since;          /* when the turn has begun */
    uint64_t limit;               /* times from here on are not only counted */
    uint64_t stall_us;            /* `stall_threshold`; 0: off */
    struct heartbeat_stall stall; /* the latest stall not logged yet */

    _Atomic uint64_t stalls;
    struct histogram turns; /* from the end of a wait to the next wait */
    struct histogram callbacks[HEARTBEAT_PROTOCOLS];
};

/* Bits below the microsecond of a time below the limit that was multiplied by the rate. */
#define HEARTBEAT_TIME_BITS (TICKS_RATE_BITS + 16)

/* The callbacks' names in the SDK; NULL for the first two kinds. Here, so that the name of a known
 * callback is a constant. */
static const char *const heartbeat_callback_names[CALLBACKS] = {
    NULL,
    NULL,
#define CALLBACK(id, name) (name),
#include "shm/callbacks.def"
#undef CALLBACK
};

/* The worker begins to serve; callbacks longer than stall_us (0: none) are stalls from now on. */
void heartbeat_start(struct heartbeat *heartbeat, uint64_t stall_us);
/* Counts any time, which is rarely needed. */
void heartbeat_count_any(struct histogram *histogram, uint64_t us) COLD;
/* Summarizes the counts of buckets, as above, up to 64, and lowers those that are nonsense. */
void histogram_summarize(uint64_t counts[], unsigned buckets, struct histogram_summary *out);
/* Reads the numbers once, whatever they are. */
void heartbeat_summarize(const struct histogram *histogram, struct histogram_summary *out);
/* Count a time that has reached the limit, or is of a protocol without a histogram of its own;
 * return whether a stall is to be logged. */
bool heartbeat_count_otherwise(struct heartbeat *heartbeat, uint64_t now, uint64_t time) COLD;
bool heartbeat_count_long_turn(struct heartbeat *heartbeat, uint64_t time) COLD;
/* Removes and returns the stall not logged yet. */
struct heartbeat_stall heartbeat_take_stall(struct heartbeat *heartbeat);
/* The name of the stall's callback; "unknown" where a module has written nonsense. */
const char *heartbeat_stall_name(const struct heartbeat_stall *stall);

/* Announces the worker's callback from now on, and returns the time. */
static inline uint64_t heartbeat_set(struct heartbeat *heartbeat, uint64_t what)
{
    uint64_t time = ticks_now() << 16;

    assert(what <= 0xffff);
    atomic_store_explicit(&heartbeat->now, time | what, memory_order_relaxed);
    return time;
}

static inline void heartbeat_begin(
    struct heartbeat *heartbeat, enum callback callback, unsigned protocol)
{
    assert(callback > CALLBACK_WAIT && callback < CALLBACKS);
    heartbeat_set(heartbeat, (uint64_t)(uint8_t)protocol << 8 | callback);
}

/* The callback has returned; whether a stall is to be logged, as again at the turn's end. */
static inline bool heartbeat_end(struct heartbeat *heartbeat)
{
    uint64_t now = atomic_load_explicit(&heartbeat->now, memory_order_relaxed);
    uint64_t time = heartbeat_set(heartbeat, CALLBACK_NONE) -
                    now; /* a part of a tick less, for the lowest bits */

    if (unlikely(time >= heartbeat->limit || (now & 0xff00) >= HEARTBEAT_PROTOCOLS << 8))
        return heartbeat_count_otherwise(heartbeat, now, time);
    heartbeat_count_scaled(
        &heartbeat->callbacks[now >> 8 & 0xff], time * heartbeat->rate, HEARTBEAT_TIME_BITS);
    return false;
}

/* The turn ends with a wait for events; whether a stall is to be logged. */
static inline bool heartbeat_begin_wait(struct heartbeat *heartbeat)
{
    uint64_t end = heartbeat_set(heartbeat, HEARTBEAT_NO_PROTOCOL << 8 | CALLBACK_WAIT);
    uint64_t time = end - heartbeat->turn_since;

    if (unlikely(time >= heartbeat->limit))
        return heartbeat_count_long_turn(heartbeat, time);
    heartbeat_count_scaled(&heartbeat->turns, time * heartbeat->rate, HEARTBEAT_TIME_BITS);
    return false;
}

static inline void heartbeat_end_wait(struct heartbeat *heartbeat)
{
    heartbeat->turn_since = heartbeat_set(heartbeat, CALLBACK_NONE);
}

/* Sets the jobs of a protocol, or of several: HEARTBEAT_NO_PROTOCOL. Needs a mutex. */
static inline void heartbeat_set_jobs(struct heartbeat *heartbeat, unsigned n, unsigned protocol)
{
    assert(protocol <= HEARTBEAT_NO_PROTOCOL);
    atomic_store_explicit(
        &heartbeat->jobs, (uint64_t)n << 8 | (n > 0 ? protocol : 0), memory_order_relaxed);
}

/* The process ends so; the first word stays. */
static inline void heartbeat_set_end(struct heartbeat *heartbeat, enum heartbeat_end end, int error)
{
    assert(end > HEARTBEAT_LIVES && error >= 0);
    if (atomic_load_explicit(&heartbeat->end, memory_order_relaxed) == HEARTBEAT_LIVES)
        atomic_store_explicit(
            &heartbeat->end, (uint32_t)error << 8 | (uint32_t)end, memory_order_relaxed);
}

static inline uint64_t heartbeat_now(const struct heartbeat *heartbeat)
{
    return atomic_load_explicit(&heartbeat->now, memory_order_relaxed);
}

/* The callback in `now`; CALLBACK_NONE where a worker has written nonsense. */
static inline enum callback heartbeat_callback(uint64_t now)
{
    return (now & 0xff) < CALLBACKS ? (enum callback)(now & 0xff) : CALLBACK_NONE;
}

/* The protocol index in `now`; may be invalid. */
static inline unsigned heartbeat_protocol(uint64_t now)
{
    return now >> 8 & 0xff;
}

/* The worker: the protocol whose callback runs now; HEARTBEAT_NO_PROTOCOL: none. */
static inline unsigned heartbeat_running_protocol(const struct heartbeat *heartbeat)
{
    uint64_t now = heartbeat_now(heartbeat);

    return heartbeat_callback(now) <= CALLBACK_WAIT ? HEARTBEAT_NO_PROTOCOL
                                                    : heartbeat_protocol(now);
}

/* Returns the count of jobs in `jobs`, bounded: no more jobs run than there are threads. */
static inline unsigned heartbeat_job_n(uint64_t jobs)
{
    return jobs >> 8 < UINT16_MAX ? (unsigned)(jobs >> 8) : UINT16_MAX;
}

static inline unsigned heartbeat_job_protocol(uint64_t jobs)
{
    return jobs & 0xff;
}

/* How the process has ended, and the errno; HEARTBEAT_LIVES where a worker has written nonsense. */
static inline enum heartbeat_end heartbeat_end_of(uint32_t end)
{
    return (end & 0xff) <= HEARTBEAT_WAIT_FAILED ? (enum heartbeat_end)(end & 0xff)
                                                 : HEARTBEAT_LIVES;
}

static inline int heartbeat_error_of(uint32_t end)
{
    return (int)(end >> 8 & 0xfff);
}
