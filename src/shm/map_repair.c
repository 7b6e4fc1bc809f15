/* SPDX-License-Identifier: BSD-2-Clause */
/* Repairs of a shard. After a death its chains are whole, and entries that are in none of them are
 * found by their owner. Where the chains are not whole, somebody has written there who should not:
 * the shard is emptied. */
#include "shm/map_private.h"
#include "shm/siphash.h"

#include <assert.h>
#include <bsd/stdlib.h>

/* Entries that a shard keeps back at once: what a process may still write to are two or three. */
#define KEPT_MOST 64

/* Whether the repair may go on. In each RENEW_EVERY calls the lock's word shows that it does. */
static bool goes_on(struct shm_map *map, uint32_t n)
{
    if (n % SHM_MAP_RENEW_EVERY == SHM_MAP_RENEW_EVERY - 1)
        return shm_map_lock_renew(map, &map->shard_hold);
    return zone_lock_holds(&map->shard_hold);
}

/* Removes the marks of a repair whose own process has died within it. */
static bool remove_marks(struct shm_map *map, uint32_t used, uint8_t owner)
{
    for (uint32_t i = used; i > 0; i--) {
        if (SHM_LOAD(*shm_map_owner(map, i)) == (owner | SHM_MAP_REACHED))
            SHM_STORE(*shm_map_owner(map, i), owner);
        if (!goes_on(map, i))
            return false;
    }
    return true;
}

/* Whether an entry in the shard's chain can be what a write has left there. */
static bool is_whole(
    const struct shm_map *map, uint32_t shard, uint32_t bucket, const struct shm_map_entry *entry)
{
    uint64_t hash = SHM_LOAD(entry->hash), version = SHM_LOAD(entry->version);
    uint32_t key_n = SHM_LOAD(entry->key_n);

    return shm_map_shard_of(map, hash) == shard && shm_map_bucket_of(map, hash) == bucket &&
           key_n <= map->shape.key_max && SHM_LOAD(entry->value_n) <= map->shape.value_max &&
           version != 0 && version <= SHM_LOAD(map->shards[shard].version) &&
           siphash(map->seed, entry->bytes, key_n) == hash;
}

/* Findings of a walk through a shard's chains. */
struct found {
    bool marks; /* a repair: marks what is reached */
    bool damaged;
    uint32_t used;       /* entries that can have an owner */
    uint32_t count;      /* entries in chains */
    uint32_t cost;       /* since the lock was renewed */
    uint32_t spare;      /* must not be reached; 0: none */
    uint64_t soonest_ms; /* the earliest expiry */
    uint64_t bytes;      /* with `memory`: of the entries' pages */
};

static uint32_t used_entries(const struct shm_map *map)
{
    uint32_t used = shm_map_pool_used(map);

    return used <= map->entry_n ? used : map->entry_n;
}

static void mark_entry(struct shm_map *map, uint32_t shard, uint32_t index)
{
    struct shm_map_entry *entry = shm_map_entry_at(map, index);

    SHM_STORE(*shm_map_owner(map, index), (uint8_t)((shard + 1) | SHM_MAP_REACHED));
    if (SHM_LOAD(entry->kept_for) != 0)
        SHM_STORE(entry->kept_for, 0); /* published in the end */
}

/* Walks a chain; false where it is damaged. No entry is in two chains, for its hash is of one
 * bucket, and a circle is longer than any chain. */
static bool walk_chain(struct shm_map *map, uint32_t shard, uint32_t bucket, struct found *found)
{
    uint32_t index = SHM_LOAD(shm_map_buckets(map, shard)[bucket]);

    for (uint32_t n = 0; index != 0; n++) {
        const struct shm_map_entry *entry;
        uint64_t expires_ms;

        if (!shm_map_is_index(map, index) || index == found->spare || n == SHM_MAP_CHAIN_MAX ||
            SHM_LOAD(*shm_map_owner(map, index)) != shard + 1)
            return false;
        entry = shm_map_entry_at(map, index);
        if (!is_whole(map, shard, bucket, entry))
            return false;
        if (found->marks)
            mark_entry(map, shard, index);
        expires_ms = SHM_LOAD(entry->expires_ms);
        if (expires_ms != 0 && expires_ms < found->soonest_ms)
            found->soonest_ms = expires_ms;
        found->count++;
        found->bytes += map->page != 0 ? shm_map_paged(map, SHM_LOAD(entry->value_n)) : 0;
        found->cost += 1 + SHM_LOAD(entry->key_n) / SHM_MAP_KEY_COST;
        found->used = index > found->used ? index : found->used;
        index = SHM_LOAD(entry->next);
    }
    return true;
}

