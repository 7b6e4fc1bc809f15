/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of metrics, their totals, and the fold of a dead worker's row. The numbers are right after
 * each instruction of a fold, so that a master may die within one. */
#include "shm/metrics.h"

#include <assert.h>
#include <string.h>

#define MAGIC 0x66626d74u
#define REVISION 2u

/* The tries to read totals between two folds. A reader that folds disturb more often, for which
 * more workers must die than there are, returns the totals of its last try, which may be off by one
 * fold. */
#define TRIES 1000

/* The layout. Each master process has one half of the rows, which no other process writes: two rows
 * with the totals of dead workers, of which one is in force, then a row for each slot.
 *
 * A fold writes the row of the dead that is not in force; one store brings that row into force and
 * has readers leave the dead slot's row out. Then the fold zeroes that slot's row, and a second
 * store has readers take it in again. A fold that a master's death has cut off is finished by the
 * next. */
struct shm_metrics {
    alignas(CACHE_LINE) uint32_t magic;
    uint32_t revision;
    uint32_t n;
    uint32_t stride; /* bytes of a row */
    uint64_t rows;   /* offset of the first row */
    struct {
        _Atomic uint64_t state;  /* read by in_force() and left_out() */
        _Atomic uint32_t slot_n; /* no slot beyond has ever taken its row */
    } halves[SLOT_HALVES];
    uint8_t kinds[];
};

#define DEAD_ROWS 2
#define HALF_ROWS (DEAD_ROWS + SLOT_MAX)

/* A state has the row of the dead that is in force (1 bit), the slot left out + 1 or 0 (31), and a
 * number that makes it differ from all others. */
static uint32_t in_force(uint64_t state)
{
    return state & 1;
}

static uint32_t left_out(uint64_t state)
{
    return (uint32_t)state >> 1;
}

