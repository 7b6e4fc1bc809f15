/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks a whole map: every entry is in one chain of its shard, a spare, or the pool's, and the
 * counts agree. */
#include "shm/map_check.h"

#include "shm/map_private.h"

#include <assert.h>

/* Counts the entries of a chain; all must be the shard's, and of the right bucket. */
static uint32_t check_chain(struct shm_map *map, uint32_t shard, uint32_t bucket, uint64_t *bytes)
{
    uint32_t n = 0, i = ZONE_LOAD(shm_map_buckets(map, shard)[bucket]);

    for (; i != 0; i = ZONE_LOAD(shm_map_entry_at(map, i)->next)) {
        const struct shm_map_entry *entry = shm_map_entry_at(map, i);
        uint64_t hash = ZONE_LOAD(entry->hash), expires_ms = ZONE_LOAD(entry->expires_ms);

        assert(i <= ZONE_LOAD(map->pool->used));
        assert(ZONE_LOAD(*shm_map_owner(map, i)) == shard + 1);
        assert(i != ZONE_LOAD(map->shards[shard].spare));
        assert(table_shard_of(&map->table, hash) == shard &&
               table_bucket_of(&map->table, hash) == bucket);
        assert(ZONE_LOAD(entry->key_n) <= map->shape.key_max);
        assert(ZONE_LOAD(entry->value_n) <= map->shape.value_max);
        assert(ZONE_LOAD(entry->version) <= ZONE_LOAD(map->shards[shard].version));
        assert(expires_ms == 0 || expires_ms >= ZONE_LOAD(map->shards[shard].soonest_ms));
        *bytes += map->page != 0 ? shm_map_paged(map, ZONE_LOAD(entry->value_n)) : 0;
        n++;
        assert(n <= map->table.entry_n); /* no circle */
    }
    return n;
}

/* Returns the number of the shard's entries, with the spare. */
static uint32_t check_shard(struct shm_map *map, uint32_t shard)
{
    uint32_t count = 0, spare;
    uint64_t bytes = 0;

    shm_map_shard_lock(map, shard);
    spare = ZONE_LOAD(map->shards[shard].spare);
    assert(spare != 0 && spare <= ZONE_LOAD(map->pool->used));
    assert(ZONE_LOAD(*shm_map_owner(map, spare)) == shard + 1);
    assert(ZONE_LOAD(map->shards[shard].suspect) == 0);
    for (uint32_t bucket = 0; bucket < map->table.bucket_n; bucket++)
        count += check_chain(map, shard, bucket, &bytes);
    assert(bytes == ZONE_LOAD(map->shards[shard].bytes));
    assert(count == ZONE_LOAD(map->shards[shard].count));
    zone_lock_release(&map->table.hold);
    return count + 1;
}

/* Counts the entries kept back: a shard's, but neither in a chain nor spare. */
static uint32_t count_kept(struct shm_map *map)
{
    uint32_t n = 0;

    for (uint32_t i = 1; i <= ZONE_LOAD(map->pool->used); i++)
        n += ZONE_LOAD(*shm_map_owner(map, i)) != 0 &&
             ZONE_LOAD(shm_map_entry_at(map, i)->kept_for) != 0;
    return n;
}

void map_check(struct shm_map *map)
{
    uint32_t used = 0, owned = 0, free_n = 0, entry;

    assert(shm_map_kind.is(map->header, &map->shape));
    assert(map->table.hold.lock == NULL && map->pool_hold.lock == NULL);
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++)
        used += check_shard(map, shard);
    shm_map_pool_is_empty(map); /* repairs the pool, if need be */
    for (uint32_t i = 1; i <= ZONE_LOAD(map->pool->used); i++)
        owned += ZONE_LOAD(*shm_map_owner(map, i)) != 0;
    assert(owned == used + count_kept(map));
    entry = ZONE_LOAD(map->pool->free);
    while (entry != 0) {
        assert(entry <= ZONE_LOAD(map->pool->used) && ZONE_LOAD(*shm_map_owner(map, entry)) == 0);
        free_n++;
        assert(free_n <= map->table.entry_n);
        entry = ZONE_LOAD(shm_map_entry_at(map, entry)->next);
    }
    assert(free_n + owned == ZONE_LOAD(map->pool->used));
}
