/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory of statistics and its rows of numbers, which are metrics (shm/metrics.c): a dead
 * worker's are folded there, after its clients are counted as ended. Only masters write the
 * directory, which a second master process checks before it is used. */
#include "shm/stats.h"

#include "base/compiler.h"
#include "shm/metrics.h"

#include <assert.h>
#include <bsd/string.h>
#include <string.h>

#define MAGIC 0x66627374u
#define REVISION 2u
#define NUMBERS_IN(type) (sizeof(type) / sizeof(shm_row))

/* The numbers of an entry: the first counts begins, and `ends` numbers from `ended` on the ends. */
static const struct layout {
    uint32_t n, ended, ends;
} layouts[] = {
    [STATS_OF_LISTENS] = { NUMBERS_IN(struct stats), NUMBERS_IN(struct stats_traffic) + 1,
        STATS_ENDS },
    [STATS_OF_TRIES] = { NUMBERS_IN(struct stats_tries), NUMBERS_IN(struct stats_traffic) + 1,
        STATS_TRY_ENDS },
};

/* The most numbers of an entry, with the totals' `active`. */
#define NUMBERS_MOST NUMBERS_IN(struct stats_tries_totals)

static_assert(STATS_ENTRIES_MOST * NUMBERS_IN(struct stats) <= SHM_METRICS_MAX, "for all entries");
static_assert(
    sizeof(struct stats_totals) == sizeof(struct stats) + sizeof(uint64_t) &&
        sizeof(struct stats_tries_totals) == sizeof(struct stats_tries) + sizeof(uint64_t) &&
        sizeof(struct stats_totals) <= sizeof(struct stats_tries_totals),
    "equal numbers");

struct entry {
    char protocol[32], address[128], name[64];
};

/* The layout: the directory in whole pages, then the metrics. */
struct directory {
    alignas(CACHE_LINE) uint32_t magic;
    uint32_t revision;
    uint32_t of; /* enum stats_of */
    uint32_t capacity;
    uint32_t n; /* entries in use, the first included, which has no key */
    struct entry entries[];
};

static bool is_valid(uint32_t of, uint32_t capacity)
{
    return of < countof(layouts) && capacity >= 2 && capacity <= STATS_ENTRIES_MOST &&
           capacity * layouts[of].n <= SHM_METRICS_MAX;
}

static struct shm_metrics_shape metrics_shape(const struct directory *directory)
{
    assert(directory->of < countof(layouts));
    return (struct shm_metrics_shape) { .n = directory->capacity * layouts[directory->of].n };
}

static struct directory directory_for(const struct stats_shape *shape)
{
    return (struct directory) { .of = shape->of, .capacity = shape->capacity };
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
    const struct directory directory = directory_for(memory_shape);
    struct shm_metrics_shape metrics;

    if (!is_valid(directory.of, directory.capacity))
        return 0;
    metrics = metrics_shape(&directory);
    return metrics_at(directory.capacity) + shm_metrics_kind.size(&metrics);
}

static int init_stats(void *memory, const void *memory_shape)
{
    const struct directory wanted = directory_for(memory_shape);
    struct shm_metrics_shape metrics = metrics_shape(&wanted);
    struct directory *directory = memory;

    directory->of = wanted.of;
    directory->capacity = wanted.capacity;
    directory->n = 1;
    if (shm_metrics_kind.init(metrics_of(memory), &metrics) == -1)
        return -1;
    shm_metrics_use(metrics_of(memory), &metrics, layouts[wanted.of].n);
    directory->revision = REVISION;
    directory->magic = MAGIC;
    return 0;
}

