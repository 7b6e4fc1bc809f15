/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's heartbeat: what it is doing now, as numbers that the worker alone writes, with plain
 * stores. The master's watchdog reads them now and then, and the master once more when the worker
 * has died. `now` changes with every callback and every wait: when it stays the same, the worker is
 * stuck. A reader takes no number for true, and bounds each by the functions below. */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum callback {
    CALLBACK_NONE, /* the daemon's own code */
    CALLBACK_WAIT, /* for events */
    CALLBACK_OPENED,
    CALLBACK_DATA,
    CALLBACK_EOF,
    CALLBACK_WRITABLE,
    CALLBACK_TIMER,
    CALLBACK_DRAINING,
    CALLBACK_MESSAGE,
    CALLBACK_ANSWERED,
    CALLBACK_CLOSED,
    CALLBACK_DONE,
    CALLBACK_RELEASE,
    CALLBACK_WORKER_START,
    CALLBACK_WORKER_STOP,
    CALLBACKS,
};

#define HEARTBEAT_NO_PROTOCOL 0xffu

/* How a worker says that its process ends, before it does. */
enum heartbeat_end {
    HEARTBEAT_LIVES,       /* if it exits, then because a protocol has called exit() */
    HEARTBEAT_RETURNED,    /* the worker has done what it was told, or could not start */
    HEARTBEAT_THREAD_LEFT, /* a protocol has called pthread_exit() */
    HEARTBEAT_WAIT_FAILED, /* the wait for events has failed, with an errno */
};

struct heartbeat {
    _Atomic uint64_t
        now; /* from the lowest bits: callback (8), the protocol's index (8), a count */
    _Atomic uint64_t jobs; /* the protocol's index (8), a count of the jobs that run */
    _Atomic uint32_t end;  /* enum heartbeat_end (8), an errno */
};

/* The callbacks' names in the SDK; NULL for those that are none. */
extern const char *const heartbeat_callback_names[CALLBACKS];

/* A callback or a wait begins. */
static inline void heartbeat_begin(
    struct heartbeat *heartbeat, enum callback callback, unsigned protocol)
{
    uint64_t now = atomic_load_explicit(&heartbeat->now, memory_order_relaxed);

    assert(callback > CALLBACK_NONE && callback < CALLBACKS);
    /* the next count with zeroes below, into which the two fit */
    atomic_store_explicit(&heartbeat->now,
        (now | 0xffff) + 1 + ((uint64_t)(uint8_t)protocol << 8 | callback), memory_order_relaxed);
}

/* The callback or the wait has returned. */
static inline void heartbeat_end(struct heartbeat *heartbeat)
{
    uint64_t n = atomic_load_explicit(&heartbeat->now, memory_order_relaxed);

    atomic_store_explicit(&heartbeat->now, n & ~(uint64_t)0xffff, memory_order_relaxed);
}

/* Says which jobs run: `n`, all of this protocol, or of several: HEARTBEAT_NO_PROTOCOL. For threads
 * that hold a mutex. */
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

/* The callback in such a number; CALLBACK_NONE where a worker has written nonsense. */
static inline enum callback heartbeat_callback(uint64_t now)
{
    return (now & 0xff) < CALLBACKS ? (enum callback)(now & 0xff) : CALLBACK_NONE;
}

/* The index of the protocol in such a number, which may be none of ours. */
static inline unsigned heartbeat_protocol(uint64_t now)
{
    return now >> 8 & 0xff;
}

/* The protocol whose callback runs now; HEARTBEAT_NO_PROTOCOL outside of callbacks. For the worker
 * itself. */
static inline unsigned heartbeat_running_protocol(const struct heartbeat *heartbeat)
{
    uint64_t now = heartbeat_now(heartbeat);

    return heartbeat_callback(now) <= CALLBACK_WAIT ? HEARTBEAT_NO_PROTOCOL
                                                    : heartbeat_protocol(now);
}

/* How many jobs there are in such a number, of which no more run than there are threads. */
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
