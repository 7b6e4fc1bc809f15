/* SPDX-License-Identifier: BSD-2-Clause */
/* Shards: their locks, and the sweep of expired entries. A shard is whole whenever its lock is
 * held: the first to lock it after a death, or after its holder stood still, repairs it. */
#include "base/compiler.h"
#include "shm/map_log.h"
#include "shm/map_private.h"

#include <assert.h>

/* Repairs the shard if that is needed; returns whether the lock is held. */
static bool finish_lock(struct shm_map *map, uint32_t shard, enum zone_lock_state state)
{
    struct shm_map_shard *s = &map->shards[shard];
    uint32_t kept_for;

    if (state == ZONE_LOCK_BUSY)
        return false;
    kept_for = SHM_LOAD(s->kept_for);
    /* entries that were kept back are free when that process has died, or is this one */
    if (unlikely(state != ZONE_LOCK_FREE || SHM_LOAD(s->suspect) != 0 ||
                 (kept_for != 0 && zone_lock_is_past(&map->locker, kept_for))))
        shm_map_repair(map, shard);
    if (unlikely(!shm_map_is_checked(map, shard)))
        shm_map_repair_first(map, shard);
    return true;
}

void shm_map_shard_lock(struct shm_map *map, uint32_t shard)
{
    struct zone_lock *lock = &map->shards[shard].lock;

    assert(shard < map->shard_n && map->pool_hold.lock == NULL);
    finish_lock(map, shard, shm_map_lock(map, lock, &map->shard_hold));
}

bool shm_map_shard_try(struct shm_map *map, uint32_t shard)
{
    struct zone_lock *lock = &map->shards[shard].lock;

    assert(shard < map->shard_n && map->pool_hold.lock == NULL);
    return finish_lock(map, shard, zone_lock_try(&map->locker, lock, &map->shard_hold));
}

void shm_map_shard_unlock(struct shm_map *map)
{
    assert(map->pool_hold.lock == NULL);
    zone_lock_release(&map->shard_hold);
}

bool shm_map_shard_remove(
    struct shm_map *map, uint32_t shard, _Atomic uint32_t *link, uint32_t index)
{
    struct shm_map_shard *s = &map->shards[shard];
    uint32_t next = SHM_LOAD(shm_map_entry_at(map, index)->next), count = SHM_LOAD(s->count);
    uint64_t before = unlikely(map->log != NULL) ? shm_map_log_state(map, shard) : 0;

    assert(shard < map->shard_n && shm_map_is_index(map, index));
    if (next > map->entry_n || SHM_LOAD(*shm_map_owner(map, index)) != shard + 1 ||
        !zone_lock_holds(&map->shard_hold))
        return false;
    SHM_STORE(*link, next);
    if (!zone_lock_holds(&map->shard_hold)) /* the holder has found the entry by now */
        return true;
    SHM_STORE(s->sequence, SHM_LOAD(s->sequence) + 1);
    SHM_STORE(s->count, count > 0 ? count - 1 : 0);
    if (unlikely(map->log != NULL))
        shm_map_log_skip(map, shard, before);
    if (unlikely(map->page != 0)) {
        uint32_t value_n = SHM_LOAD(shm_map_entry_at(map, index)->value_n);

        shm_map_memory_give(map, shard, value_n);
        shm_map_memory_release(map, index, value_n);
    }
    shm_map_pool_give(map, shard, index);
    return true;
}

/* Logs that an entry has expired, which is removed then. */
static COLD void log_expiry(
    struct shm_map *map, uint32_t shard, const struct shm_map_entry *entry, uint64_t hash)
{
    uint32_t key_n = SHM_LOAD(entry->key_n);

    if (key_n <= map->shape.key_max)
        shm_map_log_put(map, shard, shm_map_log_state(map, shard), SHM_MAP_WAS_EXPIRED, hash,
            entry->bytes, key_n);
}

/* Removes the expired of a chain; false where the shard is damaged or no longer held. */
static bool sweep_chain(
    struct shm_map *map, uint32_t shard, uint32_t bucket, uint64_t now_ms, uint64_t *soonest_ms)
{
    _Atomic uint32_t *link = shm_map_buckets(map, shard) + bucket;
    uint32_t index = SHM_LOAD(*link);

