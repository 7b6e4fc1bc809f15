/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a map, computed from the shape of its making, in each process's private memory. The
 * header, written by the master alone, fills whole pages. Offsets are 64 bits and never overflow
 * within the limits of shapes.
 *
 * A map is laid out for more entries than its capacity, at the cost of addresses alone: a later
 * configuration can have a larger capacity in equal memory, beside the workers of an earlier
 * one. */
#include "shm/map_private.h"
#include "shm/segment.h"

#include <bsd/stdlib.h>
#include <unistd.h>

/* A shard costs a spare entry: a small map has few. */
#define KEYS_A_SHARD 8
/* Room to grow: times the capacity, where that takes no more bytes of addresses. */
#define GROWTH 8
#define GROWTH_BYTES (UINT64_C(1) << 30)

static_assert(sizeof(struct shm_map_entry) == 40, "the layout is versioned");
static_assert(offsetof(struct shm_map_entry, hash) == TABLE_HASH_AT, "for walks");
static_assert(offsetof(struct shm_map_header, seed) == 24, "`memory` is in a former gap");
static_assert(sizeof(struct shm_map_header) % CACHE_LINE == 0, "and the header has a line");
static_assert(sizeof(struct shm_map_pool) == CACHE_LINE, "the pool has a line");
static_assert(sizeof(struct shm_map_shard) == CACHE_LINE, "and every shard has a line");
static_assert(TABLE_SHARDS_MAX < SHM_MAP_REACHED, "both are in an owner's byte");
static_assert(TABLE_SHARDS_MAX <= 64, "every shard has a bit in a handle");

struct layout {
    uint32_t shard_n, bucket_n, entry_n;
    uint64_t pool, shards, owners, buckets, entries; /* offsets */
    uint64_t value_at, stride, size;
};

static bool is_possible_map(const struct shm_map_shape *shape)
{
    uint64_t least =
        sizeof(struct shm_map_entry) + table_align(shape->key_max, 8) + shape->value_max;

    if (shape->memory != 0 && (uint64_t)shape->memory * SHM_MAP_UNIT < least)
        return false; /* a single value may not fit */
    return shape->capacity >= 1 && shape->capacity <= SHM_MAP_CAPACITY_MAX && shape->key_max >= 1 &&
           shape->key_max <= SHM_MAP_KEY_MAX && shape->value_max <= SHM_MAP_VALUE_MAX;
}

static uint64_t map_stride(const struct shm_map_shape *shape)
{
    uint64_t n = sizeof(struct shm_map_entry) + table_align(shape->key_max, 8) +
                 table_align(shape->value_max, 8);

    return shape->memory != 0 ? table_align(n, (uint64_t)sysconf(_SC_PAGESIZE)) : n;
}

/* Returns the greatest later capacity of a map made with this shape. */
static uint32_t room_of(const struct shm_map_shape *shape)
{
    uint64_t more = (uint64_t)shape->capacity * (GROWTH - 1),
             most = GROWTH_BYTES / map_stride(shape);

    if (more > most)
        more = most;
    if (more > SHM_MAP_CAPACITY_MAX - shape->capacity)
        more = SHM_MAP_CAPACITY_MAX - shape->capacity;
    assert(shape->capacity + more <= SHM_MAP_CAPACITY_MAX);
    return shape->capacity + (uint32_t)more;
}

static struct layout map_layout(const struct shm_map_shape *shape)
{
    struct layout l = {
        .shard_n = table_shards_for(shape->capacity, KEYS_A_SHARD),
        .bucket_n = 1,
        .value_at = table_align(shape->key_max, 8),
        .stride = map_stride(shape),
    };
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    assert(is_possible_map(shape));
    while ((uint64_t)l.bucket_n * l.shard_n < shape->capacity)
        l.bucket_n *= 2;
    l.entry_n = room_of(shape) + l.shard_n;
    l.pool = segment_pages(sizeof(struct shm_map_header));
    l.shards = l.pool + sizeof(struct shm_map_pool);
    l.owners = l.shards + (uint64_t)l.shard_n * sizeof(struct shm_map_shard);
    l.buckets = table_align(l.owners + l.entry_n, CACHE_LINE);
    l.entries = table_align(l.buckets + (uint64_t)l.shard_n * l.bucket_n * sizeof(uint32_t),
        shape->memory != 0 ? page : CACHE_LINE);
    l.size = table_align(l.entries + l.entry_n * l.stride, CACHE_LINE);
    assert((l.bucket_n & (l.bucket_n - 1)) == 0);
    assert((uint64_t)l.bucket_n * l.shard_n >= shape->capacity);
    assert(l.value_at >= shape->key_max && l.stride >= l.value_at + shape->value_max);
    assert(l.owners < l.buckets && l.buckets < l.entries && l.entries < l.size);
    assert(l.buckets % alignof(uint32_t) == 0 && l.stride % alignof(struct shm_map_entry) == 0);
    return l;
}

