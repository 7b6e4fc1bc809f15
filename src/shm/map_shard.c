/* SPDX-License-Identifier: BSD-2-Clause */
/* Shards: their locks, their repairs, and the place of a key. A shard is whole whenever the lock is
 * held: the first lock after a death, or after the holder stood still, repairs. After a death the
 * chains are whole, and entries outside of chains are found by their owner. Broken chains come from
 * a worker's stray write: the shard is emptied. */
#include "shm/map_private.h"

#include <bsd/stdlib.h>

/* Entries kept back by a shard at once: a process may still write to two or three. */
#define KEPT_MOST 64

/* Removes the marks of a repair cut off by the death of its process. */
static bool remove_marks(struct shm_map *map, uint32_t used, uint8_t owner)
{
    assert(used <= map->table.entry_n && owner > 0 && owner <= map->table.shard_n);
    for (uint32_t i = used; i > 0; i--) {
        if (ZONE_LOAD(*shm_map_owner(map, i)) == (owner | SHM_MAP_REACHED))
            ZONE_STORE(*shm_map_owner(map, i), owner);
        if (!table_goes_on(&map->table, i))
            return false;
    }
    return true;
}

/* Whether an entry in the shard's chain can be what a write has left there. */
static bool is_entry_whole(
    const struct shm_map *map, uint32_t shard, const struct shm_map_entry *entry)
{
    uint64_t version = ZONE_LOAD(entry->version);
    uint32_t key_n = ZONE_LOAD(entry->key_n);

    return key_n <= map->shape.key_max && ZONE_LOAD(entry->value_n) <= map->shape.value_max &&
           version != 0 && version <= ZONE_LOAD(map->shards[shard].version) &&
           siphash(map->seed, entry->bytes, key_n) == ZONE_LOAD(entry->hash);
}

/* Findings of a walk through a shard's chains. */
struct found {
    struct shm_map *map;
    bool marks; /* a repair: marks what is reached */
    bool damaged;
    uint32_t used;       /* entries that can have an owner */
    uint32_t count;      /* entries in chains */
    uint32_t spare;      /* must not be reached; 0: none */
    uint64_t soonest_ms; /* the earliest expiry */
    uint64_t bytes;      /* with `memory`: of the entries' pages */
};

static enum table_visit note_entry(struct table_place *at, void *arg)
{
    struct found *found = arg;
    struct shm_map *map = found->map;
    struct shm_map_entry *entry = at->entry;
    uint64_t expires_ms = ZONE_LOAD(entry->expires_ms);

    if (at->index == found->spare || ZONE_LOAD(*shm_map_owner(map, at->index)) != at->shard + 1 ||
        !is_entry_whole(map, at->shard, entry))
        return TABLE_DAMAGED;
    if (found->marks) {
        ZONE_STORE(*shm_map_owner(map, at->index), (uint8_t)((at->shard + 1) | SHM_MAP_REACHED));
        if (ZONE_LOAD(entry->kept_for) != 0)
            ZONE_STORE(entry->kept_for, 0); /* published in the end */
    }
    if (expires_ms != 0 && expires_ms < found->soonest_ms)
        found->soonest_ms = expires_ms;
    found->count++;
    found->bytes += map->page != 0 ? shm_map_paged(map, ZONE_LOAD(entry->value_n)) : 0;
    found->used = at->index > found->used ? at->index : found->used;
    at->cost += ZONE_LOAD(entry->key_n) / SHM_MAP_KEY_COST;
    return TABLE_KEPT;
}

/* Walks all chains, until one is damaged; false where the lock was taken. */
static bool walk_chains(struct shm_map *map, uint32_t shard, struct found *found)
{
    enum table_step step;

    assert(found->used <= map->table.entry_n);
    found->map = map;
    found->soonest_ms = UINT64_MAX;
    step = table_walk(&map->table, shard, note_entry, found);
    found->damaged = step == TABLE_FAILED;
    return step != TABLE_NONE;
}

/* Whether an entry must be kept back, for a process that may still write there. */
static bool is_kept(struct shm_map *map, struct shm_map_entry *entry)
{
    uint32_t kept_for = ZONE_LOAD(entry->kept_for);

    if (kept_for == 0 && map->table.hold.stood != 0) {
        kept_for = map->table.hold.stood;
        ZONE_STORE(entry->kept_for, kept_for);
    }
    return !zone_lock_is_past(&map->table.locker, kept_for);
}

/* Collects the entries outside of chains: one as the spare, the rest for the pool or kept back. */
static bool collect_unreached(
    struct shm_map *map, uint32_t shard, const struct found *found, uint32_t keep)
{
    struct shm_map_shard *s = &map->shards[shard];
    uint8_t own = (uint8_t)(shard + 1);
    uint32_t spare = 0, kept_for = 0;

