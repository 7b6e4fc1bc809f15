/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics in shared memory: a row of numbers for each worker slot, which that slot's worker alone
 * writes, without locked instructions, and a row in which the master keeps what the dead have
 * counted. */
#pragma once

#include "shm/zone.h"

#include <stdatomic.h>
#include <stdint.h>

#define FB_SHM_METRICS_MAX 65536

enum fb_shm_metric {
    FB_SHM_COUNTER, /* only grows: its total survives who counted */
    FB_SHM_GAUGE,   /* falls again, and ends with its worker */
};

struct fb_shm_metrics_shape {
    uint32_t n;           /* 1 to FB_SHM_METRICS_MAX */
    const uint8_t *kinds; /* an enum fb_shm_metric each */
};

struct fb_shm_metrics;

/* One worker's numbers. */
typedef _Atomic int64_t fb_shm_row;

/* The bytes of a matrix; 0 if there cannot be such a one. */
size_t fb_shm_metrics_size(const struct fb_shm_metrics_shape *shape);
/* In so many zeroed bytes, aligned to FB_CACHE_LINE. */
void fb_shm_metrics_init(struct fb_shm_metrics *metrics, const struct fb_shm_metrics_shape *shape);
bool fb_shm_metrics_is(
    const struct fb_shm_metrics *metrics, const struct fb_shm_metrics_shape *shape);

/* For zones, with a struct fb_shm_metrics_shape as the shape. */
extern const struct fb_zone_kind fb_shm_metrics_kind;

uint32_t fb_shm_metrics_n(const struct fb_shm_metrics *metrics);
/* The slot's worker takes its row once; from then on the totals have it. */
fb_shm_row *fb_shm_metrics_row(struct fb_shm_metrics *metrics, uint32_t slot);
/* The sums over all rows, of the living and the dead. */
void fb_shm_metrics_totals(const struct fb_shm_metrics *metrics, int64_t *totals);
int64_t fb_shm_metrics_total(const struct fb_shm_metrics *metrics, uint32_t metric);
/* The master, when the worker of a slot has died: keeps its counters, forgets its gauges. Doing it
 * again changes nothing, and totals are right at every moment of it. */
void fb_shm_metrics_fold(struct fb_shm_metrics *metrics, uint32_t slot);

/* The slot's own worker: only it writes, so that a plain load and store are enough. */
static inline void fb_shm_metric_add(fb_shm_row *metric, int64_t by)
{
    uint64_t n = (uint64_t)atomic_load_explicit(metric, memory_order_relaxed);

    atomic_store_explicit(metric, (int64_t)(n + (uint64_t)by), memory_order_relaxed);
}

static inline void fb_shm_metric_set(fb_shm_row *metric, int64_t to)
{
    atomic_store_explicit(metric, to, memory_order_relaxed);
}