    for (uint32_t n = 0; index != 0; index = SHM_LOAD(*link)) {
        struct shm_map_entry *entry;
        uint64_t expires_ms, hash;

        if (!shm_map_is_index(map, index) || n == SHM_MAP_CHAIN_MAX)
            return false;
        entry = shm_map_entry_at(map, index);
        hash = SHM_LOAD(entry->hash);
        expires_ms = SHM_LOAD(entry->expires_ms);
        if (shm_map_shard_of(map, hash) != shard || shm_map_bucket_of(map, hash) != bucket)
            return false;
        if (shm_map_has_passed(expires_ms, now_ms)) {
            if (unlikely(map->log != NULL))
                log_expiry(map, shard, entry, hash);
            if (!shm_map_shard_remove(map, shard, link, index))
                return false;
            continue;
        }
        if (expires_ms != 0 && expires_ms < *soonest_ms)
            *soonest_ms = expires_ms;
        link = &entry->next;
        n++;
    }
    return true;
}

static void sweep_shard(struct shm_map *map, uint32_t shard, uint64_t now_ms)
{
    uint64_t soonest_ms = UINT64_MAX;

    for (uint32_t bucket = 0; bucket < map->bucket_n; bucket++) {
        bool whole = sweep_chain(map, shard, bucket, now_ms, &soonest_ms);

        if (bucket % SHM_MAP_RENEW_EVERY == SHM_MAP_RENEW_EVERY - 1 &&
            !shm_map_lock_renew(map, &map->shard_hold))
            return;
        if (!whole && !zone_lock_holds(&map->shard_hold))
            return;
        if (!whole) {
            shm_map_repair_empty(map, shard);
            return;
        }
    }
    if (zone_lock_holds(&map->shard_hold))
        SHM_STORE(map->shards[shard].soonest_ms, soonest_ms);
}

/* Locks a shard that is to be repaired, or that this process has not looked through, however long
 * its holder stands still; any other where that takes no wait. */
static bool look_at(struct shm_map *map, uint32_t shard)
{
    assert(shard < map->shard_n && map->shard_hold.lock == NULL);
    if (likely(SHM_LOAD(map->shards[shard].suspect) == 0 && shm_map_is_checked(map, shard)))
        return shm_map_shard_try(map, shard);
    shm_map_shard_lock(map, shard);
    return true;
}

void shm_map_sweep(struct shm_map *map, uint64_t now_ms)
{
    for (uint32_t shard = 0; shard < map->shard_n; shard++) {
        struct shm_map_shard *s = &map->shards[shard];

        if (SHM_LOAD(s->soonest_ms) <= now_ms)
            shm_map_shard_lock(map, shard);
        else if (!look_at(map, shard))
            continue; /* the lock was tried only to repair what a death may have left */
        if (SHM_LOAD(s->soonest_ms) <= now_ms)
            sweep_shard(map, shard, now_ms);
        shm_map_shard_unlock(map);
    }
}

void shm_map_sweep_some(struct shm_map *map, uint64_t now_ms, uint32_t *next, uint32_t most)
{
    for (uint32_t i = 0; i < map->shard_n && most > 0; i++) {
        uint32_t shard = (*next)++ % map->shard_n;

        if (SHM_LOAD(map->shards[shard].soonest_ms) > now_ms || !shm_map_shard_try(map, shard))
            continue;
        if (SHM_LOAD(map->shards[shard].soonest_ms) <= now_ms)
            sweep_shard(map, shard, now_ms);
        shm_map_shard_unlock(map);
        most--;
    }
}

uint32_t shm_map_count(struct shm_map *map)
{
    uint64_t count = 0;

    for (uint32_t shard = 0; shard < map->shard_n; shard++) {
        bool held = look_at(map, shard);

        count += SHM_LOAD(map->shards[shard].count);
        if (held)
            shm_map_shard_unlock(map);
    }
    return count < map->entry_n ? (uint32_t)count : map->entry_n;
}