static bool has_end(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Whether the memory is statistics of the shape's numbers, of any capacity. */
static bool is_whole(const void *memory, const struct stats_shape *shape)
{
    const struct directory *directory = memory;
    struct shm_metrics_shape metrics;

    if (directory->magic != MAGIC || directory->revision != REVISION ||
        directory->of != shape->of || !is_valid(directory->of, directory->capacity) ||
        directory->n < 1 || directory->n > directory->capacity)
        return false;
    for (uint32_t i = 0; i < directory->n; i++) {
        const struct entry *entry = &directory->entries[i];

        if (!has_end(entry->protocol, sizeof(entry->protocol)) ||
            !has_end(entry->address, sizeof(entry->address)) ||
            !has_end(entry->name, sizeof(entry->name)))
            return false;
    }
    metrics = metrics_shape(directory);
    return shm_metrics_kind.is(metrics_of(memory), &metrics);
}

static bool is_stats(const void *memory, const void *shape)
{
    return is_whole(memory, shape);
}

static bool fits(const void *memory, size_t size, const void *memory_shape)
{
    const struct directory *directory = memory;
    struct stats_shape own = *(const struct stats_shape *)memory_shape;

    if (size < sizeof(*directory))
        return false;
    own.capacity = directory->capacity;
    return stats_size(&own) != 0 && segment_pages(stats_size(&own)) == size &&
           is_whole(memory, &own);
}

static struct segment_part writable_numbers(const void *memory_shape, uint32_t slot)
{
    const struct directory directory = directory_for(memory_shape);
    struct shm_metrics_shape metrics = metrics_shape(&directory);
    struct segment_part part = shm_metrics_kind.writable(&metrics, slot);

    part.offset += metrics_at(directory.capacity);
    return part;
}

static void acquire_numbers(void *memory, const void *shape, struct slot_id id)
{
    (void)shape;
    shm_metrics_kind.slot_acquired(metrics_of(memory), NULL, id);
}

static shm_row *numbers_of_slot(void *memory, uint32_t slot, uint32_t entry)
{
    const struct directory *directory = memory;
    struct shm_metrics_shape metrics = metrics_shape(directory);

    assert(entry < directory->capacity);
    return shm_metrics_row(metrics_of(memory), &metrics, slot) + entry * layouts[directory->of].n;
}

/* Counts the clients or tries of a dead worker as ended. Changes nothing when it is done again. */
static void end_running(const struct layout *layout, shm_row *numbers)
{
    shm_row *ended = numbers + layout->ended;
    uint64_t n = 0;

    for (uint32_t i = 0; i < layout->ends - 1; i++)
        n += (uint64_t)atomic_load_explicit(&ended[i], memory_order_relaxed);
    shm_metric_set(&ended[layout->ends - 1],
        (int64_t)((uint64_t)atomic_load_explicit(numbers, memory_order_relaxed) - n));
}

static void fold_numbers(void *memory, const void *shape, struct slot_id id)
{
    struct directory *directory = memory;
    struct shm_metrics_shape metrics = metrics_shape(directory);

    (void)shape;
    if (!shm_metrics_had_worker(metrics_of(memory), id.slot))
        return;
    for (uint32_t i = 0; i < directory->n; i++)
        end_running(&layouts[directory->of], numbers_of_slot(memory, id.slot, i));
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
    struct shm_metrics_shape metrics = metrics_shape(directory);
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
    shm_metrics_use(metrics_of(memory), &metrics, (i + 1) * layouts[directory->of].n);
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

void *stats_of_slot(void *memory, uint32_t slot, uint32_t entry)
{
    return numbers_of_slot(memory, slot, entry);
}

uint64_t stats_number(const void *memory, uint32_t entry, uint32_t number)
{
    const struct directory *directory = memory;
    struct shm_metrics_shape metrics = metrics_shape(directory);
    uint32_t n = layouts[directory->of].n;

    assert(entry < directory->n && number < n);
    return (uint64_t)shm_metrics_total(metrics_of(directory), &metrics, entry * n + number);
}

/* Reads the numbers of an entry; returns how many clients or tries run. */
static uint64_t read_numbers(
    const struct directory *directory, uint32_t entry, uint64_t numbers[NUMBERS_MOST])
{
    const struct layout *layout = &layouts[directory->of];
    uint64_t ended = 0;

    /* ends before begins, which come first in an entry: an end that is seen has begun */
    for (uint32_t i = layout->n; i-- > 0;) {
        numbers[i] = stats_number(directory, entry, i);
        atomic_thread_fence(memory_order_acquire);
    }
    for (uint32_t i = 0; i < layout->ends; i++)
        ended += numbers[layout->ended + i];
    return numbers[0] > ended ? numbers[0] - ended : 0; /* input of workers */
}

void stats_read(const void *memory, uint32_t entry, void *totals, size_t size)
{
    const struct directory *directory = memory;
    uint64_t numbers[NUMBERS_MOST];

    assert(size == (layouts[directory->of].n + 1) * sizeof(numbers[0]));
    numbers[layouts[directory->of].n] = read_numbers(directory, entry, numbers);
    memcpy(totals, numbers, size);
}

uint64_t stats_active(const void *memory, uint32_t entry)
{
    uint64_t numbers[NUMBERS_MOST];

    return read_numbers(memory, entry, numbers);
}

uint64_t stats_sum_active(const void *memory)
{
    uint64_t active = 0;

    for (uint32_t i = 0; i < stats_n(memory); i++)
        active += stats_active(memory, i);
    return active;
}
