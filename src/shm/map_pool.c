/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool: the entries that belong to no shard. An entry's owner is written before the entry
 * leaves the pool or after it has come back, so that a repair finds the entry in shard or pool. A
 * list of free entries is rebuilt from the owners where the two disagree.
 *
 * Maps with `memory` have pages, too. A shard's pages are added before the sum of all shards is
 * compared, so that two simultaneous writers never exceed the limit: in doubt both find the map
 * full. A repair counts anew. */
#include "os/memory.h"
#include "shm/map_private.h"

#define TRIES 4 /* tries where the lock is taken from us, or the pool damaged, again and again */

/* Whether an entry belongs to a shard. */
static bool is_owned(const struct shm_map *map, uint32_t index)
{
    uint8_t owner = ZONE_LOAD(*shm_map_owner(map, index)) & (uint8_t)~SHM_MAP_REACHED;

    return owner != 0 && owner <= map->table.shard_n;
}

/* Finds the last owned entry, and clears invalid owners on the way. */
static uint32_t last_owned(struct shm_map *map)
{
    for (uint32_t i = map->table.entry_n; i > 0; i--) {
        if (is_owned(map, i))
            return i;
        if (ZONE_LOAD(*shm_map_owner(map, i)) != 0)
            ZONE_STORE(*shm_map_owner(map, i), 0);
        if (!zone_lock_goes_on(&map->table.locker, &map->pool_hold, i))
            break;
    }
    return 0;
}

/* Rebuilds the chain of free entries from entries without an owner. */
static void rebuild_pool(struct shm_map *map, uint32_t used)
{
    uint32_t first = 0;

    assert(used <= map->table.entry_n);
    if (!zone_lock_holds(&map->pool_hold))
        return;
    ZONE_STORE(map->pool->free, 0);
    for (uint32_t i = used; i > 0; i--) {
        if (!is_owned(map, i)) {
            ZONE_STORE(*shm_map_owner(map, i), 0);
            ZONE_STORE(shm_map_entry_at(map, i)->next, first);
            first = i;
        }
        if (!zone_lock_goes_on(&map->table.locker, &map->pool_hold, i))
            return;
    }
    if (!zone_lock_holds(&map->pool_hold))
        return;
    ZONE_STORE(map->pool->used, used);
    ZONE_STORE(map->pool->free, first);
}

void shm_map_pool_suspect(struct shm_map *map, enum shm_map_suspicion why)
{
    assert(why != 0);
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++)
        ZONE_STORE(map->shards[shard].suspect, why);
}

/* Mends a damaged pool. Shards may have lost entries, and are to look for them. */
static void mend_pool(struct shm_map *map)
{
    assert(map->pool_hold.lock == &map->pool->lock);
    map->mended.rebuilt++;
    rebuild_pool(map, last_owned(map));
    shm_map_pool_suspect(map, SHM_MAP_SUSPECT);
}

/* A death before the first use of an entry has left the owner there, but not the number. */
uint32_t shm_map_pool_used(const struct shm_map *map)
{
    uint32_t used = ZONE_LOAD(map->pool->used);

    while (used < map->table.entry_n && ZONE_LOAD(*shm_map_owner(map, used + 1)) != 0)
        used++;
    return used <= map->table.entry_n ? used : map->table.entry_n;
}

/* Counts the entries due in the list. */
static uint32_t count_unowned(struct shm_map *map, uint32_t used)
{
    uint32_t n = 0;

    assert(used <= map->table.entry_n);
    for (uint32_t i = used; i > 0; i--) {
        n += !is_owned(map, i);
        if (!zone_lock_goes_on(&map->table.locker, &map->pool_hold, i))
            break;
    }
    return n;
}

/* Whether the list has the touched entries without an owner, and only them. Of a long list only the
 * beginning is followed: damage to the rest costs no keys, and is found when an entry is taken. */
static bool is_list_whole(struct shm_map *map)
{
    uint32_t used = ZONE_LOAD(map->pool->used), index = ZONE_LOAD(map->pool->free), n = 0;
    uint32_t most = used < ZONE_LOCK_RENEW_EVERY ? used : ZONE_LOCK_RENEW_EVERY;

    if (used > map->table.entry_n)
        return false;
    for (; index != 0 && n < most; n++) {
        if (index > used || ZONE_LOAD(*shm_map_owner(map, index)) != 0)
            return false;
        index = ZONE_LOAD(shm_map_entry_at(map, index)->next);
    }
    return index == 0 ? n == count_unowned(map, used) : n < used;
}

/* Locks the pool, repairs the pool after a death, and checks it, once a process. */
static void lock_pool(struct shm_map *map)
{
    enum zone_lock_state state = zone_lock(&map->table.locker, &map->pool->lock, &map->pool_hold);
    bool whole;

    map->mended.taken = map->table.locker.taken;
    if (state != ZONE_LOCK_FREE && ZONE_LOAD(map->pool->used) <= map->table.entry_n)
        rebuild_pool(map, shm_map_pool_used(map));
    else if (state != ZONE_LOCK_FREE)
        mend_pool(map);
    if (likely(map->pool_checked))
        return;
    whole = is_list_whole(map);
    if (!zone_lock_holds(&map->pool_hold))
        return;
    if (!whole)
        mend_pool(map);
    map->pool_checked = true;
}

/* Marks the owner before the entry leaves the pool, so that the shard's repair finds the entry
 * after a death. NONE, as in give_entry(): the lock was taken. */
