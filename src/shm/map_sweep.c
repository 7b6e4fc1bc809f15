/* SPDX-License-Identifier: BSD-2-Clause */
/* Sweeps of expired entries, and the count of all. A sweep also checks shards new to this process,
 * and otherwise waits for no lock. */
#include "shm/map_log.h"
#include "shm/map_private.h"

/* Logs an entry's expiry, before the removal. */
static COLD void log_expiry(struct shm_map *map, uint32_t shard, const struct shm_map_entry *entry)
{
    uint32_t key_n = ZONE_LOAD(entry->key_n);
    uint64_t hash = ZONE_LOAD(entry->hash);

    assert(map->log != NULL && map->table.hold.lock == &map->shards[shard].lock);
    if (key_n <= map->shape.key_max)
        shm_map_log_put(map, shard, shm_map_log_state(map, shard), SHM_MAP_WAS_EXPIRED, hash,
            entry->bytes, key_n);
}

struct sweep {
    struct shm_map *map;
    uint64_t now_ms;
    uint64_t soonest_ms; /* the earliest expiry of remaining entries */
};

/* Removes an entry if it has expired. */
static enum table_visit sweep_entry(struct table_place *at, void *arg)
{
    struct sweep *sweep = arg;
    struct shm_map *map = sweep->map;
    const struct shm_map_entry *entry = at->entry;
    uint64_t expires_ms = ZONE_LOAD(entry->expires_ms), before = 0;
    _Atomic uint32_t *link = at->before != 0 ? &shm_map_entry_at(map, at->before)->next
                                             : &shm_map_buckets(map, at->shard)[at->bucket];

    if (!shm_map_has_passed(expires_ms, sweep->now_ms)) {
        if (expires_ms != 0 && expires_ms < sweep->soonest_ms)
            sweep->soonest_ms = expires_ms;
        return TABLE_KEPT;
    }
    if (unlikely(map->log != NULL)) {
        log_expiry(map, at->shard, entry);
        before = shm_map_log_state(map, at->shard);
    }
    if (!shm_map_shard_remove(map, at->shard, link, at->index))
        return TABLE_DAMAGED;
    if (unlikely(map->log != NULL))
        shm_map_log_skip(map, at->shard, before);
    return TABLE_REMOVED;
}

/* Sweeps the shard if an entry may have expired, and unlocks. */
static void sweep_shard(struct shm_map *map, uint32_t shard, uint64_t now_ms)
{
    struct shm_map_shard *s = &map->shards[shard];
    struct sweep sweep = { .map = map, .now_ms = now_ms, .soonest_ms = UINT64_MAX };

    assert(map->table.hold.lock == &s->lock);
    if (ZONE_LOAD(s->soonest_ms) <= now_ms) {
        enum table_step step = table_walk(&map->table, shard, sweep_entry, &sweep);

        if (table_holds(&map->table) && step == TABLE_FAILED)
            shm_map_shard_empty(map, shard);
        else if (table_holds(&map->table))
            ZONE_STORE(s->soonest_ms, sweep.soonest_ms);
    }
    zone_lock_release(&map->table.hold);
}

/* Locks a shard to be repaired, or not yet checked by this process, however long the holder stands
 * still; any other shard only without a wait. */
static bool lock_to_look(struct shm_map *map, uint32_t shard)
{
    assert(shard < map->table.shard_n && map->table.hold.lock == NULL);
    if (likely(ZONE_LOAD(map->shards[shard].suspect) == 0 && shm_map_is_checked(map, shard)))
        return shm_map_shard_try(map, shard);
    shm_map_shard_lock(map, shard);
    return true;
}

void shm_map_sweep(struct shm_map *map, uint64_t now_ms)
{
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++) {
        if (ZONE_LOAD(map->shards[shard].soonest_ms) <= now_ms)
            shm_map_shard_lock(map, shard);
        else if (!lock_to_look(map, shard))
            continue; /* the lock was tried only to repair what a death may have left */
        sweep_shard(map, shard, now_ms);
    }
}

void shm_map_sweep_some(struct shm_map *map, uint64_t now_ms, uint32_t *next, uint32_t most)
{
    for (uint32_t i = 0; i < map->table.shard_n && most > 0; i++) {
        uint32_t shard = (*next)++ % map->table.shard_n;

        if (ZONE_LOAD(map->shards[shard].soonest_ms) > now_ms || !shm_map_shard_try(map, shard))
            continue;
        sweep_shard(map, shard, now_ms);
        most--;
    }
}

uint32_t shm_map_count(struct shm_map *map)
{
    uint64_t count = 0;

    assert(map->table.hold.lock == NULL && map->pool_hold.lock == NULL);
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++) {
        bool held = lock_to_look(map, shard);

        count += ZONE_LOAD(map->shards[shard].count);
        if (held)
            zone_lock_release(&map->table.hold);
    }
    return count < map->table.entry_n ? (uint32_t)count : map->table.entry_n;
}
