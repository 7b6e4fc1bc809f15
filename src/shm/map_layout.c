/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a map, computed from its shape alone: what a process uses it takes from its own
 * copy of the shape when it opens the map. Offsets are 64 bits and never overflow within the limits
 * of shapes. */
#include "shm/map_private.h"

#include <assert.h>
#include <bsd/stdlib.h>

/* A shard costs a spare entry: a small map has few. */
#define KEYS_A_SHARD 8

static_assert(sizeof(struct shm_map_entry) == 40, "the layout is versioned");
static_assert(offsetof(struct shm_map, pool) == CACHE_LINE, "readers' part has its line");
static_assert(sizeof(struct shm_map_pool) == CACHE_LINE, "the pool has its line");
static_assert(sizeof(struct shm_map_shard) == CACHE_LINE, "and so has each shard");
static_assert(SHM_MAP_SHARDS_MAX < SHM_MAP_REACHED, "both are in an owner's byte");

struct layout {
    uint32_t shard_n, bucket_n, entry_n;
    uint64_t owners, buckets, entries, value_at, stride, size;
};

static uint64_t align_to(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static bool is_possible(const struct shm_map_shape *shape)
{
    return shape->capacity >= 1 && shape->capacity <= SHM_MAP_CAPACITY_MAX && shape->key_max >= 1 &&
           shape->key_max <= SHM_MAP_KEY_MAX && shape->value_max <= SHM_MAP_VALUE_MAX;
}

/* Computes the layout. Within the limits of a shape nothing exceeds 64 bits. */
static struct layout layout_of(const struct shm_map_shape *shape)
{
    struct layout l = { .shard_n = 1, .bucket_n = 1 };

    while (l.shard_n < SHM_MAP_SHARDS_MAX && shape->capacity / l.shard_n >= 2 * KEYS_A_SHARD)
        l.shard_n *= 2;
    while ((uint64_t)l.bucket_n * l.shard_n < shape->capacity)
        l.bucket_n *= 2;
    l.entry_n = shape->capacity + l.shard_n;
    l.value_at = align_to(shape->key_max, 8);
    l.stride = sizeof(struct shm_map_entry) + l.value_at + align_to(shape->value_max, 8);

    assert(is_possible(shape));
    l.owners = sizeof(struct shm_map) + (uint64_t)l.shard_n * sizeof(struct shm_map_shard);
    l.buckets = align_to(l.owners + l.entry_n, CACHE_LINE);
    l.entries =
        align_to(l.buckets + (uint64_t)l.shard_n * l.bucket_n * sizeof(uint32_t), CACHE_LINE);
    l.size = align_to(l.entries + l.entry_n * l.stride, CACHE_LINE);
    assert((l.shard_n & (l.shard_n - 1)) == 0 && l.shard_n <= SHM_MAP_SHARDS_MAX);
    assert((l.bucket_n & (l.bucket_n - 1)) == 0);
    assert((uint64_t)l.bucket_n * l.shard_n >= shape->capacity);
    assert(l.value_at >= shape->key_max && l.stride >= l.value_at + shape->value_max);
    assert(l.owners < l.buckets && l.buckets < l.entries && l.entries < l.size);
    assert(l.buckets % alignof(uint32_t) == 0 && l.stride % alignof(struct shm_map_entry) == 0);
    return l;
}

size_t shm_map_size(const struct shm_map_shape *shape)
{
    uint64_t size = is_possible(shape) ? layout_of(shape).size : 0;

    assert(size % CACHE_LINE == 0);
    return size <= PTRDIFF_MAX ? (size_t)size : 0;
}

int shm_map_init(struct shm_map *map, const struct shm_map_shape *shape)
{
    struct layout l = layout_of(shape);

    assert(shm_map_size(shape) != 0 && (uintptr_t)map % CACHE_LINE == 0);
    map->shape = *shape;
    map->shard_n = l.shard_n;
    map->bucket_n = l.bucket_n;
    map->entry_n = l.entry_n;
    map->owners = l.owners;
    map->buckets = l.buckets;
    map->entries = l.entries;
    map->value_at = l.value_at;
    map->stride = l.stride;
    arc4random_buf(map->seed, sizeof(map->seed));
    if (shm_map_pool_init(map) == -1)
        return -1;
    for (uint32_t shard = 0; shard < l.shard_n; shard++)
        if (shm_map_shard_init(map, shard) == -1)
            return -1;
    map->revision = SHM_MAP_REVISION;
    map->magic = SHM_MAP_MAGIC;
    return 0;
}

bool shm_map_is(const struct shm_map *map, const struct shm_map_shape *shape)
{
    return map->magic == SHM_MAP_MAGIC && map->revision == SHM_MAP_REVISION &&
           map->shape.capacity == shape->capacity && map->shape.key_max == shape->key_max &&
           map->shape.value_max == shape->value_max;
}

static size_t map_size(const void *shape)
{
    return shm_map_size(shape);
}

static int init_map(void *memory, const void *shape)
{
    return shm_map_init(memory, shape);
}

static bool is_map(const void *memory, const void *shape)
{
    return shm_map_is(memory, shape);
}

const struct zone_kind shm_map_kind = {
    .name = "map",
    .size = map_size,
    .init = init_map,
    .is = is_map,
};
