/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of limits, computed from the shape alone: each process has its own copy, and believes
 * nothing in the memory about sizes and places. The header, which masters alone write, fills its
 * pages; they publish there which workers live, and touch nothing else. */
#include "shm/limit_private.h"
#include "shm/siphash.h"

#include <assert.h>
#include <bsd/stdlib.h>
#include <string.h>

/* A shard that is full has no room for another key, though others may: a small zone has few. */
#define UNITS_A_SHARD 512

static_assert(sizeof(struct shm_limit_unit) == SHM_LIMIT_UNIT, "the layout is versioned");
static_assert(sizeof(struct shm_limit_shard) == CACHE_LINE, "each shard has its line");
static_assert(SHM_LIMIT_MOST < SHM_LIMIT_COUNT_MASK, "a cell's count is more than any limit");
static_assert(SLOT_HALVES * SLOT_MAX == 1 << SLOT_BITS, "any slot in a cell is an index");

struct layout {
    uint32_t shard_n, shard_bits, bucket_n, unit_n;
    uint64_t shards, buckets, units, size; /* offsets */
};

static uint64_t align_to(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static bool is_possible(const struct shm_limit_shape *shape)
{
    return shape->size >= SHM_LIMIT_UNIT &&
           shape->size / SHM_LIMIT_UNIT / SHM_LIMIT_SHARDS_MAX < SHM_LIMIT_INDEX_MASK;
}

static struct layout layout_of(const struct shm_limit_shape *shape)
{
    uint64_t units = shape->size / SHM_LIMIT_UNIT;
    struct layout l = { .shard_n = 1, .bucket_n = 1 };

    assert(is_possible(shape));
    while (l.shard_n < SHM_LIMIT_SHARDS_MAX && units / l.shard_n >= UINT64_C(2) * UNITS_A_SHARD) {
        l.shard_n *= 2;
        l.shard_bits++;
    }
    l.unit_n = (uint32_t)(units / l.shard_n);
    while ((uint64_t)l.bucket_n * 2 <= l.unit_n)
        l.bucket_n *= 2;
    l.shards = segment_pages(sizeof(struct shm_limit_header));
    l.buckets = l.shards + (uint64_t)l.shard_n * sizeof(struct shm_limit_shard);
    l.units = align_to(l.buckets + sizeof(uint64_t) * l.shard_n * l.bucket_n, CACHE_LINE);
    l.size = align_to(l.units + (uint64_t)l.shard_n * l.unit_n * SHM_LIMIT_UNIT, CACHE_LINE);
    assert(l.shard_n <= SHM_LIMIT_SHARDS_MAX && l.unit_n >= 1);
    assert(1u << l.shard_bits == l.shard_n && (l.bucket_n & (l.bucket_n - 1)) == 0);
    return l;
}

size_t shm_limit_size(const struct shm_limit_shape *shape)
{
    uint64_t size = is_possible(shape) ? layout_of(shape).size : 0;

    assert(size % CACHE_LINE == 0);
    return size <= PTRDIFF_MAX ? (size_t)size : 0;
}

size_t shm_limit_written(const struct shm_limit_shape *shape)
{
    return (size_t)layout_of(shape).shards;
}

void shm_limit_set_text(struct shm_limit_shape *shape, const char *text, size_t n)
{
    for (uint64_t i = 0; i < 2; i++)
        shape->text[i] = siphash((const uint64_t[2]) { i, 0 }, text, n);
}

void shm_limit_init(void *memory, const struct shm_limit_shape *shape)
{
    struct shm_limit_header *header = memory;

    assert(shm_limit_size(shape) != 0 && (uintptr_t)memory % CACHE_LINE == 0);
    assert(header->magic == 0);
    arc4random_buf(header->seed, sizeof(header->seed));
    header->shape = *shape;
    header->revision = SHM_LIMIT_REVISION;
    header->magic = SHM_LIMIT_MAGIC;
}

bool shm_limit_is(const void *memory, const struct shm_limit_shape *shape)
{
    const struct shm_limit_header *header = memory;

    return header->magic == SHM_LIMIT_MAGIC && header->revision == SHM_LIMIT_REVISION &&
           header->shape.size == shape->size && header->shape.text[0] == shape->text[0] &&
           header->shape.text[1] == shape->text[1];
}

void shm_limit_open(
    struct shm_limit *limit, void *memory, const struct shm_limit_shape *shape, struct slot_id id)
{
    struct layout l = layout_of(shape);
    struct shm_limit_header *header = memory;
    char *base = memory;

    assert((uintptr_t)base % CACHE_LINE == 0 && slot_id_is_valid(id));
    *limit = (struct shm_limit) {
        .shape = *shape,
        .shard_n = l.shard_n,
        .shard_bits = l.shard_bits,
        .bucket_n = l.bucket_n,
        .unit_n = l.unit_n,
        .locker = { .id = id, .released = header->released },
        .header = header,
        .shards = (void *)(base + l.shards),
        .buckets = (void *)(base + l.buckets),
        .units = (void *)(base + l.units),
    };
    RB_INIT(&limit->counts);
}

static size_t limit_size(const void *shape)
{
    return shm_limit_size(shape);
}

static int init_limit(void *memory, const void *shape)
{
    shm_limit_init(memory, shape);
    return 0;
}

static bool is_limit(const void *memory, const void *shape)
{
    return shm_limit_is(memory, shape);
}

/* Leaves only the header to the master, for each worker alike. */
static struct segment_part writable_part(const void *shape, uint32_t slot)
{
    size_t from = shm_limit_written(shape);

    (void)slot;
    return (struct segment_part) {
        .offset = from,
        .size = segment_pages(shm_limit_size(shape)) - from,
    };
}

static void acquire_slot(void *memory, const void *shape, struct slot_id id)
{
    struct shm_limit_header *header = memory;

    (void)shape;
    assert(slot_id_is_valid(id));
    ZONE_STORE(header->living[id.slot], id.serial);
}

/* Takes all that the worker has counted out, by one store. */
static void release_slot(void *memory, const void *shape, struct slot_id id)
{
    struct shm_limit_header *header = memory;
    uint32_t serial;

    (void)shape;
    assert(id.slot < SLOT_HALVES * SLOT_MAX);
    serial = ZONE_LOAD(header->living[id.slot]);
    if (serial == 0)
        return; /* the worker has none of this memory, or the death was noted before */
    ZONE_STORE(header->released[id.slot], serial);
    ZONE_STORE(header->living[id.slot], 0);
    ZONE_STORE(header->deaths, ZONE_LOAD(header->deaths) + 1);
}

const struct zone_kind shm_limit_kind = {
    .name = "limit",
    .size = limit_size,
    .init = init_limit,
    .is = is_limit,
    .writable = writable_part,
    .slot_acquired = acquire_slot,
    .slot_released = release_slot,
};