static enum table_step take_entry(struct shm_map *map, uint32_t shard, uint32_t *taken)
{
    uint32_t used = ZONE_LOAD(map->pool->used), listed = ZONE_LOAD(map->pool->free), next = 0;
    uint32_t index = listed != 0 ? listed : used + 1;

    assert(map->pool_hold.lock == &map->pool->lock);
    *taken = 0;
    if (used > map->table.entry_n || listed > used)
        return TABLE_FAILED;
    if (index > map->table.entry_n || (listed == 0 && used >= map->touched_most))
        return TABLE_OK;
    if (listed != 0)
        next = ZONE_LOAD(shm_map_entry_at(map, index)->next);
    if (next > used || ZONE_LOAD(*shm_map_owner(map, index)) != 0)
        return TABLE_FAILED;
    if (!zone_lock_holds(&map->pool_hold))
        return TABLE_NONE;
    ZONE_STORE(*shm_map_owner(map, index), (uint8_t)(shard + 1));
    if (ZONE_LOAD(shm_map_entry_at(map, index)->kept_for) != 0)
        ZONE_STORE(shm_map_entry_at(map, index)->kept_for, 0);
    *taken = index;
    if (!zone_lock_holds(&map->pool_hold))
        return TABLE_OK; /* the entry is ours, by its owner */
    if (listed != 0)
        ZONE_STORE(map->pool->free, next);
    else
        ZONE_STORE(map->pool->used, index);
    return TABLE_OK;
}

static enum table_step give_entry(struct shm_map *map, uint32_t shard, uint32_t *given)
{
    uint32_t first = ZONE_LOAD(map->pool->free), index = *given;
    _Atomic uint8_t *owner = shm_map_owner(map, index);

    assert(map->pool_hold.lock == &map->pool->lock);
    if (ZONE_LOAD(*owner) != shard + 1)
        return TABLE_OK; /* the entry belongs to another shard, or is in a chain */
    if (first > ZONE_LOAD(map->pool->used) || index > ZONE_LOAD(map->pool->used))
        return TABLE_FAILED;
    if (!zone_lock_holds(&map->pool_hold))
        return TABLE_NONE;
    ZONE_STORE(shm_map_entry_at(map, index)->next, first);
    ZONE_STORE(*owner, 0);
    if (zone_lock_holds(&map->pool_hold)) /* unless the list was made anew */
        ZONE_STORE(map->pool->free, index);
    return TABLE_OK;
}

/* Takes a step under the pool's lock until it is done, or has failed too often. */
static void try_step(struct shm_map *map, uint32_t shard, uint32_t *index,
    enum table_step (*step)(struct shm_map *map, uint32_t shard, uint32_t *index))
{
    enum table_step done = TABLE_NONE;

    assert(shard < map->table.shard_n);
    for (int tries = 0; tries < TRIES && done != TABLE_OK; tries++) {
        lock_pool(map);
        done = step(map, shard, index);
        if (done == TABLE_FAILED)
            mend_pool(map);
        zone_lock_release(&map->pool_hold);
    }
    assert(*index <= map->table.entry_n);
}

uint32_t shm_map_pool_acquire(struct shm_map *map, uint32_t shard)
{
    uint32_t index = 0;

    try_step(map, shard, &index, take_entry);
    return index;
}

void shm_map_pool_give(struct shm_map *map, uint32_t shard, uint32_t index)
{
    assert(index != 0);
    try_step(map, shard, &index, give_entry);
}

void shm_map_pool_audit(struct shm_map *map)
{
    lock_pool(map);
    rebuild_pool(map, last_owned(map));
    zone_lock_release(&map->pool_hold);
}

bool shm_map_pool_is_empty(struct shm_map *map)
{
    bool empty;

    lock_pool(map);
    empty = ZONE_LOAD(map->pool->free) == 0 && ZONE_LOAD(map->pool->used) >= map->touched_most;
    zone_lock_release(&map->pool_hold);
    return empty || shm_map_is_reduced(map);
}

bool shm_map_pool_take_pages(struct shm_map *map, uint32_t shard, uint32_t value_n)
{
    _Atomic uint64_t *own = &map->shards[shard].bytes;
    uint64_t before = ZONE_LOAD(*own), most = (uint64_t)map->shape.memory * SHM_MAP_UNIT, sum = 0;
    bool fits = before <= most; /* a greater sum is damage */

    assert(map->page != 0 && shard < map->table.shard_n);
    atomic_exchange(own, before + shm_map_paged(map, value_n));
    for (uint32_t i = 0; i < map->table.shard_n && fits; i++) {
        uint64_t bytes = atomic_load(&map->shards[i].bytes);

        fits = bytes <= most - sum;
        sum += bytes;
    }
    if (!fits && table_holds(&map->table))
        ZONE_STORE(*own, before);
    return fits;
}

void shm_map_pool_give_pages(struct shm_map *map, uint32_t shard, uint32_t value_n)
{
    _Atomic uint64_t *own = &map->shards[shard].bytes;
    uint64_t before = ZONE_LOAD(*own), bytes = shm_map_paged(map, value_n);

    assert(map->page != 0 && shard < map->table.shard_n);
    ZONE_STORE(*own, before > bytes ? before - bytes : 0);
}

void shm_map_pool_release_pages(struct shm_map *map, uint32_t index, uint32_t value_n)
{
    uint64_t bytes =
        shm_map_paged(map, value_n <= map->shape.value_max ? value_n : map->shape.value_max);

    assert(map->page != 0 && table_is_index(&map->table, index) && bytes <= map->table.stride);
    if (bytes > map->page)
        os_segment_release(
            (char *)shm_map_entry_at(map, index) + map->page, (size_t)(bytes - map->page));
}
