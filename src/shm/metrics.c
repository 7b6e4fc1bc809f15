/* SPDX-License-Identifier: BSD-2-Clause */
#include "shm/metrics.h"

#include <assert.h>
#include <string.h>

#define MAGIC 0x66626d74u
#define REVISION 2u

/* A reader that folds keep from seeing one state, which takes more of them than there are workers to
 * die, is content with what it has. */
#define TRIES 1000

/* Each master process has a side of its own, whose rows nobody else writes: two for the dead, of which
 * one is in force, then each slot's.
 *
 * A fold writes the other row of the dead, and with one store brings it into force and has readers
 * leave the dead slot out; then it zeroes that slot's row, and readers take it in again. So the
 * numbers are right after each instruction, and a fold that was broken off can be finished. */
struct fb_shm_metrics {
    alignas(FB_CACHE_LINE) uint32_t magic;
    uint32_t revision;
    uint32_t n;
    uint32_t stride; /* of a row, bytes */
    uint64_t rows;   /* where they begin, from here */
    struct {
        _Atomic uint64_t state;  /* see below */
        _Atomic uint32_t slot_n; /* no slot beyond has ever taken its row */
    } sides[FB_SLOT_SIDES];
    uint8_t kinds[];
};

#define DEAD_ROWS 2
#define SIDE_ROWS (DEAD_ROWS + FB_SLOT_MAX)

/* A state: which row of the dead is in force, the slot left out + 1 or 0, and a number that makes it
 * differ from all others. */

static uint32_t in_force(uint64_t state)
{
    return state & 1;
}

static uint32_t left_out(uint64_t state)
{
    return (uint32_t)state >> 1;
}

static size_t align(size_t n)
{
    return (n + FB_CACHE_LINE - 1) / FB_CACHE_LINE * FB_CACHE_LINE;
}

static size_t rows_at(uint32_t n)
{
    return align(offsetof(struct fb_shm_metrics, kinds) + n);
}

static fb_shm_row *row_at(const struct fb_shm_metrics *metrics, uint32_t row)
{
    return (fb_shm_row *)(void *)((char *)metrics + metrics->rows + (size_t)row * metrics->stride);
}

size_t fb_shm_metrics_size(const struct fb_shm_metrics_shape *shape)
{
    if (shape->n < 1 || shape->n > FB_SHM_METRICS_MAX)
        return 0;
    for (uint32_t i = 0; i < shape->n; i++)
        if (shape->kinds[i] != FB_SHM_COUNTER && shape->kinds[i] != FB_SHM_GAUGE)
            return 0;
    return rows_at(shape->n) +
           (size_t)FB_SLOT_SIDES * SIDE_ROWS * align(shape->n * sizeof(fb_shm_row));
}

void fb_shm_metrics_init(struct fb_shm_metrics *metrics, const struct fb_shm_metrics_shape *shape)
{
    assert(fb_shm_metrics_size(shape) != 0 && (uintptr_t)metrics % FB_CACHE_LINE == 0);
    metrics->n = shape->n;
    metrics->stride = (uint32_t)align(shape->n * sizeof(fb_shm_row));
    metrics->rows = rows_at(shape->n);
    memcpy(metrics->kinds, shape->kinds, shape->n);
    metrics->revision = REVISION;
    metrics->magic = MAGIC;
}

bool fb_shm_metrics_is(
    const struct fb_shm_metrics *metrics, const struct fb_shm_metrics_shape *shape)
{
    return metrics->magic == MAGIC && metrics->revision == REVISION && metrics->n == shape->n &&
           memcmp(metrics->kinds, shape->kinds, shape->n) == 0;
}

uint32_t fb_shm_metrics_n(const struct fb_shm_metrics *metrics)
{
    return metrics->n;
}

/* A slot's. */
static fb_shm_row *slot_row(const struct fb_shm_metrics *metrics, uint32_t slot)
{
    return row_at(metrics, slot / FB_SLOT_MAX * SIDE_ROWS + DEAD_ROWS + slot % FB_SLOT_MAX);
}

static fb_shm_row *dead_row(const struct fb_shm_metrics *metrics, uint32_t side, uint32_t force)
{
    return row_at(metrics, side * SIDE_ROWS + force);
}

fb_shm_row *fb_shm_metrics_row(struct fb_shm_metrics *metrics, uint32_t slot)
{
    _Atomic uint32_t *n = &metrics->sides[slot / FB_SLOT_MAX].slot_n;
    uint32_t slot_n = *n;

    assert(slot < FB_SLOT_SIDES * FB_SLOT_MAX);
    while (slot_n <= slot % FB_SLOT_MAX &&
           !atomic_compare_exchange_weak(n, &slot_n, slot % FB_SLOT_MAX + 1))
        ;
    return slot_row(metrics, slot);
}

