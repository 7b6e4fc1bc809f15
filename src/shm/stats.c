/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory of statistics and its rows of numbers, which are metrics (shm/metrics.c): a dead
 * worker's are folded there, after its clients are counted as ended. Only masters write the
 * directory, which a second master process checks before it is used. */
#include "shm/stats.h"

#include "shm/metrics.h"

#include <assert.h>
#include <bsd/string.h>
#include <string.h>

#define MAGIC 0x66627374u
#define REVISION 1u
#define NUMBERS (sizeof(struct stats) / sizeof(shm_row)) /* of an entry */

static_assert(sizeof(struct stats) % sizeof(shm_row) == 0, "an entry's numbers are metrics");
static_assert(STATS_ENTRIES_MOST * NUMBERS <= SHM_METRICS_MAX, "a zone has all entries");
static_assert(offsetof(struct stats_totals, active) == sizeof(struct stats), "equal numbers");

struct entry {
    char protocol[32], address[128], name[64];
};

/* The layout: the directory in whole pages, then the metrics. */
struct directory {
    alignas(CACHE_LINE) uint32_t magic;
    uint32_t revision;
    uint32_t capacity;
    uint32_t n; /* entries in use, the first included, which has no key */
    struct entry entries[];
};

static struct shm_metrics_shape metrics_shape(uint32_t capacity)
{
    return (struct shm_metrics_shape) { .n = capacity * NUMBERS, .kinds = NULL };
}

static size_t metrics_at(uint32_t capacity)
{
    return segment_pages(offsetof(struct directory, entries) + capacity * sizeof(struct entry));
}

static struct shm_metrics *metrics_of(const void *memory)
{
    const struct directory *directory = memory;

    return (void *)((char *)memory + metrics_at(directory->capacity));
}

static size_t stats_size(const void *memory_shape)
{
    const struct stats_shape *shape = memory_shape;
    struct shm_metrics_shape metrics = metrics_shape(shape->capacity);

    if (shape->capacity < 2 || shape->capacity > STATS_ENTRIES_MOST)
        return 0;
    return metrics_at(shape->capacity) + shm_metrics_kind.size(&metrics);
}

static int init_stats(void *memory, const void *memory_shape)
{
    const struct stats_shape *shape = memory_shape;
    struct shm_metrics_shape metrics = metrics_shape(shape->capacity);
    struct directory *directory = memory;

    directory->capacity = shape->capacity;
    directory->n = 1;
    if (shm_metrics_kind.init(metrics_of(memory), &metrics) == -1)
        return -1;
    shm_metrics_use(metrics_of(memory), &metrics, NUMBERS);
    directory->revision = REVISION;
    directory->magic = MAGIC;
    return 0;
}