/* Walks all chains, until one is damaged; false where the lock was taken. */
static bool walk_chains(struct shm_map *map, uint32_t shard, struct found *found)
{
    found->soonest_ms = UINT64_MAX;
    for (uint32_t bucket = 0; bucket < map->bucket_n && !found->damaged; bucket++) {
        if (found->cost++ >= SHM_MAP_RENEW_EVERY) {
            found->cost = 0;
            if (!shm_map_lock_renew(map, &map->shard_hold))
                return false;
        }
        if (!zone_lock_holds(&map->shard_hold))
            return false;
        found->damaged = !walk_chain(map, shard, bucket, found);
    }
    return true;
}

/* Whether an entry must be kept back, for a process that may still write there. */
static bool is_kept(struct shm_map *map, struct shm_map_entry *entry)
{
    uint32_t kept_for = SHM_LOAD(entry->kept_for);

    if (kept_for == 0 && map->shard_hold.stood != 0) {
        kept_for = map->shard_hold.stood;
        SHM_STORE(entry->kept_for, kept_for);
    }
    return !zone_lock_is_past(&map->locker, kept_for);
}

/* Collects the entries of the shard that are in no chain: one becomes the spare, the others are
 * returned to the pool, but for those that are kept back. */
static bool collect_unreached(
    struct shm_map *map, uint32_t shard, const struct found *found, uint32_t keep)
{
    struct shm_map_shard *s = &map->shards[shard];
    uint8_t own = (uint8_t)(shard + 1);
    uint32_t spare = 0, kept_for = 0;

    for (uint32_t i = found->used; i > 0; i--) {
        uint8_t owner = SHM_LOAD(*shm_map_owner(map, i));

        if (!goes_on(map, i))
            return false;
        if (owner == (own | SHM_MAP_REACHED))
            SHM_STORE(*shm_map_owner(map, i), own);
        if (owner != own)
            continue;
        if (keep > 0 && is_kept(map, shm_map_entry_at(map, i))) {
            kept_for = SHM_LOAD(shm_map_entry_at(map, i)->kept_for);
            keep--;
            continue;
        }
        SHM_STORE(shm_map_entry_at(map, i)->kept_for, 0);
        if (map->page != 0)
            shm_map_memory_release(map, i, map->shape.value_max);
        if (spare != 0)
            shm_map_pool_give(map, shard, i);
        else
            spare = i;
    }
    if (spare == 0)
        spare = shm_map_pool_acquire(map, shard);
    if (!zone_lock_holds(&map->shard_hold))
        return false;
    SHM_STORE(s->spare, spare);
    SHM_STORE(s->kept_for, kept_for);
    return true;
}

void shm_map_repair(struct shm_map *map, uint32_t shard)
{
    struct shm_map_shard *s = &map->shards[shard];
    struct found found = { .marks = true, .used = used_entries(map) };
    uint32_t keep = SHM_LOAD(s->suspect) == SHM_MAP_KEEPS_NOTHING ? 0 : KEPT_MOST;

    assert(map->shard_hold.lock == &s->lock);
    SHM_STORE(s->suspect, 0);
    SHM_STORE(s->soonest_ms, 0); /* the next sweep finds out */
    /* the dead process may have taken out an entry that a reader still reads */
    SHM_STORE(s->sequence, SHM_LOAD(s->sequence) + 1);
    if (!remove_marks(map, found.used, (uint8_t)(shard + 1)) || !walk_chains(map, shard, &found))
        return;
    if (found.damaged || SHM_LOAD(s->version) > SHM_MAP_VERSION_MOST)
        shm_map_repair_empty(map, shard);
    else if (!collect_unreached(map, shard, &found, keep))
        return;
    else if (found.count > 0 && SHM_LOAD(s->spare) == 0 && SHM_LOAD(s->kept_for) == 0)
        shm_map_repair_empty(map, shard); /* the spare entry is another shard's by now */
    else {
        SHM_STORE(s->count, found.count);
        SHM_STORE(s->bytes, found.bytes);
    }
}

