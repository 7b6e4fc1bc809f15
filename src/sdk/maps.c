/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on maps that all workers share. They translate: times to live become times of
 * expiry on the wall clock, and statuses of shm/map.h become the SDK's. The shared memory is
 * another process's to write as well, so nothing that is read from it is asserted. */
#include "shm/map.h"
#include "stream/shared_map.h"
#include "worker/worker.h"

#include <assert.h>

static_assert((int)FB_MAP_OK == (int)SHM_MAP_OK, "statuses are the map's");
static_assert((int)FB_MAP_FULL == (int)SHM_MAP_FULL, "statuses are the map's");
static_assert((int)FB_MAP_NOT_A_NUMBER == (int)SHM_MAP_NOT_A_NUMBER, "statuses are the map's");
static_assert(FB_MAP_KEEP_TTL == SHM_MAP_KEEP_EXPIRY, "the same value keeps the time to live");

static uint64_t now(const fb_worker *worker)
{
    return (uint64_t)fb_wall_ms(worker);
}

static struct shm_map *memory_of(const fb_map *map)
{
    struct shm_map *memory = shared_map_memory(map);

    assert(memory != NULL); /* a map is open from worker_start on */
    return memory;
}

/* When a key that is set now vanishes, in ms of the wall clock; 0: never. */
static uint64_t expiry(const fb_worker *worker, uint64_t ttl)
{
    if (ttl == 0 || ttl == FB_MAP_KEEP_TTL)
        return ttl;
    return ttl < FB_MAP_KEEP_TTL - now(worker) ? now(worker) + ttl : FB_MAP_KEEP_TTL - 1;
}

fb_map_status fb_map_get(fb_worker *worker, fb_map *map, fb_bytes key, fb_item *item)
{
    struct shm_map_item copy = { .value = item->value, .room = item->room };
    enum shm_map_status status = shm_map_get(memory_of(map), key.p, key.n, now(worker), &copy);

    if (status == SHM_MAP_TOO_LARGE && copy.version != 0) /* a part of it was copied */
        status = SHM_MAP_OK;
    item->n = copy.n;
    item->version = copy.version;
    item->ttl = copy.expires_ms == 0 ? 0 : copy.expires_ms - now(worker);
    return (fb_map_status)status;
}

fb_map_status fb_map_set(fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes value, uint64_t ttl)
{
    return (fb_map_status)shm_map_set(
        memory_of(map), key.p, key.n, now(worker), value.p, value.n, expiry(worker, ttl), NULL);
}

fb_map_status fb_map_replace(
    fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl)
{
    return (fb_map_status)shm_map_replace(memory_of(map), key.p, key.n, now(worker), version,
        value.p, value.n, expiry(worker, ttl), NULL);
}

fb_map_status fb_map_add(fb_worker *worker, fb_map *map, fb_bytes key, int64_t by, int64_t *sum)
{
    return (fb_map_status)shm_map_add(memory_of(map), key.p, key.n, now(worker), by, sum);
}

fb_map_status fb_map_delete(fb_worker *worker, fb_map *map, fb_bytes key)
{
    return (fb_map_status)shm_map_delete(memory_of(map), key.p, key.n, now(worker));
}

uint64_t fb_map_count(const fb_map *map)
{
    return shm_map_count(memory_of(map));
}
