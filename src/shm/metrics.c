/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of metrics, their totals, and the fold of a dead worker's row. The numbers are right after
 * each instruction, so that a master may die within the fold. Only masters write the layout and the
 * state of folds, bounded here all the same. */
#include "shm/metrics.h"

#include <assert.h>
#include <string.h>

#define MAGIC 0x66626d74u
#define REVISION 4u

/* Tries to read totals between two folds; the last try's may be off by one fold. */
#define TRIES 1000

/* The layout: the header, then the rows, of whole pages, so that a worker can write a single row. A
 * master process has one half of the rows: two rows with the totals of dead workers, only one in
 * force, then a row for each slot. No worker can write to the header and to the rows of the dead.
 *
 * A fold writes the dead workers' row not in force; one store brings the row into force and has
 * readers leave the dead slot's row out. Then the fold zeroes the slot's row, and a second store
 * has readers include the row again. The next master finishes a fold cut off by a master's
 * death. */
struct shm_metrics {
    alignas(CACHE_LINE) uint32_t magic;
    uint32_t revision;
    uint32_t n;
    uint32_t used; /* metrics that workers write: the first */
    struct {
        _Atomic uint64_t state;  /* read by in_force() and left_out() */
        _Atomic uint32_t slot_n; /* no slot beyond has ever had a worker */
    } halves[SLOT_HALVES];
    uint8_t kinds[];
};

#define DEAD_ROWS 2
#define HALF_ROWS (DEAD_ROWS + SLOT_MAX)

/* A state has the dead workers' row in force (1 bit), the slot left out + 1 or 0 (31), and a
 * growing number. */
static uint32_t in_force(uint64_t state)
{
    return state & 1;
}

static uint32_t left_out(uint64_t state)
{
    return (uint32_t)state >> 1;
}

/* Offset of the first row. */
static size_t rows_at(uint32_t n)
{
    return segment_pages(offsetof(struct shm_metrics, kinds) + n);
}

static size_t row_bytes(uint32_t n)
{
    return segment_pages(n * sizeof(shm_row));
}

static uint32_t row_of_slot(uint32_t slot)
{
    return slot / SLOT_MAX * HALF_ROWS + DEAD_ROWS + slot % SLOT_MAX;
}

static shm_row *row_at(const struct shm_metrics *metrics, uint32_t n, uint32_t row)
{
    assert(row < SLOT_HALVES * HALF_ROWS);
    return (shm_row *)(void *)((char *)metrics + rows_at(n) + row * row_bytes(n));
}

static size_t metrics_size(const void *memory_shape)
{
    const struct shm_metrics_shape *shape = memory_shape;

    if (shape->n < 1 || shape->n > SHM_METRICS_MAX)
        return 0;
    for (uint32_t i = 0; i < shape->n && shape->kinds != NULL; i++)
        if (shape->kinds[i] != SHM_COUNTER && shape->kinds[i] != SHM_GAUGE)
            return 0;
    return rows_at(shape->n) + (size_t)SLOT_HALVES * HALF_ROWS * row_bytes(shape->n);
}

static int init_metrics(void *memory, const void *memory_shape)
{
    const struct shm_metrics_shape *shape = memory_shape;
    struct shm_metrics *metrics = memory;

    assert(metrics_size(shape) != 0 && (uintptr_t)metrics % segment_page() == 0);
    metrics->n = metrics->used = shape->n;
    if (shape->kinds != NULL)
        memcpy(metrics->kinds, shape->kinds, shape->n);
    metrics->revision = REVISION;
    metrics->magic = MAGIC;
    return 0;
}

static bool is_metrics(const void *memory, const void *memory_shape)
{
    const struct shm_metrics_shape *shape = memory_shape;
    const struct shm_metrics *metrics = memory;

    return metrics->magic == MAGIC && metrics->revision == REVISION && metrics->n == shape->n &&
           metrics->used <= metrics->n &&
           (shape->kinds == NULL || memcmp(metrics->kinds, shape->kinds, shape->n) == 0);
}

void shm_metrics_use(struct shm_metrics *metrics, const struct shm_metrics_shape *shape, uint32_t n)
{
    assert(n <= shape->n);
    metrics->used = n;
}

/* Includes the slot's row in the totals. */
static void acquire_row(void *memory, const void *shape, struct slot_id id)
{
    struct shm_metrics *metrics = memory;
    _Atomic uint32_t *n = &metrics->halves[id.slot / SLOT_MAX].slot_n;

    (void)shape;
    assert(id.slot < SLOT_HALVES * SLOT_MAX);
    if (*n <= id.slot % SLOT_MAX)
        *n = id.slot % SLOT_MAX + 1;
}

bool shm_metrics_had_worker(const struct shm_metrics *metrics, uint32_t slot)
{
    assert(slot < SLOT_HALVES * SLOT_MAX);
    return slot % SLOT_MAX < metrics->halves[slot / SLOT_MAX].slot_n;
}

static shm_row *dead_row(
    const struct shm_metrics *metrics, uint32_t n, uint32_t half, uint32_t force)
{
    return row_at(metrics, n, half * HALF_ROWS + force);
}

