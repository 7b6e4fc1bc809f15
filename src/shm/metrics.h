/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics in shared memory: a row of numbers for each worker slot, written by the slot's worker
 * alone, without locked instructions, and a row with the folded counters of dead workers, written
 * by the master. The layout follows from the shape, in private memory of each process: of
 * worker-writable memory only the numbers of rows are read. */
#pragma once

#include "shm/zone.h"

#include <stdatomic.h>
#include <stdint.h>

#define SHM_METRICS_MAX 65536

enum shm_metric {
    SHM_COUNTER, /* only grows: the total survives the counting worker */
    SHM_GAUGE,   /* falls again, and ends with its worker */
};

struct shm_metrics_shape {
    uint32_t n;           /* 1 to SHM_METRICS_MAX */
    const uint8_t *kinds; /* an enum shm_metric each; NULL: all are counters */
};

struct shm_metrics;

/* A worker's row: a number for each metric of the shape. */
typedef _Atomic int64_t shm_row;

/* The kind of zone with a struct shm_metrics_shape. */
extern const struct zone_kind shm_metrics_kind;

/* Whether a worker has ever had the slot's row. */
bool shm_metrics_had_worker(const struct shm_metrics *metrics, uint32_t slot);

/* The functions below get the memory's own shape. */

/* The master: only the first n metrics are used from now on, where all were; or more than before.
 * Others take no memory. */
void shm_metrics_use(
    struct shm_metrics *metrics, const struct shm_metrics_shape *shape, uint32_t n);

/* Returns a slot's row. */
shm_row *shm_metrics_row(
    struct shm_metrics *metrics, const struct shm_metrics_shape *shape, uint32_t slot);
/* Sums a metric over the rows of the living workers and the dead. */
int64_t shm_metrics_total(
    const struct shm_metrics *metrics, const struct shm_metrics_shape *shape, uint32_t metric);
/* Add to and set a metric of the caller's own row: a plain load and store are enough. */
static inline void shm_metric_add(shm_row *metric, int64_t by)
{
    uint64_t n = (uint64_t)atomic_load_explicit(metric, memory_order_relaxed);

    atomic_store_explicit(metric, (int64_t)(n + (uint64_t)by), memory_order_relaxed);
}

static inline void shm_metric_set(shm_row *metric, int64_t to)
{
    atomic_store_explicit(metric, to, memory_order_relaxed);
}