static void add_row(const fb_shm_row *row, uint32_t first, uint32_t n, int64_t *totals)
{
    const fb_shm_row *numbers = row + first;

    for (uint32_t i = 0; i < n; i++)
        totals[i] = (int64_t)((uint64_t)totals[i] +
                              (uint64_t)atomic_load_explicit(&numbers[i], memory_order_relaxed));
}

/* Of a side that is in this state. */
static void add_side(const struct fb_shm_metrics *metrics, uint32_t side, uint64_t state,
    uint32_t first, uint32_t n, int64_t *totals)
{
    uint32_t slot_n = atomic_load_explicit(&metrics->sides[side].slot_n, memory_order_acquire);

    if (slot_n == 0) /* none of its rows was ever touched, and is not now */
        return;
    add_row(dead_row(metrics, side, in_force(state)), first, n, totals);
    for (uint32_t slot = 0; slot < slot_n && slot < FB_SLOT_MAX; slot++)
        if (slot + 1 != left_out(state))
            add_row(slot_row(metrics, side * FB_SLOT_MAX + slot), first, n, totals);
}

/* The totals of n metrics, from `first` on. */
static void sum(const struct fb_shm_metrics *metrics, uint32_t first, uint32_t n, int64_t *totals)
{
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t states[FB_SLOT_SIDES];
        bool same = true;

        memset(totals, 0, n * sizeof(totals[0]));
        for (uint32_t side = 0; side < FB_SLOT_SIDES; side++) {
            states[side] = atomic_load_explicit(&metrics->sides[side].state, memory_order_acquire);
            add_side(metrics, side, states[side], first, n, totals);
        }
        atomic_thread_fence(memory_order_acquire);
        for (uint32_t side = 0; side < FB_SLOT_SIDES; side++)
            same = same && states[side] == atomic_load_explicit(
                                               &metrics->sides[side].state, memory_order_relaxed);
        if (same)
            return;
    }
}

void fb_shm_metrics_totals(const struct fb_shm_metrics *metrics, int64_t *totals)
{
    sum(metrics, 0, metrics->n, totals);
}

int64_t fb_shm_metrics_total(const struct fb_shm_metrics *metrics, uint32_t metric)
{
    int64_t total;

    sum(metrics, metric, 1, &total);
    return total;
}

static void set_state(struct fb_shm_metrics *metrics, uint32_t side, uint32_t force, uint32_t out)
{
    uint64_t number = (metrics->sides[side].state >> 32) + 1;

    atomic_store_explicit(&metrics->sides[side].state, number << 32 | (uint64_t)out << 1 | force,
        memory_order_release);
    /* who sees anything that we write from now on sees the state too */
    atomic_thread_fence(memory_order_release);
}

/* The second half of a fold, of ours or of a master's that has died within. */
static void finish_fold(struct fb_shm_metrics *metrics, uint32_t side)
{
    uint64_t state = metrics->sides[side].state;
    uint32_t out = left_out(state);
    fb_shm_row *dead;

    if (out == 0)
        return;
    dead = slot_row(metrics, side * FB_SLOT_MAX + out - 1);
    for (uint32_t i = 0; i < metrics->n; i++)
        fb_shm_metric_set(&dead[i], 0);
    set_state(metrics, side, in_force(state), 0);
}

void fb_shm_metrics_fold(struct fb_shm_metrics *metrics, uint32_t slot)
{
    uint32_t side = slot / FB_SLOT_MAX, force;
    fb_shm_row *before, *after, *dead;

    if (slot % FB_SLOT_MAX >= metrics->sides[side].slot_n)
        return; /* its row was never touched, and is not now */
    finish_fold(metrics, side);
    force = in_force(metrics->sides[side].state);
    before = dead_row(metrics, side, force);
    after = dead_row(metrics, side, 1 - force);
    dead = slot_row(metrics, slot);
    for (uint32_t i = 0; i < metrics->n; i++) {
        fb_shm_metric_set(&after[i], before[i]);
        if (metrics->kinds[i] == FB_SHM_COUNTER)
            fb_shm_metric_add(&after[i], dead[i]);
    }
    set_state(metrics, side, 1 - force, slot % FB_SLOT_MAX + 1);
    finish_fold(metrics, side);
}

static size_t size_of(const void *shape)
{
    return fb_shm_metrics_size(shape);
}

static int init(void *memory, const void *shape)
{
    fb_shm_metrics_init(memory, shape);
    return 0;
}

static bool is(const void *memory, const void *shape)
{
    return fb_shm_metrics_is(memory, shape);
}

static void bury(void *memory, uint32_t slot)
{
    fb_shm_metrics_fold(memory, slot);
}

const struct fb_zone_kind fb_shm_metrics_kind = {
    .name = "metrics",
    .size = size_of,
    .init = init,
    .is = is,
    .bury = bury,
};
