/* SPDX-License-Identifier: BSD-2-Clause */
/* Shards: their locks, the repair of what a death has left in them, and the sweep of expired
 * entries. A shard is whole whenever its lock is held: the first to lock it after a death repairs
 * it. */
#include "shm/map_private.h"

#include <assert.h>

int fb_shm_shard_init(struct fb_shm_map *map, uint32_t shard)
{
    struct fb_shm_shard *s = &map->shards[shard];

    assert(shard < FB_SHM_SHARDS_MAX);
    FB_STORE(s->soonest_ms, UINT64_MAX);
    FB_STORE(s->spare, fb_shm_pool_take(map, shard));
    return fb_shm_mutex_init(&s->mutex);
}

/* Removes the marks of a repair whose own process has died within it. */
static void remove_marks(struct fb_shm_map *map, uint8_t owner)
{
    _Atomic uint8_t *owners = fb_shm_owners(map);

    for (uint32_t i = FB_LOAD(map->pool.used); i > 0; i--)
        if (FB_LOAD(owners[i]) == (owner | FB_SHM_REACHED))
            FB_STORE(owners[i], owner);
}

/* Marks the entries of a chain, and returns how many they are. Links are always whole; if a stray
 * pointer was written all the same, the chain ends before the first impossible entry. */
static uint32_t mark_chain(struct fb_shm_map *map, _Atomic uint32_t *link, uint8_t owner)
{
    _Atomic uint8_t *owners = fb_shm_owners(map);
    uint32_t count = 0;

    for (uint32_t i = FB_LOAD(*link); i != 0; i = FB_LOAD(*link)) {
        if (i > map->entry_n || FB_LOAD(owners[i]) != owner) {
            FB_STORE(*link, 0);
            break;
        }
        FB_STORE(owners[i], owner | FB_SHM_REACHED);
        link = &fb_shm_entry_at(map, i)->next;
        count++;
    }
    return count;
}

/* Collects the shard's entries that are in no chain: one becomes the spare, the others go to the
 * pool. */
static void collect_unreached(struct fb_shm_map *map, uint32_t shard, uint8_t owner)
{
    _Atomic uint8_t *owners = fb_shm_owners(map);
    uint32_t spare = 0;

    for (uint32_t i = FB_LOAD(map->pool.used); i > 0; i--) {
        if (FB_LOAD(owners[i]) == (owner | FB_SHM_REACHED))
            FB_STORE(owners[i], owner);
        else if (FB_LOAD(owners[i]) == owner && spare != 0)
            fb_shm_pool_give(map, i);
        else if (FB_LOAD(owners[i]) == owner)
            spare = i;
    }
    assert(spare != 0);
    FB_STORE(map->shards[shard].spare, spare);
}

static void repair_shard(struct fb_shm_map *map, uint32_t shard)
{
    struct fb_shm_shard *s = &map->shards[shard];
    _Atomic uint32_t *buckets = fb_shm_buckets(map, shard);
    uint8_t owner = (uint8_t)(shard + 1);
    uint32_t count = 0;

    /* the dead process may have taken out an entry that a reader still reads */
    FB_STORE(s->sequence, FB_LOAD(s->sequence) + 1);
    remove_marks(map, owner);
    for (uint32_t b = 0; b < map->bucket_n; b++)
        count += mark_chain(map, &buckets[b], owner);
    collect_unreached(map, shard, owner);
    FB_STORE(s->count, count);
}

/* Repairs the shard if its last holder died with the mutex; returns whether the mutex is held. */
static bool finish_lock(struct fb_shm_map *map, uint32_t shard, enum fb_shm_mutex_state state)
{
    if (state == FB_SHM_MUTEX_INHERITED) {
        repair_shard(map, shard);
        fb_shm_mutex_heal(&map->shards[shard].mutex);
    }
    return state != FB_SHM_MUTEX_BUSY;
}

void fb_shm_shard_lock(struct fb_shm_map *map, uint32_t shard)
{
    finish_lock(map, shard, fb_shm_mutex_lock(&map->shards[shard].mutex));
}

bool fb_shm_shard_try(struct fb_shm_map *map, uint32_t shard)
{
    return finish_lock(map, shard, fb_shm_mutex_try(&map->shards[shard].mutex));
}

void fb_shm_shard_unlock(struct fb_shm_map *map, uint32_t shard)
{
    fb_shm_mutex_unlock(&map->shards[shard].mutex);
}

void fb_shm_shard_remove(struct fb_shm_map *map, uint32_t shard, _Atomic uint32_t *link)
{
    struct fb_shm_shard *s = &map->shards[shard];
    uint32_t index = FB_LOAD(*link);

    assert(shard < FB_SHM_SHARDS_MAX && index != 0);
    FB_STORE(*link, FB_LOAD(fb_shm_entry_at(map, index)->next));
    FB_STORE(s->sequence, FB_LOAD(s->sequence) + 1);
    FB_STORE(s->count, FB_LOAD(s->count) - 1);
    fb_shm_pool_give(map, index);
}

static void sweep_chain(struct fb_shm_map *map, uint32_t shard, _Atomic uint32_t *link,
    uint64_t now_ms, uint64_t *soonest_ms)
{
    for (uint32_t i = FB_LOAD(*link); i != 0; i = FB_LOAD(*link)) {
        struct fb_shm_entry *entry = fb_shm_entry_at(map, i);
        uint64_t expires_ms = FB_LOAD(entry->expires_ms);

        if (fb_shm_expired(entry, now_ms)) {
            fb_shm_shard_remove(map, shard, link);
            continue;
        }
        if (expires_ms != 0 && expires_ms < *soonest_ms)
            *soonest_ms = expires_ms;
        link = &entry->next;
    }
}

void fb_shm_map_sweep(struct fb_shm_map *map, uint64_t now_ms)
{
    for (uint32_t shard = 0; shard < map->shard_n; shard++) {
        struct fb_shm_shard *s = &map->shards[shard];
        _Atomic uint32_t *buckets = fb_shm_buckets(map, shard);
        uint64_t soonest_ms = UINT64_MAX;

        if (FB_LOAD(s->soonest_ms) <= now_ms)
            fb_shm_shard_lock(map, shard);
        else if (!fb_shm_shard_try(map, shard))
            continue; /* the lock was tried only to repair what a death may have left */
        if (FB_LOAD(s->soonest_ms) <= now_ms) {
            for (uint32_t b = 0; b < map->bucket_n; b++)
                sweep_chain(map, shard, &buckets[b], now_ms, &soonest_ms);
            FB_STORE(s->soonest_ms, soonest_ms);
        }
        fb_shm_shard_unlock(map, shard);
    }
}

uint32_t fb_shm_map_count(struct fb_shm_map *map)
{
    uint32_t count = 0;

    for (uint32_t shard = 0; shard < map->shard_n; shard++) {
        bool held = fb_shm_shard_try(map, shard);

        count += FB_LOAD(map->shards[shard].count);
        if (held)
            fb_shm_shard_unlock(map, shard);
    }
    return count;
}