static size_t align_line(size_t n)
{
    return (n + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static size_t rows_at(uint32_t n)
{
    return align_line(offsetof(struct shm_metrics, kinds) + n);
}

static shm_row *row_at(const struct shm_metrics *metrics, uint32_t row)
{
    return (shm_row *)(void *)((char *)metrics + metrics->rows + (size_t)row * metrics->stride);
}

size_t shm_metrics_size(const struct shm_metrics_shape *shape)
{
    if (shape->n < 1 || shape->n > SHM_METRICS_MAX)
        return 0;
    for (uint32_t i = 0; i < shape->n; i++)
        if (shape->kinds[i] != SHM_COUNTER && shape->kinds[i] != SHM_GAUGE)
            return 0;
    return rows_at(shape->n) +
           (size_t)SLOT_HALVES * HALF_ROWS * align_line(shape->n * sizeof(shm_row));
}

void shm_metrics_init(struct shm_metrics *metrics, const struct shm_metrics_shape *shape)
{
    assert(shm_metrics_size(shape) != 0 && (uintptr_t)metrics % CACHE_LINE == 0);
    metrics->n = shape->n;
    metrics->stride = (uint32_t)align_line(shape->n * sizeof(shm_row));
    metrics->rows = rows_at(shape->n);
    memcpy(metrics->kinds, shape->kinds, shape->n);
    metrics->revision = REVISION;
    metrics->magic = MAGIC;
}

bool shm_metrics_is(const struct shm_metrics *metrics, const struct shm_metrics_shape *shape)
{
    return metrics->magic == MAGIC && metrics->revision == REVISION && metrics->n == shape->n &&
           metrics->stride == align_line(shape->n * sizeof(shm_row)) &&
           metrics->rows == rows_at(shape->n) &&
           memcmp(metrics->kinds, shape->kinds, shape->n) == 0;
}

uint32_t shm_metrics_n(const struct shm_metrics *metrics)
{
    return metrics->n;
}

static shm_row *slot_row(const struct shm_metrics *metrics, uint32_t slot)
{
    return row_at(metrics, slot / SLOT_MAX * HALF_ROWS + DEAD_ROWS + slot % SLOT_MAX);
}

static shm_row *dead_row(const struct shm_metrics *metrics, uint32_t half, uint32_t force)
{
    return row_at(metrics, half * HALF_ROWS + force);
}

shm_row *shm_metrics_row(struct shm_metrics *metrics, uint32_t slot)
{
    _Atomic uint32_t *n;
    uint32_t slot_n;

    assert(slot < SLOT_HALVES * SLOT_MAX);
    n = &metrics->halves[slot / SLOT_MAX].slot_n;
    slot_n = *n;
    while (
        slot_n <= slot % SLOT_MAX && !atomic_compare_exchange_weak(n, &slot_n, slot % SLOT_MAX + 1))
        ;
    return slot_row(metrics, slot);
}

static void add_row(const shm_row *row, uint32_t first, uint32_t n, int64_t *totals)
{
    const shm_row *numbers = row + first;

    for (uint32_t i = 0; i < n; i++)
        totals[i] = (int64_t)((uint64_t)totals[i] +
                              (uint64_t)atomic_load_explicit(&numbers[i], memory_order_relaxed));
}

/* Adds the rows of one half, in the given state. */
static void add_half(const struct shm_metrics *metrics, uint32_t half, uint64_t state,
    uint32_t first, uint32_t n, int64_t *totals)
{
    uint32_t slot_n = atomic_load_explicit(&metrics->halves[half].slot_n, memory_order_acquire);

    if (slot_n == 0) /* no row of this half was ever used: do not touch its pages */
        return;
    add_row(dead_row(metrics, half, in_force(state)), first, n, totals);
    for (uint32_t slot = 0; slot < slot_n && slot < SLOT_MAX; slot++)
        if (slot + 1 != left_out(state))
            add_row(slot_row(metrics, half * SLOT_MAX + slot), first, n, totals);
}

/* Sums n metrics, from `first` on. */
static void sum_rows(const struct shm_metrics *metrics, uint32_t first, uint32_t n, int64_t *totals)
{
    assert(totals != NULL && n > 0);
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t states[SLOT_HALVES];
        bool same = true;

        memset(totals, 0, n * sizeof(totals[0]));
        for (uint32_t half = 0; half < SLOT_HALVES; half++) {
            states[half] = atomic_load_explicit(&metrics->halves[half].state, memory_order_acquire);
            add_half(metrics, half, states[half], first, n, totals);
        }
        atomic_thread_fence(memory_order_acquire);
        for (uint32_t half = 0; half < SLOT_HALVES; half++)
            same = same && states[half] == atomic_load_explicit(
                                               &metrics->halves[half].state, memory_order_relaxed);
        if (same)
            return;
    }
}

void shm_metrics_totals(const struct shm_metrics *metrics, int64_t *totals)
{
    sum_rows(metrics, 0, metrics->n, totals);
}

int64_t shm_metrics_total(const struct shm_metrics *metrics, uint32_t metric)
{
    int64_t total;

    sum_rows(metrics, metric, 1, &total);
    return total;
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

/* Finishes a fold: our own, or one that a dead master has left incomplete. */
static void finish_fold(struct shm_metrics *metrics, uint32_t half)
{
    uint64_t state = metrics->halves[half].state;
    uint32_t out = left_out(state);
    shm_row *dead;

    if (out == 0 || out > SLOT_MAX) /* beyond: a stray pointer has written there */
        return;
    dead = slot_row(metrics, half * SLOT_MAX + out - 1);
    for (uint32_t i = 0; i < metrics->n; i++)
        shm_metric_set(&dead[i], 0);
    set_state(metrics, half, in_force(state), 0);
}

void shm_metrics_fold(struct shm_metrics *metrics, uint32_t slot)
{
    uint32_t half = slot / SLOT_MAX, force;
    shm_row *before, *after, *dead;

    assert(slot < SLOT_HALVES * SLOT_MAX);
    if (slot % SLOT_MAX >= metrics->halves[half].slot_n)
        return; /* the slot's row was never touched, and is not now */
    finish_fold(metrics, half);
    force = in_force(metrics->halves[half].state);
    before = dead_row(metrics, half, force);
    after = dead_row(metrics, half, 1 - force);
    dead = slot_row(metrics, slot);
    for (uint32_t i = 0; i < metrics->n; i++) {
        shm_metric_set(&after[i], before[i]);
        if (metrics->kinds[i] == SHM_COUNTER)
            shm_metric_add(&after[i], dead[i]);
    }
    set_state(metrics, half, 1 - force, slot % SLOT_MAX + 1);
    finish_fold(metrics, half);
}

static size_t metrics_size(const void *shape)
{
    return shm_metrics_size(shape);
}

static int init_metrics(void *memory, const void *shape)
{
    shm_metrics_init(memory, shape);
    return 0;
}

static bool is_metrics(const void *memory, const void *shape)
{
    return shm_metrics_is(memory, shape);
}

/* Workers can write to the memory: the master folds nothing where it is spoiled. */
static void release_slot(void *memory, const void *shape, struct slot_id id)
{
    if (shm_metrics_is(memory, shape))
        shm_metrics_fold(memory, id.slot);
}

static void check_half(const struct shm_metrics *metrics, uint32_t half)
{
    uint64_t state = metrics->halves[half].state;
    uint32_t slot_n = metrics->halves[half].slot_n;

    assert(slot_n <= SLOT_MAX && left_out(state) <= slot_n);
    for (uint32_t i = 0; slot_n > 0 && i < metrics->n; i++)
        assert(metrics->kinds[i] != SHM_GAUGE || dead_row(metrics, half, in_force(state))[i] == 0);
}

void shm_metrics_check(const struct shm_metrics *metrics)
{
    assert(metrics->magic == MAGIC && metrics->revision == REVISION);
    assert(metrics->n >= 1 && metrics->n <= SHM_METRICS_MAX);
    assert(metrics->stride % CACHE_LINE == 0 && metrics->rows % CACHE_LINE == 0);
    for (uint32_t i = 0; i < metrics->n; i++)
        assert(metrics->kinds[i] == SHM_COUNTER || metrics->kinds[i] == SHM_GAUGE);
    for (uint32_t half = 0; half < SLOT_HALVES; half++)
        check_half(metrics, half);
}

const struct zone_kind shm_metrics_kind = {
    .name = "metrics",
    .size = metrics_size,
    .init = init_metrics,
    .is = is_metrics,
    .slot_released = release_slot,
};