    assert(keep <= KEPT_MOST && map->pool_hold.lock == NULL);
    for (uint32_t i = found->used; i > 0; i--) {
        uint8_t owner = ZONE_LOAD(*shm_map_owner(map, i));

        if (!table_goes_on(&map->table, i))
            return false;
        if (owner == (own | SHM_MAP_REACHED))
            ZONE_STORE(*shm_map_owner(map, i), own);
        if (owner != own)
            continue;
        if (keep > 0 && is_kept(map, shm_map_entry_at(map, i))) {
            kept_for = ZONE_LOAD(shm_map_entry_at(map, i)->kept_for);
            keep--;
            continue;
        }
        ZONE_STORE(shm_map_entry_at(map, i)->kept_for, 0);
        if (map->page != 0)
            shm_map_pool_release_pages(map, i, map->shape.value_max);
        if (spare != 0)
            shm_map_pool_give(map, shard, i);
        else
            spare = i;
    }
    if (spare == 0)
        spare = shm_map_pool_acquire(map, shard);
    if (!table_holds(&map->table))
        return false;
    ZONE_STORE(s->spare, spare);
    ZONE_STORE(s->kept_for, kept_for);
    return true;
}

void shm_map_shard_empty(struct shm_map *map, uint32_t shard)
{
    struct shm_map_shard *s = &map->shards[shard];
    _Atomic uint32_t *buckets = shm_map_buckets(map, shard);
    struct found found = { .used = shm_map_pool_used(map) };
    uint64_t before = ZONE_LOAD(s->version), version;

    assert(map->table.hold.lock == &s->lock && map->pool_hold.lock == NULL);
    map->mended.emptied++;
    arc4random_buf(&version, sizeof(version)); /* new to all keys: the last version is unknown */
    version &= SHM_MAP_VERSION_MAX / 4;
    for (uint32_t bucket = 0; bucket < map->table.bucket_n; bucket++) {
        if (!table_goes_on(&map->table, bucket))
            return;
        if (ZONE_LOAD(buckets[bucket]) != 0)
            ZONE_STORE(buckets[bucket], 0);
    }
    ZONE_STORE(s->sequence, ZONE_LOAD(s->sequence) + 1);
    ZONE_STORE(s->version, before < SHM_MAP_VERSION_MAX / 2 ? before + version : version);
    ZONE_STORE(s->soonest_ms, UINT64_MAX);
    ZONE_STORE(s->count, 0);
    ZONE_STORE(s->bytes, 0);
    /* keeps nothing back: a late write is no worse than the damage found */
    if (remove_marks(map, found.used, (uint8_t)(shard + 1)))
        collect_unreached(map, shard, &found, 0);
}

/* Finds the shard's entries outside of chains; empties a damaged shard. */
static COLD void repair_shard(struct shm_map *map, uint32_t shard)
{
    struct shm_map_shard *s = &map->shards[shard];
    struct found found = { .marks = true, .used = shm_map_pool_used(map) };
    uint32_t keep = ZONE_LOAD(s->suspect) == SHM_MAP_KEEPS_NOTHING ? 0 : KEPT_MOST;

    assert(map->table.hold.lock == &s->lock);
    ZONE_STORE(s->suspect, 0);
    ZONE_STORE(s->soonest_ms, 0); /* the next sweep finds out */
    /* the dead process may have taken out an entry that a reader still reads */
    ZONE_STORE(s->sequence, ZONE_LOAD(s->sequence) + 1);
    if (!remove_marks(map, found.used, (uint8_t)(shard + 1)) || !walk_chains(map, shard, &found))
        return;
    if (found.damaged || ZONE_LOAD(s->version) > SHM_MAP_VERSION_MOST)
        shm_map_shard_empty(map, shard);
    else if (!collect_unreached(map, shard, &found, keep))
        return;
    else if (found.count > 0 && ZONE_LOAD(s->spare) == 0 && ZONE_LOAD(s->kept_for) == 0)
        shm_map_shard_empty(map, shard); /* the spare entry belongs to another shard by now */
    else {
        ZONE_STORE(s->count, found.count);
        ZONE_STORE(s->bytes, found.bytes);
    }
}

/* Repairs a shard after a step has found damage, unless the lock was taken. */
static COLD void repair_damage(struct shm_map *map, uint32_t shard)
{
    uint32_t emptied = map->mended.emptied;

    if (!table_holds(&map->table))
        return;
    repair_shard(map, shard);
    map->mended.rebuilt += map->mended.emptied == emptied;
}

/* Whether the numbers agree with the findings. A shard without a spare has no keys, unless entries
 * are kept back. */
static bool shard_agrees(const struct shm_map *map, uint32_t shard, const struct found *found)
{
    const struct shm_map_shard *s = &map->shards[shard];
    bool has_spare = table_is_index(&map->table, found->spare) &&
                     ZONE_LOAD(*shm_map_owner(map, found->spare)) == shard + 1;
    bool needs_none = found->spare == 0 && (found->count == 0 || ZONE_LOAD(s->kept_for) != 0);

    return !found->damaged && (has_spare || needs_none) && ZONE_LOAD(s->count) == found->count &&
           ZONE_LOAD(s->bytes) == found->bytes && ZONE_LOAD(s->soonest_ms) <= found->soonest_ms &&
           ZONE_LOAD(s->version) <= SHM_MAP_VERSION_MOST;
}

