/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's heartbeat: what it is doing now, as a number that the worker alone writes, with plain
 * stores, and that the master's watchdog reads now and then. The number changes with every callback
 * and every wait: when it stays the same, the worker is stuck. */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum fb_callback {
    FB_CALLBACK_NONE, /* the daemon's own code */
    FB_CALLBACK_WAIT, /* for events */
    FB_CALLBACK_OPENED,
    FB_CALLBACK_DATA,
    FB_CALLBACK_EOF,
    FB_CALLBACK_WRITABLE,
    FB_CALLBACK_TIMER,
    FB_CALLBACK_DRAINING,
    FB_CALLBACK_MESSAGE,
    FB_CALLBACK_ANSWERED,
    FB_CALLBACK_CLOSED,
    FB_CALLBACK_DONE,
    FB_CALLBACK_RELEASE,
    FB_CALLBACK_WORKER_STOP,
    FB_CALLBACKS,
};

#define FB_NO_PROTOCOL 0xffu

/* The number has, from the lowest bits: the callback (8), the protocol's index (8), a count. */
struct fb_heartbeat {
    _Atomic uint64_t now;
};

/* The callbacks' names in the SDK; NULL for those that are none. */
extern const char *const fb_callback_names[FB_CALLBACKS];

/* A callback or a wait begins. */
static inline void fb_heartbeat_begin(
    struct fb_heartbeat *heartbeat, enum fb_callback callback, unsigned protocol)
{
    uint64_t n = atomic_load_explicit(&heartbeat->now, memory_order_relaxed) >> 16;

    assert(callback > FB_CALLBACK_NONE && callback < FB_CALLBACKS && protocol <= FB_NO_PROTOCOL);
    atomic_store_explicit(
        &heartbeat->now, (n + 1) << 16 | protocol << 8 | callback, memory_order_relaxed);
}

/* The callback or the wait has returned. */
static inline void fb_heartbeat_end(struct fb_heartbeat *heartbeat)
{
    uint64_t n = atomic_load_explicit(&heartbeat->now, memory_order_relaxed);

    atomic_store_explicit(&heartbeat->now, n & ~(uint64_t)0xffff, memory_order_relaxed);
}

static inline uint64_t fb_heartbeat_now(const struct fb_heartbeat *heartbeat)
{
    return atomic_load_explicit(&heartbeat->now, memory_order_relaxed);
}

/* The callback in such a number; FB_CALLBACK_NONE where a worker has written nonsense. */
static inline enum fb_callback fb_heartbeat_callback(uint64_t now)
{
    return (now & 0xff) < FB_CALLBACKS ? (enum fb_callback)(now & 0xff) : FB_CALLBACK_NONE;
}

/* The index of the protocol in such a number, which may be none of ours. */
static inline unsigned fb_heartbeat_protocol(uint64_t now)
{
    return now >> 8 & 0xff;
}