shm_row *shm_metrics_row(
    struct shm_metrics *metrics, const struct shm_metrics_shape *shape, uint32_t slot)
{
    assert(slot < SLOT_HALVES * SLOT_MAX);
    return row_at(metrics, shape->n, row_of_slot(slot));
}

static uint64_t number_in(const shm_row *row, uint32_t metric)
{
    return (uint64_t)atomic_load_explicit(&row[metric], memory_order_relaxed);
}

/* Sums a metric over a half's rows, in the given state. */
static uint64_t sum_half(
    const struct shm_metrics *metrics, uint32_t n, uint32_t half, uint64_t state, uint32_t metric)
{
    uint32_t slot_n = atomic_load_explicit(&metrics->halves[half].slot_n, memory_order_acquire);
    uint64_t sum;

    assert(half < SLOT_HALVES && metric < n);
    if (slot_n == 0) /* no row of this half was ever used: do not touch the pages */
        return 0;
    sum = number_in(dead_row(metrics, n, half, in_force(state)), metric);
    for (uint32_t slot = 0; slot < slot_n && slot < SLOT_MAX; slot++)
        if (slot + 1 != left_out(state))
            sum += number_in(row_at(metrics, n, row_of_slot(half * SLOT_MAX + slot)), metric);
    return sum;
}

int64_t shm_metrics_total(
    const struct shm_metrics *metrics, const struct shm_metrics_shape *shape, uint32_t metric)
{
    uint64_t sum = 0;

    assert(metric < shape->n);
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t states[SLOT_HALVES];
        bool same = true;

        sum = 0;
        for (uint32_t half = 0; half < SLOT_HALVES; half++) {
            states[half] = atomic_load_explicit(&metrics->halves[half].state, memory_order_acquire);
            sum += sum_half(metrics, shape->n, half, states[half], metric);
        }
        atomic_thread_fence(memory_order_acquire);
        for (uint32_t half = 0; half < SLOT_HALVES; half++)
            same = same && states[half] == atomic_load_explicit(
                                               &metrics->halves[half].state, memory_order_relaxed);
        if (same)
            break;
    }
    return (int64_t)sum;
}

static void set_state(struct shm_metrics *metrics, uint32_t half, uint32_t force, uint32_t out)
{
    uint64_t number = (metrics->halves[half].state >> 32) + 1;

    assert(half < SLOT_HALVES && force < DEAD_ROWS && out <= SLOT_MAX);
    atomic_store_explicit(&metrics->halves[half].state, number << 32 | (uint64_t)out << 1 | force,
        memory_order_release);
    /* a reader that sees anything written from now on sees the state too */
    atomic_thread_fence(memory_order_release);
}

/* Finishes a fold: our own, or left incomplete by a dead master. */
static void finish_fold(struct shm_metrics *metrics, uint32_t n, uint32_t half)
{
    uint32_t used = metrics->used;
    uint64_t state = metrics->halves[half].state;
    uint32_t out = left_out(state);
    shm_row *dead;

    if (out == 0 || out > SLOT_MAX) /* beyond: written by another master's stray pointer */
        return;
    dead = row_at(metrics, n, row_of_slot(half * SLOT_MAX + out - 1));
    for (uint32_t i = 0; i < used && i < n; i++)
        shm_metric_set(&dead[i], 0);
    set_state(metrics, half, in_force(state), 0);
}

/* Folds the row of a slot: adds counters to the totals, and discards gauges. A second fold changes
 * nothing. */
static void fold_row(void *memory, const void *memory_shape, struct slot_id id)
{
    const struct shm_metrics_shape *shape = memory_shape;
    struct shm_metrics *metrics = memory;
    uint32_t slot = id.slot, half = slot / SLOT_MAX, n = shape->n, force;
    shm_row *before, *after, *dead;

    assert(slot < SLOT_HALVES * SLOT_MAX);
    if (!shm_metrics_had_worker(metrics, slot))
        return; /* the slot's row was never touched, and is not now */
    finish_fold(metrics, n, half);
    force = in_force(metrics->halves[half].state);
    before = dead_row(metrics, n, half, force);
    after = dead_row(metrics, n, half, 1 - force);
    dead = row_at(metrics, n, row_of_slot(slot));
    for (uint32_t i = 0; i < metrics->used && i < n; i++) {
        shm_metric_set(&after[i], before[i]);
        if (shape->kinds == NULL || shape->kinds[i] == SHM_COUNTER)
            shm_metric_add(&after[i], dead[i]);
    }
    set_state(metrics, half, 1 - force, slot % SLOT_MAX + 1);
    finish_fold(metrics, n, half);
}

/* A worker writes its own row. */
static struct segment_part writable_row(const void *shape, uint32_t slot)
{
    uint32_t n = ((const struct shm_metrics_shape *)shape)->n;

    return (struct segment_part) {
        .offset = rows_at(n) + row_of_slot(slot) * row_bytes(n),
        .size = row_bytes(n),
    };
}

const struct zone_kind shm_metrics_kind = {
    .name = "metrics",
    .size = metrics_size,
    .init = init_metrics,
    .is = is_metrics,
    .writable = writable_row,
    .slot_acquired = acquire_row,
    .slot_released = fold_row,
};
