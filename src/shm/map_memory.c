/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of maps whose entries take pages of their own. What a shard takes is added before its
 * sum with the others is looked at, so that two writers at once never exceed the limit together: in
 * doubt both find the map full. A repair counts anew. */
#include "os/memory.h"
#include "shm/map_private.h"

#include <assert.h>

bool shm_map_memory_take(struct shm_map *map, uint32_t shard, uint32_t value_n)
{
    _Atomic uint64_t *own = &map->shards[shard].bytes;
    uint64_t before = SHM_LOAD(*own), most = (uint64_t)map->shape.memory * SHM_MAP_UNIT, sum = 0;
    bool fits = before <= most; /* a greater sum is damage */

    assert(map->page != 0 && shard < map->shard_n);
    atomic_exchange(own, before + shm_map_paged(map, value_n));
    for (uint32_t i = 0; i < map->shard_n && fits; i++) {
        uint64_t bytes = atomic_load(&map->shards[i].bytes);

        fits = bytes <= most - sum;
        sum += bytes;
    }
    if (!fits && zone_lock_holds(&map->shard_hold))
        SHM_STORE(*own, before);
    return fits;
}

void shm_map_memory_give(struct shm_map *map, uint32_t shard, uint32_t value_n)
{
    _Atomic uint64_t *own = &map->shards[shard].bytes;
    uint64_t before = SHM_LOAD(*own), bytes = shm_map_paged(map, value_n);

    assert(map->page != 0 && shard < map->shard_n);
    SHM_STORE(*own, before > bytes ? before - bytes : 0);
}

void shm_map_memory_release(struct shm_map *map, uint32_t index, uint32_t value_n)
{
    uint64_t bytes =
        shm_map_paged(map, value_n <= map->shape.value_max ? value_n : map->shape.value_max);

    assert(map->page != 0 && shm_map_is_index(map, index) && bytes <= map->stride);
    if (bytes > map->page)
        os_segment_release(
            (char *)shm_map_entry_at(map, index) + map->page, (size_t)(bytes - map->page));
}
