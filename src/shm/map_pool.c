/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool: the entries that belong to no shard. An entry's owner is written before the entry
 * leaves the pool or after it has come back, so that a repair finds it in one place or the
 * other. */
#include "shm/map_private.h"

#include <assert.h>

/* Makes the chain of free entries anew, of those without an owner. */
static void repair_pool(struct shm_map *map)
{
    _Atomic uint8_t *owners = shm_map_owners(map);
    uint32_t first = 0;

    SHM_STORE(map->pool.free, 0);
    for (uint32_t i = SHM_LOAD(map->pool.used); i > 0; i--)
        if (SHM_LOAD(owners[i]) == 0) {
            SHM_STORE(shm_map_entry_at(map, i)->next, first);
            first = i;
        }
    SHM_STORE(map->pool.free, first);
}

static void lock_pool(struct shm_map *map)
{
    if (shm_mutex_lock(&map->pool.mutex) == SHM_MUTEX_LOCKED)
        return;
    repair_pool(map);
    shm_mutex_mark_repaired(&map->pool.mutex);
}

int shm_map_pool_init(struct shm_map *map)
{
    return shm_mutex_init(&map->pool.mutex);
}

/* Marks the owner of an entry before the entry leaves the pool: if the process dies in between, the
 * repair of the shard finds the entry by its owner. An entry beyond `used` is simply allocated
 * again. */
uint32_t shm_map_pool_acquire(struct shm_map *map, uint32_t shard)
{
    _Atomic uint8_t *owners = shm_map_owners(map);
    uint32_t index, used;

    assert(shard < SHM_MAP_SHARDS_MAX);
    lock_pool(map);
    index = SHM_LOAD(map->pool.free);
    used = SHM_LOAD(map->pool.used);
    if (index != 0) {
        assert(index <= used && SHM_LOAD(owners[index]) == 0);
        SHM_STORE(owners[index], (uint8_t)(shard + 1));
        SHM_STORE(map->pool.free, SHM_LOAD(shm_map_entry_at(map, index)->next));
    } else if (used < map->entry_n) {
        index = used + 1;
        SHM_STORE(owners[index], (uint8_t)(shard + 1));
        SHM_STORE(map->pool.used, index);
    }
    shm_mutex_unlock(&map->pool.mutex);
    return index;
}

void shm_map_pool_give(struct shm_map *map, uint32_t index)
{
    assert(index != 0);
    lock_pool(map);
    SHM_STORE(shm_map_entry_at(map, index)->next, SHM_LOAD(map->pool.free));
    SHM_STORE(shm_map_owners(map)[index], 0);
    SHM_STORE(map->pool.free, index);
    shm_mutex_unlock(&map->pool.mutex);
}

bool shm_map_pool_is_empty(struct shm_map *map)
{
    bool empty;

    lock_pool(map);
    empty = SHM_LOAD(map->pool.free) == 0 && SHM_LOAD(map->pool.used) == map->entry_n;
    shm_mutex_unlock(&map->pool.mutex);
    return empty;
}
