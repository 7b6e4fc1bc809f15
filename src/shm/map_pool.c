/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool: the entries that belong to no shard. An entry's owner is written before the entry
 * leaves the pool or after it has come back, so that a repair finds it in one place or the
 * other. */
#include "shm/map_private.h"

#include <assert.h>

/* Makes the chain of free entries anew, of those without an owner. */
static void repair_pool(struct fb_shm_map *map)
{
    _Atomic uint8_t *owners = fb_shm_owners(map);
    uint32_t first = 0;

    FB_STORE(map->pool.free, 0);
    for (uint32_t i = FB_LOAD(map->pool.used); i > 0; i--)
        if (FB_LOAD(owners[i]) == 0) {
            FB_STORE(fb_shm_entry_at(map, i)->next, first);
            first = i;
        }
    FB_STORE(map->pool.free, first);
}

static void lock_pool(struct fb_shm_map *map)
{
    if (fb_shm_mutex_lock(&map->pool.mutex) == FB_SHM_MUTEX_TAKEN)
        return;
    repair_pool(map);
    fb_shm_mutex_heal(&map->pool.mutex);
}

int fb_shm_pool_init(struct fb_shm_map *map)
{
    return fb_shm_mutex_init(&map->pool.mutex);
}

/* Marks an entry before it is taken: a process that dies between leaves it to the repair of its
 * shard, which reads owners alone. An entry beyond `used` is simply taken again. */
uint32_t fb_shm_pool_take(struct fb_shm_map *map, uint32_t shard)
{
    _Atomic uint8_t *owners = fb_shm_owners(map);
    uint32_t index, used;

    assert(shard < FB_SHM_SHARDS_MAX);
    lock_pool(map);
    index = FB_LOAD(map->pool.free);
    used = FB_LOAD(map->pool.used);
    if (index != 0) {
        assert(index <= used && FB_LOAD(owners[index]) == 0);
        FB_STORE(owners[index], (uint8_t)(shard + 1));
        FB_STORE(map->pool.free, FB_LOAD(fb_shm_entry_at(map, index)->next));
    } else if (used < map->entry_n) {
        index = used + 1;
        FB_STORE(owners[index], (uint8_t)(shard + 1));
        FB_STORE(map->pool.used, index);
    }
    fb_shm_mutex_unlock(&map->pool.mutex);
    return index;
}

void fb_shm_pool_give(struct fb_shm_map *map, uint32_t index)
{
    assert(index != 0);
    lock_pool(map);
    FB_STORE(fb_shm_entry_at(map, index)->next, FB_LOAD(map->pool.free));
    FB_STORE(fb_shm_owners(map)[index], 0);
    FB_STORE(map->pool.free, index);
    fb_shm_mutex_unlock(&map->pool.mutex);
}

bool fb_shm_pool_is_empty(struct fb_shm_map *map)
{
    bool empty;

    lock_pool(map);
    empty = FB_LOAD(map->pool.free) == 0 && FB_LOAD(map->pool.used) == map->entry_n;
    fb_shm_mutex_unlock(&map->pool.mutex);
    return empty;
}
