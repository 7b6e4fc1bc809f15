/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks a whole map: every entry is in one chain of its shard, a spare, or the pool's, and the
 * counts agree. For tests: its assertions are on memory that every process with the map can
 * write. */
#include "shm/map_private.h"

#include <assert.h>

/* Counts the entries of a chain, each of which must be the shard's, and of the right bucket. */
static uint32_t check_chain(struct fb_shm_map *map, uint32_t shard, uint32_t bucket)
{
    uint32_t n = 0, i = FB_LOAD(fb_shm_buckets(map, shard)[bucket]);

    for (; i != 0; i = FB_LOAD(fb_shm_entry_at(map, i)->next)) {
        const struct fb_shm_entry *entry = fb_shm_entry_at(map, i);
        uint64_t hash = FB_LOAD(entry->hash), expires_ms = FB_LOAD(entry->expires_ms);

        assert(i <= FB_LOAD(map->pool.used));
        assert(FB_LOAD(fb_shm_owners(map)[i]) == shard + 1);
        assert(i != FB_LOAD(map->shards[shard].spare));
        assert(((uint32_t)(hash >> 32) & (map->shard_n - 1)) == shard);
        assert(((uint32_t)hash & (map->bucket_n - 1)) == bucket);
        assert(FB_LOAD(entry->key_n) <= map->shape.key_max);
        assert(FB_LOAD(entry->value_n) <= map->shape.value_max);
        assert(FB_LOAD(entry->version) <= FB_LOAD(map->shards[shard].version));
        assert(expires_ms == 0 || expires_ms >= FB_LOAD(map->shards[shard].soonest_ms));
        n++;
        assert(n <= map->entry_n); /* no circle */
    }
    return n;
}

/* Returns the number of the shard's entries, with the spare. */
static uint32_t check_shard(struct fb_shm_map *map, uint32_t shard)
{
    uint32_t count = 0, spare;

    fb_shm_shard_lock(map, shard);
    spare = FB_LOAD(map->shards[shard].spare);
    assert(spare != 0 && spare <= FB_LOAD(map->pool.used));
    assert(FB_LOAD(fb_shm_owners(map)[spare]) == shard + 1);
    for (uint32_t bucket = 0; bucket < map->bucket_n; bucket++)
        count += check_chain(map, shard, bucket);
    assert(count == FB_LOAD(map->shards[shard].count));
    fb_shm_shard_unlock(map, shard);
    return count + 1;
}

void shm_map_check(struct fb_shm_map *map)
{
    uint32_t used = 0, owned = 0, free_n = 0;

    assert(fb_shm_map_is(map, &map->shape));
    for (uint32_t shard = 0; shard < map->shard_n; shard++)
        used += check_shard(map, shard);
    fb_shm_pool_is_empty(map); /* repairs the pool, if need be */
    for (uint32_t i = 1; i <= FB_LOAD(map->pool.used); i++)
        owned += FB_LOAD(fb_shm_owners(map)[i]) != 0;
    assert(owned == used);
    for (uint32_t i = FB_LOAD(map->pool.free); i != 0; i = FB_LOAD(fb_shm_entry_at(map, i)->next)) {
        assert(i <= FB_LOAD(map->pool.used) && FB_LOAD(fb_shm_owners(map)[i]) == 0);
        free_n++;
        assert(free_n <= map->entry_n);
    }
    assert(free_n + owned == FB_LOAD(map->pool.used));
}
