/* SPDX-License-Identifier: BSD-2-Clause */
/* The region that master and workers share: mapped before the first fork, it outlives every reload.
 *
 * Each worker lives in a slot and writes only its own slot's line, without locked instructions; the
 * master alone hands slots out, and when a worker has died folds its counters into the totals. */
#pragma once

#include "shm/heartbeat.h"
#include "shm/lock.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FB_SLOT_MAX 1024  /* of a master process ... */
#define FB_SLOT_SIDES 2   /* ... of which two may run side by side, while the binary changes */
#define FB_CACHE_LINE 128 /* two lines: the prefetcher fetches pairs */

enum fb_counter {
    FB_ACCEPTS,            /* connections taken from the kernel */
    FB_HANDLED,            /* of these, given to a server */
    FB_REQUESTS,           /* served, as the protocols count them */
    FB_GAUGES,             /* the counters from here on fall again, and end with their worker */
    FB_ACTIVE = FB_GAUGES, /* connections open */
    FB_READING,            /* of these, holding part of a request */
    FB_WRITING,            /* of these, holding output that the peer has not taken */
    FB_COUNTERS,
};

struct fb_counters {
    _Atomic uint64_t n[FB_COUNTERS];
};

struct fb_slot {
    alignas(FB_CACHE_LINE) _Atomic uint32_t serial; /* of its latest life; 0: never used */
    _Atomic uint32_t pid;                           /* 0: free */
    struct fb_counters counters;
    struct fb_heartbeat heartbeat;
};

struct fb_shared {
    uint32_t magic, version; /* the layout's */
    _Atomic uint32_t slot_n; /* no slot beyond has ever been used */
    _Atomic uint32_t folds;  /* odd while the master moves counters, so that readers try again */
    struct fb_counters folded;
    uint32_t side;   /* of its master process: the slots are numbered from side * FB_SLOT_MAX */
    uint32_t serial; /* the lives of a slot are counted from behind it */
    alignas(FB_CACHE_LINE) struct fb_shm_lock accept_mutex;
    struct fb_slot slots[FB_SLOT_MAX];
};

#define FB_SHARED_MAGIC 0x6662656bu
#define FB_SHARED_VERSION 2u

/* A mapping that children share; NULL with errno. Pages are touched as slots come into use. */
struct fb_shared *fb_shared_create(void);
void fb_shared_destroy(struct fb_shared **shared);

/* In place of 0 and 0, before the first slot is taken. Zones outlive a master process, and what is
 * kept in them by slot and serial must not be another worker's one day. */
void fb_shared_begin(struct fb_shared *shared, uint32_t side, uint32_t serial);
/* The greatest serial that a slot has had. */
uint32_t fb_shared_serial(const struct fb_shared *shared);

static inline struct fb_slot *fb_shared_slot(struct fb_shared *shared, struct fb_slot_id id)
{
    return &shared->slots[id.slot % FB_SLOT_MAX];
}

/* The master: takes a free slot, giving *id; false when all are in use. */
bool fb_slot_take(struct fb_shared *shared, struct fb_slot_id *id);
/* The master, when a slot's worker has died and before it is reaped: frees its locks, folds its
 * counters, zeroes its gauges, frees the slot. Says whether the worker held the accept mutex. */
bool fb_slot_bury(struct fb_shared *shared, struct fb_slot_id id);

/* The slot's own worker: only it writes, so that a plain load and store are enough. */
static inline void fb_count(struct fb_counters *counters, enum fb_counter counter, int64_t by)
{
    uint64_t n = atomic_load_explicit(&counters->n[counter], memory_order_relaxed);

    atomic_store_explicit(&counters->n[counter], n + (uint64_t)by, memory_order_relaxed);
}

/* The sums over all slots, living and dead. */
void fb_shared_totals(struct fb_shared *shared, uint64_t totals[FB_COUNTERS]);