static bool has_end(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Whether the memory is statistics, of any capacity. */
static bool is_whole(const void *memory)
{
    const struct directory *directory = memory;
    struct shm_metrics_shape metrics;

    if (directory->magic != MAGIC || directory->revision != REVISION || directory->capacity < 2 ||
        directory->capacity > STATS_ENTRIES_MOST || directory->n < 1 ||
        directory->n > directory->capacity)
        return false;
    for (uint32_t i = 0; i < directory->n; i++) {
        const struct entry *entry = &directory->entries[i];

        if (!has_end(entry->protocol, sizeof(entry->protocol)) ||
            !has_end(entry->address, sizeof(entry->address)) ||
            !has_end(entry->name, sizeof(entry->name)))
            return false;
    }
    metrics = metrics_shape(directory->capacity);
    return shm_metrics_kind.is(metrics_of(memory), &metrics);
}

static bool is_stats(const void *memory, const void *shape)
{
    (void)shape;
    return is_whole(memory);
}

static bool fits(const void *memory, size_t size, const void *shape)
{
    const struct directory *directory = memory;
    struct stats_shape own;

    (void)shape;
    if (size < sizeof(*directory))
        return false;
    own.capacity = directory->capacity;
    return stats_size(&own) != 0 && segment_pages(stats_size(&own)) == size && is_whole(memory);
}

static struct segment_part writable_numbers(const void *memory_shape, uint32_t slot)
{
    const struct stats_shape *shape = memory_shape;
    struct shm_metrics_shape metrics = metrics_shape(shape->capacity);
    struct segment_part part = shm_metrics_kind.writable(&metrics, slot);

    part.offset += metrics_at(shape->capacity);
    return part;
}

static void acquire_numbers(void *memory, const void *shape, struct slot_id id)
{
    (void)shape;
    shm_metrics_kind.slot_acquired(metrics_of(memory), NULL, id);
}

/* Counts the clients of a dead worker as ended. Changes nothing when it is done again. */
static void end_clients(struct stats *stats)
{
    uint64_t ended = 0;

    for (unsigned i = 0; i < STATS_ENDS; i++)
        if (i != STATS_END_DIED)
            ended += atomic_load_explicit(&stats->ended[i], memory_order_relaxed);
    atomic_store_explicit(&stats->ended[STATS_END_DIED],
        atomic_load_explicit(&stats->accepts, memory_order_relaxed) - ended, memory_order_relaxed);
}

static void fold_numbers(void *memory, const void *shape, struct slot_id id)
{
    struct directory *directory = memory;
    struct shm_metrics_shape metrics = metrics_shape(directory->capacity);

    (void)shape;
    if (!shm_metrics_had_worker(metrics_of(memory), id.slot))
        return;
    for (uint32_t i = 0; i < directory->n; i++)
        end_clients(stats_of_slot(memory, id.slot, i));
    shm_metrics_kind.slot_released(metrics_of(memory), &metrics, id);
}

const struct zone_kind stats_kind = {
    .name = "stats",
    .size = stats_size,
    .init = init_stats,
    .is = is_stats,
    .fits = fits,
    .writable = writable_numbers,
    .slot_acquired = acquire_numbers,
    .slot_released = fold_numbers,
};

void stats_open(const void *memory, struct stats_shape *shape)
{
    const struct directory *directory = memory;

    shape->capacity = directory->capacity;
}

/* Whether a text is the entry's, which may be cut. */
static bool is_cut_of(const char *entered, size_t size, const char *text)
{
    size_t n = strnlen(text, size - 1);

    return strlen(entered) == n && memcmp(entered, text, n) == 0;
}

uint32_t stats_enter(void *memory, const struct stats_key *key)
{
    struct directory *directory = memory;
    struct shm_metrics_shape metrics = metrics_shape(directory->capacity);
    struct entry *entry;
    uint32_t i;

    for (i = 1; i < directory->n; i++) {
        entry = &directory->entries[i];
        if (is_cut_of(entry->address, sizeof(entry->address), key->address) &&
            is_cut_of(entry->protocol, sizeof(entry->protocol), key->protocol) &&
            is_cut_of(entry->name, sizeof(entry->name), key->name))
            return i;
    }
    if (i == directory->capacity)
        return 0;
    entry = &directory->entries[i];
    strlcpy(entry->protocol, key->protocol, sizeof(entry->protocol));
    strlcpy(entry->address, key->address, sizeof(entry->address));
    strlcpy(entry->name, key->name, sizeof(entry->name));
    shm_metrics_use(metrics_of(memory), &metrics, (i + 1) * NUMBERS);
    directory->n = i + 1;
    return i;
}

uint32_t stats_n(const void *memory)
{
    return ((const struct directory *)memory)->n;
}

struct stats_key stats_key_of(const void *memory, uint32_t entry)
{
    const struct directory *directory = memory;

    assert(entry < directory->n);
    return (struct stats_key) {
        .protocol = directory->entries[entry].protocol,
        .address = directory->entries[entry].address,
        .name = directory->entries[entry].name,
    };
}

struct stats *stats_of_slot(void *memory, uint32_t slot, uint32_t entry)
{
    const struct directory *directory = memory;
    struct shm_metrics_shape metrics = metrics_shape(directory->capacity);

    assert(entry < directory->capacity);
    return (void *)(shm_metrics_row(metrics_of(memory), &metrics, slot) + entry * NUMBERS);
}

void stats_read(const void *memory, uint32_t entry, struct stats_totals *totals)
{
    const struct directory *directory = memory;
    struct shm_metrics_shape metrics = metrics_shape(directory->capacity);
    uint64_t numbers[NUMBERS], ended = 0;

    assert(entry < directory->n);
    /* ends before accepts, which come first in an entry: an end that is seen was accepted */
    for (uint32_t i = NUMBERS; i-- > 0;) {
        numbers[i] = (uint64_t)shm_metrics_total(metrics_of(memory), &metrics, entry * NUMBERS + i);
        atomic_thread_fence(memory_order_acquire);
    }
    memcpy(totals, numbers, sizeof(numbers));
    for (unsigned i = 0; i < STATS_ENDS; i++)
        ended += totals->ended[i];
    totals->active = totals->accepts > ended ? totals->accepts - ended : 0; /* input of workers */
}