void shm_map_repair_damage(struct shm_map *map, uint32_t shard)
{
    uint32_t emptied = map->mended.emptied;

    if (!zone_lock_holds(&map->shard_hold))
        return;
    shm_map_repair(map, shard);
    map->mended.rebuilt += map->mended.emptied == emptied;
}

/* Whether all that a shard says of itself is so. One without a spare entry has no keys either,
 * unless entries are kept back. */
static bool agrees(const struct shm_map *map, uint32_t shard, const struct found *found)
{
    const struct shm_map_shard *s = &map->shards[shard];
    bool has_spare = shm_map_is_index(map, found->spare) &&
                     SHM_LOAD(*shm_map_owner(map, found->spare)) == shard + 1;
    bool needs_none = found->spare == 0 && (found->count == 0 || SHM_LOAD(s->kept_for) != 0);

    return !found->damaged && (has_spare || needs_none) && SHM_LOAD(s->count) == found->count &&
           SHM_LOAD(s->bytes) == found->bytes && SHM_LOAD(s->soonest_ms) <= found->soonest_ms &&
           SHM_LOAD(s->version) <= SHM_MAP_VERSION_MOST;
}

void shm_map_repair_first(struct shm_map *map, uint32_t shard)
{
    struct shm_map_shard *s = &map->shards[shard];
    struct found found = { .spare = SHM_LOAD(s->spare) };

    assert(map->shard_hold.lock == &s->lock && map->pool_hold.lock == NULL);
    if (!walk_chains(map, shard, &found))
        return;
    if (!agrees(map, shard, &found))
        shm_map_repair_damage(map, shard);
    if (zone_lock_holds(&map->shard_hold))
        map->checked |= UINT64_C(1) << shard;
}

/* A version that no state of a key has had: which the last was is not known any more. */
static uint64_t new_version(uint64_t before)
{
    uint64_t version;

    arc4random_buf(&version, sizeof(version));
    version &= SHM_MAP_VERSION_MAX / 4;
    return before < SHM_MAP_VERSION_MAX / 2 ? before + version : version;
}

void shm_map_repair_empty(struct shm_map *map, uint32_t shard)
{
    struct shm_map_shard *s = &map->shards[shard];
    _Atomic uint32_t *buckets = shm_map_buckets(map, shard);
    struct found found = { .used = used_entries(map) };

    assert(map->shard_hold.lock == &s->lock && map->pool_hold.lock == NULL);
    map->mended.emptied++;
    for (uint32_t bucket = 0; bucket < map->bucket_n; bucket++) {
        if (!goes_on(map, bucket))
            return;
        if (SHM_LOAD(buckets[bucket]) != 0)
            SHM_STORE(buckets[bucket], 0);
    }
    SHM_STORE(s->sequence, SHM_LOAD(s->sequence) + 1);
    SHM_STORE(s->version, new_version(SHM_LOAD(s->version)));
    SHM_STORE(s->soonest_ms, UINT64_MAX);
    SHM_STORE(s->count, 0);
    SHM_STORE(s->bytes, 0);
    /* keeps nothing back: what is written there late is no worse than what was found */
    if (remove_marks(map, found.used, (uint8_t)(shard + 1)))
        collect_unreached(map, shard, &found, 0);
}

void shm_map_repair_all(struct shm_map *map, enum shm_map_suspicion why)
{
    for (uint32_t shard = 0; shard < map->shard_n; shard++)
        SHM_STORE(map->shards[shard].suspect, why);
}
