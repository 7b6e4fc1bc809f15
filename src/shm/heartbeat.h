/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's heartbeat: what it is doing now, as a number that the worker alone writes, with plain
 * stores, and that the master's watchdog reads now and then. The number changes with every callback
 * and every wait: when it stays the same, the worker is stuck. */
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
    CALLBACK_WORKER_STOP,
    CALLBACKS,
};

#define HEARTBEAT_NO_PROTOCOL 0xffu

/* The number has, from the lowest bits: the callback (8), the protocol's index (8), a count. */
struct heartbeat {
    _Atomic uint64_t now;
};

/* The callbacks' names in the SDK; NULL for those that are none. */
extern const char *const heartbeat_callback_names[CALLBACKS];

/* A callback or a wait begins. */
static inline void heartbeat_begin(
    struct heartbeat *heartbeat, enum callback callback, unsigned protocol)
{
    uint64_t n = atomic_load_explicit(&heartbeat->now, memory_order_relaxed) >> 16;

    assert(callback > CALLBACK_NONE && callback < CALLBACKS && protocol <= HEARTBEAT_NO_PROTOCOL);
    atomic_store_explicit(
        &heartbeat->now, (n + 1) << 16 | protocol << 8 | callback, memory_order_relaxed);
}

/* The callback or the wait has returned. */
static inline void heartbeat_end(struct heartbeat *heartbeat)
{
    uint64_t n = atomic_load_explicit(&heartbeat->now, memory_order_relaxed);

    atomic_store_explicit(&heartbeat->now, n & ~(uint64_t)0xffff, memory_order_relaxed);
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
