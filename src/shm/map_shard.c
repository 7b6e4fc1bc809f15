/* SPDX-License-Identifier: BSD-2-Clause */
/* Shards: their locks, the repair of what a death has left in them, and the sweep of expired
 * entries. A shard is whole whenever its lock is held: the first to lock it after a death repairs
 * it. */
#include "shm/map_private.h"

#include <assert.h>

int shm_map_shard_init(struct shm_map *map, uint32_t shard)
{
    struct shm_map_shard *s = &map->shards[shard];

    assert(shard < SHM_MAP_SHARDS_MAX);
    SHM_STORE(s->soonest_ms, UINT64_MAX);
    SHM_STORE(s->spare, shm_map_pool_acquire(map, shard));
    return shm_mutex_init(&s->mutex);
}

/* Removes the marks of a repair whose own process has died within it. */
static void remove_marks(struct shm_map *map, uint8_t owner)
{
    _Atomic uint8_t *owners = shm_map_owners(map);

    for (uint32_t i = SHM_LOAD(map->pool.used); i > 0; i--)
        if (SHM_LOAD(owners[i]) == (owner | SHM_MAP_REACHED))
            SHM_STORE(owners[i], owner);
}

/* Marks the entries of a chain, and returns how many they are. Links are always whole; if a stray
 * pointer was written all the same, the chain ends before the first impossible entry. */
static uint32_t mark_chain(struct shm_map *map, _Atomic uint32_t *link, uint8_t owner)
{
    _Atomic uint8_t *owners = shm_map_owners(map);
    uint32_t count = 0;

    for (uint32_t i = SHM_LOAD(*link); i != 0; i = SHM_LOAD(*link)) {
        if (i > map->entry_n || SHM_LOAD(owners[i]) != owner) {
            SHM_STORE(*link, 0);
            break;
        }
        SHM_STORE(owners[i], owner | SHM_MAP_REACHED);
        link = &shm_map_entry_at(map, i)->next;
        count++;
    }
    return count;
}

/* Collects the entries of the shard that are in no chain: one becomes the spare, the others are
 * returned to the pool. */
static void collect_unreached(struct shm_map *map, uint32_t shard, uint8_t owner)
{
    _Atomic uint8_t *owners = shm_map_owners(map);
    uint32_t spare = 0;

    for (uint32_t i = SHM_LOAD(map->pool.used); i > 0; i--) {
        if (SHM_LOAD(owners[i]) == (owner | SHM_MAP_REACHED))
            SHM_STORE(owners[i], owner);
        else if (SHM_LOAD(owners[i]) == owner && spare != 0)
            shm_map_pool_give(map, i);
        else if (SHM_LOAD(owners[i]) == owner)
            spare = i;
    }
    assert(spare != 0);
    SHM_STORE(map->shards[shard].spare, spare);
}

static void repair_shard(struct shm_map *map, uint32_t shard)
{
    struct shm_map_shard *s = &map->shards[shard];
    _Atomic uint32_t *buckets = shm_map_buckets(map, shard);
    uint8_t owner = (uint8_t)(shard + 1);
    uint32_t count = 0;

    /* the dead process may have taken out an entry that a reader still reads */
    SHM_STORE(s->sequence, SHM_LOAD(s->sequence) + 1);
    remove_marks(map, owner);
    for (uint32_t b = 0; b < map->bucket_n; b++)
        count += mark_chain(map, &buckets[b], owner);
    collect_unreached(map, shard, owner);
    SHM_STORE(s->count, count);
}

/* Repairs the shard if the last owner of the mutex died; returns whether the mutex is locked. */
static bool finish_lock(struct shm_map *map, uint32_t shard, enum shm_mutex_state state)
{
    if (state == SHM_MUTEX_OWNER_DIED) {
        repair_shard(map, shard);
        shm_mutex_mark_repaired(&map->shards[shard].mutex);
    }
    return state != SHM_MUTEX_BUSY;
}

void shm_map_shard_lock(struct shm_map *map, uint32_t shard)
{
    finish_lock(map, shard, shm_mutex_lock(&map->shards[shard].mutex));
}

bool shm_map_shard_try(struct shm_map *map, uint32_t shard)
{
    return finish_lock(map, shard, shm_mutex_try(&map->shards[shard].mutex));
}

void shm_map_shard_unlock(struct shm_map *map, uint32_t shard)
{
    shm_mutex_unlock(&map->shards[shard].mutex);
}

void shm_map_shard_remove(struct shm_map *map, uint32_t shard, _Atomic uint32_t *link)
{
    struct shm_map_shard *s = &map->shards[shard];
    uint32_t index = SHM_LOAD(*link);

    assert(shard < SHM_MAP_SHARDS_MAX && index != 0);
    SHM_STORE(*link, SHM_LOAD(shm_map_entry_at(map, index)->next));
    SHM_STORE(s->sequence, SHM_LOAD(s->sequence) + 1);
    SHM_STORE(s->count, SHM_LOAD(s->count) - 1);
    shm_map_pool_give(map, index);
}

static void sweep_chain(struct shm_map *map, uint32_t shard, _Atomic uint32_t *link,
    uint64_t now_ms, uint64_t *soonest_ms)
{
    for (uint32_t i = SHM_LOAD(*link); i != 0; i = SHM_LOAD(*link)) {
        struct shm_map_entry *entry = shm_map_entry_at(map, i);
        uint64_t expires_ms = SHM_LOAD(entry->expires_ms);

        if (shm_map_is_expired(entry, now_ms)) {
            shm_map_shard_remove(map, shard, link);
            continue;
        }
        if (expires_ms != 0 && expires_ms < *soonest_ms)
            *soonest_ms = expires_ms;
        link = &entry->next;
    }
}

void shm_map_sweep(struct shm_map *map, uint64_t now_ms)
{
    for (uint32_t shard = 0; shard < map->shard_n; shard++) {
        struct shm_map_shard *s = &map->shards[shard];
        _Atomic uint32_t *buckets = shm_map_buckets(map, shard);
        uint64_t soonest_ms = UINT64_MAX;

        if (SHM_LOAD(s->soonest_ms) <= now_ms)
            shm_map_shard_lock(map, shard);
        else if (!shm_map_shard_try(map, shard))
            continue; /* the lock was tried only to repair what a death may have left */
        if (SHM_LOAD(s->soonest_ms) <= now_ms) {
            for (uint32_t b = 0; b < map->bucket_n; b++)
                sweep_chain(map, shard, &buckets[b], now_ms, &soonest_ms);
            SHM_STORE(s->soonest_ms, soonest_ms);
        }
        shm_map_shard_unlock(map, shard);
    }
}

uint32_t shm_map_count(struct shm_map *map)
{
    uint32_t count = 0;

    for (uint32_t shard = 0; shard < map->shard_n; shard++) {
        bool held = shm_map_shard_try(map, shard);

        count += SHM_LOAD(map->shards[shard].count);
        if (held)
            shm_map_shard_unlock(map, shard);
    }
    return count;
}