/* Checks the shard for this process, and repairs damage. Costs as much as the shard has entries,
 * and writes nothing to a whole shard. */
static COLD void look_through_shard(struct shm_map *map, uint32_t shard)
{
    struct shm_map_shard *s = &map->shards[shard];
    struct found found = { .spare = ZONE_LOAD(s->spare) };

    assert(map->table.hold.lock == &s->lock && map->pool_hold.lock == NULL);
    if (!walk_chains(map, shard, &found))
        return;
    if (!shard_agrees(map, shard, &found))
        repair_damage(map, shard);
    if (table_holds(&map->table))
        map->checked |= UINT64_C(1) << shard;
}

/* Repairs the shard if that is needed; returns whether the lock is held. */
static ALWAYS_INLINE bool finish_lock(
    struct shm_map *map, uint32_t shard, enum zone_lock_state state)
{
    struct shm_map_shard *s = &map->shards[shard];
    uint32_t kept_for;

    if (state == ZONE_LOCK_BUSY)
        return false;
    kept_for = ZONE_LOAD(s->kept_for);
    /* kept back entries are free after the death, or the return, of their process */
    if (unlikely(state != ZONE_LOCK_FREE || ZONE_LOAD(s->suspect) != 0 ||
                 (kept_for != 0 && zone_lock_is_past(&map->table.locker, kept_for))))
        repair_shard(map, shard);
    if (unlikely(!shm_map_is_checked(map, shard)))
        look_through_shard(map, shard);
    return true;
}

void shm_map_shard_lock(struct shm_map *map, uint32_t shard)
{
    enum zone_lock_state state =
        zone_lock(&map->table.locker, &map->shards[shard].lock, &map->table.hold);

    assert(shard < map->table.shard_n && map->pool_hold.lock == NULL);
    map->mended.taken = map->table.locker.taken;
    finish_lock(map, shard, state);
}

bool shm_map_shard_try(struct shm_map *map, uint32_t shard)
{
    struct shm_lock *lock = &map->shards[shard].lock;

    assert(shard < map->table.shard_n && map->pool_hold.lock == NULL);
    return finish_lock(map, shard, zone_lock_try(&map->table.locker, lock, &map->table.hold));
}

bool shm_map_shard_end(struct shm_map *map, uint32_t shard, bool whole)
{
    if (unlikely(!whole))
        repair_damage(map, shard);
    zone_lock_release(&map->table.hold);
    return whole;
}

bool shm_map_shard_remove(
    struct shm_map *map, uint32_t shard, _Atomic uint32_t *link, uint32_t index)
{
    struct shm_map_shard *s = &map->shards[shard];
    uint32_t next = ZONE_LOAD(shm_map_entry_at(map, index)->next), count = ZONE_LOAD(s->count);

    assert(shard < map->table.shard_n && table_is_index(&map->table, index));
    if (next > map->table.entry_n || ZONE_LOAD(*shm_map_owner(map, index)) != shard + 1 ||
        !table_holds(&map->table))
        return false;
    ZONE_STORE(*link, next);
    if (!table_holds(&map->table)) /* the holder has found the entry by now */
        return true;
    ZONE_STORE(s->sequence, ZONE_LOAD(s->sequence) + 1);
    ZONE_STORE(s->count, count > 0 ? count - 1 : 0);
    if (unlikely(map->page != 0)) {
        uint32_t value_n = ZONE_LOAD(shm_map_entry_at(map, index)->value_n);

        shm_map_pool_give_pages(map, shard, value_n);
        shm_map_pool_release_pages(map, index, value_n);
    }
    shm_map_pool_give(map, shard, index);
    return true;
}

bool shm_map_find(struct shm_map *map, const struct shm_map_subject *s, struct shm_map_place *place)
{
    struct table_place at;
    enum table_step step = shm_map_find_key(map, s, &at);
    struct shm_map_entry *entry = at.entry;

    *place = (struct shm_map_place) { .link = s->bucket }; /* a new entry comes first */
    if (step != TABLE_OK)
        return step == TABLE_NONE;
    if (at.before != 0)
        place->link = &shm_map_entry_at(map, at.before)->next;
    place->index = at.index;
    place->entry = entry;
    place->version = ZONE_LOAD(entry->version);
    place->expires_ms = ZONE_LOAD(entry->expires_ms);
    place->value_n = ZONE_LOAD(entry->value_n);
    place->present = !shm_map_has_passed(place->expires_ms, s->now_ms);
    return place->value_n <= map->shape.value_max && place->version != 0 &&
           place->version <= ZONE_LOAD(map->shards[s->shard].version);
}