static size_t map_size(const void *shape)
{
    uint64_t size = is_possible_map(shape) ? map_layout(shape).size : 0;

    assert(size % CACHE_LINE == 0);
    return size <= PTRDIFF_MAX ? (size_t)size : 0;
}

static uint32_t revision_of(const struct shm_map_shape *shape)
{
    return shape->memory != 0 ? SHM_MAP_REVISION_PAGED : SHM_MAP_REVISION;
}

bool shm_map_fits(const struct shm_map_shape *made, const struct shm_map_shape *shape)
{
    return is_possible_map(made) && is_possible_map(shape) &&
           (made->memory != 0) == (shape->memory != 0) && made->key_max == shape->key_max &&
           made->value_max == shape->value_max && shape->capacity <= room_of(made);
}

void shm_map_open(
    struct shm_map *map, void *memory, const struct shm_map_shape *shape, struct slot_id id)
{
    const struct shm_map_header *header = memory;
    struct layout l = map_layout(&header->shape);
    char *base = memory;

    assert((uintptr_t)base % CACHE_LINE == 0 && id.slot < SLOT_HALVES * SLOT_MAX);
    assert(shm_map_fits(&header->shape, shape));
    *map = (struct shm_map) {
        .table = {
            .shard_n = l.shard_n,
            .bucket_n = l.bucket_n,
            .entry_n = l.entry_n,
            .shard_shift = 32,
            .home_mask = (uint64_t)(l.shard_n - 1) << 32 | (l.bucket_n - 1),
            .head_shift = 2,
            .shards = base + l.shards,
            .buckets = base + l.buckets,
            .entries = base + l.entries,
            .stride = l.stride,
            .locker = { .id = id, .released = header->released },
        },
        .shape = *shape,
        .touched_most = shape->capacity + l.shard_n,
        .value_at = l.value_at,
        .page = shape->memory != 0 ? (uint64_t)sysconf(_SC_PAGESIZE) : 0,
        .header = memory,
        .pool = (void *)(base + l.pool),
        .shards = (void *)(base + l.shards),
        .owners = (void *)(base + l.owners),
        .audit_wait_ms = SHM_MAP_AUDIT_MS,
    };
    memcpy(map->seed, map->header->seed, sizeof(map->seed));
}

static int init_map(void *memory, const void *shape)
{
    struct shm_map_header *header = memory;
    struct shm_map map;

    assert(map_size(shape) != 0 && (uintptr_t)memory % CACHE_LINE == 0);
    assert(header->magic == 0);
    arc4random_buf(header->seed, sizeof(header->seed));
    header->shape = *(const struct shm_map_shape *)shape;
    header->revision = revision_of(shape);
    header->magic = SHM_MAP_MAGIC;
    shm_map_open(&map, memory, shape, (struct slot_id) { .slot = 0 });
    for (uint32_t shard = 0; shard < map.table.shard_n; shard++) {
        ZONE_STORE(map.shards[shard].soonest_ms, UINT64_MAX);
        ZONE_STORE(map.shards[shard].spare, shard + 1);
        ZONE_STORE(*shm_map_owner(&map, shard + 1), (uint8_t)(shard + 1));
    }
    ZONE_STORE(map.pool->used, map.table.shard_n);
    return 0;
}

/* Whether the memory holds a map usable with the shape. */
static bool is_map(const void *memory, const void *shape)
{
    const struct shm_map_header *header = memory;

    return header->magic == SHM_MAP_MAGIC && header->revision == revision_of(shape) &&
           shm_map_fits(&header->shape, shape);
}

static bool is_map_of_size(const void *memory, size_t size, const void *shape)
{
    const struct shm_map_header *header = memory;

    return size > segment_pages(sizeof(*header)) && is_map(memory, shape) &&
           segment_pages(map_size(&header->shape)) == size;
}

/* Notes the death for workers about to wait; an unknown serial's locks are waited for. */
static void release_map_slot(void *memory, const void *shape, struct slot_id id)
{
    struct shm_map_header *header = memory;

    (void)shape;
    assert(id.slot < SLOT_HALVES * SLOT_MAX);
    if (id.serial != 0)
        ZONE_STORE(header->released[id.slot], id.serial);
}

const struct zone_kind shm_map_kind = {
    .name = "map",
    .size = map_size,
    .init = init_map,
    .is = is_map,
    .fits = is_map_of_size,
    .header = sizeof(struct shm_map_header),
    .slot_released = release_map_slot,
};
