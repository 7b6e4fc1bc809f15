/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on maps, shared by all workers. The calls translate: times to live become times
 * of expiry on the wall clock, and statuses of shm/map.h become the SDK's. Every process may write
 * the shared memory, so no value read from it is asserted. */
#include "base/compiler.h"
#include "settings/calls.h"
#include "shm/map.h"
#include "worker/worker.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Lines about one map in a worker. */
#define SAY_EVERY_MS 1000

static_assert((int)FB_MAP_OK == (int)SHM_MAP_OK, "statuses are the map's");
static_assert((int)FB_MAP_FULL == (int)SHM_MAP_FULL, "statuses are the map's");
static_assert((int)FB_MAP_NOT_A_NUMBER == (int)SHM_MAP_NOT_A_NUMBER, "statuses are the map's");
static_assert((int)FB_MAP_MORE == (int)SHM_MAP_MORE, "statuses are the map's");
static_assert(FB_MAP_KEEP_TTL == SHM_MAP_KEEP_EXPIRY, "the same value keeps the time to live");

static uint64_t map_now_ms(const fb_worker *worker)
{
    return (uint64_t)fb_wall_ms(worker);
}

static struct shm_map *map_handle_of(const fb_map *map)
{
    assert(map->handle->header != NULL); /* a map is open from worker_start on */
    return map->handle;
}

/* Wakes the watchers of a change, and logs the repairs of a call, at most once a second. */
static void report_map_news(fb_worker *worker, fb_map *map)
{
    const struct shm_map_mended *m = &map->handle->mended;
    const struct shm_map_mended before = map->said;
    const char *name = map->zone->name;

    if (m->logged != before.logged) {
        map->said.logged = m->logged;
        map_watch_ring(worker_of(worker), map);
    }
    if (memcmp(m, &map->said, sizeof(*m)) == 0)
        return;
    if (map->said_ms != 0 && fb_mono_ms(worker) - map->said_ms < SAY_EVERY_MS)
        return;
    map->said = *m;
    map->said_ms = fb_mono_ms(worker);
    if (m->emptied != before.emptied)
        log_write(&worker_of(worker)->log, LEVEL_ALERT, 0,
            "zone \"%s\": the map was damaged, and %" PRIu32 " shards of the map were emptied",
            name, m->emptied - before.emptied);
    if (m->rebuilt != before.rebuilt)
        log_write(&worker_of(worker)->log, LEVEL_ALERT, 0,
            "zone \"%s\": the map was damaged and is mended, without a loss of keys", name);
    if (m->taken != before.taken)
        log_write(&worker_of(worker)->log, LEVEL_WARN, 0,
            "zone \"%s\": %" PRIu32 " locks of the map were taken from processes that stand still",
            name, m->taken - before.taken);
    if (m->emptied != before.emptied || m->rebuilt != before.rebuilt)
        log_debug_point(&worker_of(worker)->log, "a map was damaged");
}

/* Returns the status as the SDK's, after every call with a possible repair. */
static fb_map_status map_result(fb_worker *worker, fb_map *map, enum shm_map_status status)
{
    if (unlikely(memcmp(&map->handle->mended, &map->said, sizeof(map->said)) != 0))
        report_map_news(worker, map);
    return (fb_map_status)status;
}

/* The expiry of a key set now, in ms of the wall clock; 0: never. */
static uint64_t map_expiry_ms(const fb_worker *worker, uint64_t ttl)
{
    if (ttl == 0 || ttl == FB_MAP_KEEP_TTL)
        return ttl;
    return ttl < FB_MAP_KEEP_TTL - map_now_ms(worker) ? map_now_ms(worker) + ttl
                                                      : FB_MAP_KEEP_TTL - 1;
}

static void fill_item(const fb_worker *worker, fb_item *item, const struct shm_map_item *copy)
{
    item->n = copy->n;
    item->version = copy->version;
    item->ttl = copy->expires_ms == 0 ? 0 : copy->expires_ms - map_now_ms(worker);
}

fb_map_status fb_map_get(fb_worker *worker, fb_map *map, fb_bytes key, fb_item *item)
{
    struct shm_map_item copy = { .value = item->value, .room = item->room };
    enum shm_map_status status =
        shm_map_get(map_handle_of(map), key.p, key.n, map_now_ms(worker), &copy);

    if (status == SHM_MAP_TOO_LARGE && copy.version != 0) /* a part of it was copied */
        status = SHM_MAP_OK;
    fill_item(worker, item, &copy);
    return map_result(worker, map, status);
}

fb_map_status fb_map_set(fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes value, uint64_t ttl)
{
    return map_result(worker, map,
        shm_map_set(map_handle_of(map), key.p, key.n, map_now_ms(worker), value.p, value.n,
            map_expiry_ms(worker, ttl), NULL));
}

fb_map_status fb_map_replace(
    fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl)
{
    return map_result(worker, map,
        shm_map_replace(map_handle_of(map), key.p, key.n, map_now_ms(worker), version, value.p,
            value.n, map_expiry_ms(worker, ttl), NULL));
}

fb_map_status fb_map_add(fb_worker *worker, fb_map *map, fb_bytes key, int64_t by, int64_t *sum)
{
    return map_result(
        worker, map, shm_map_add(map_handle_of(map), key.p, key.n, map_now_ms(worker), by, sum));
}

fb_map_status fb_map_delete(fb_worker *worker, fb_map *map, fb_bytes key)
{
    return map_result(
        worker, map, shm_map_delete(map_handle_of(map), key.p, key.n, map_now_ms(worker)));
}

fb_map_status fb_map_remove(fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version)
{
    return map_result(
        worker, map, shm_map_remove(map_handle_of(map), key.p, key.n, map_now_ms(worker), version));
}

fb_map_status fb_map_append(
    fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes bytes, uint64_t ttl)
{
    return map_result(worker, map,
        shm_map_append(map_handle_of(map), key.p, key.n, map_now_ms(worker), bytes.p, bytes.n,
            map_expiry_ms(worker, ttl)));
}

fb_map_status fb_map_next(
    fb_worker *worker, fb_map *map, fb_map_cursor *cursor, fb_item *key, fb_item *item)
{
    struct shm_map_cursor at = { .order = cursor->at[0], .tie = cursor->at[1] };
    struct shm_map_item name = { .value = key->value, .room = key->room };
    struct shm_map_item copy = { .value = item->value, .room = item->room };
    enum shm_map_status status =
        shm_map_next(map_handle_of(map), &at, map_now_ms(worker), &name, &copy);

    *cursor = (fb_map_cursor) { { at.order, at.tie } };
    if (status == SHM_MAP_TOO_LARGE) /* parts of them were copied */
        status = SHM_MAP_OK;
    key->n = name.n;
    fill_item(worker, item, &copy);
    key->version = item->version;
    key->ttl = item->ttl;
    return map_result(worker, map, status);
}

int fb_map_watch(fb_worker *worker, fb_map *map, int on)
{
    map_handle_of(map);
    return map_watch_set(worker, map, on != 0);
}

uint64_t fb_map_count(const fb_map *map)
{
    return shm_map_count(map_handle_of(map));
}
