/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads of entries: whole or not at all, and without the lock unless writers keep disturbing. A
 * damaged shard is mended, and the call tried again. */
#include "shm/map_private.h"

/* Bytes of a value that cost like a try. */
#define LONG 16384

/* Copies an entry out without the lock; false: damaged, or just being written. */
static bool copy_out(const struct shm_map *map, const struct shm_map_entry *entry,
    const struct shm_map_subject *s, struct shm_map_item *item, enum shm_map_status *status)
{
    uint64_t expires_ms = ZONE_LOAD(entry->expires_ms);
    uint32_t n = ZONE_LOAD(entry->value_n);

    *status = SHM_MAP_ABSENT;
    if (shm_map_has_passed(expires_ms, s->now_ms))
        return true;
    if (n > map->shape.value_max)
        return false;
    item->version = ZONE_LOAD(entry->version);
    item->expires_ms = expires_ms;
    *status = shm_map_copy(entry->bytes + map->value_at, n, item);
    return true;
}

/* Reads without the lock; false when the chain is damaged, or has been changed meanwhile. */
static bool try_get(struct shm_map *map, const struct shm_map_subject *s, struct shm_map_item *item,
    enum shm_map_status *status)
{
    uint64_t before = ZONE_LOAD(map->shards[s->shard].sequence);
    struct table_place at;
    enum table_step step = shm_map_find_key(map, s, &at);

    *status = SHM_MAP_ABSENT;
    if (step == TABLE_FAILED || (step == TABLE_OK && !copy_out(map, at.entry, s, item, status)))
        return false;
    return shm_map_is_unchanged(map, s->shard, before);
}

static enum shm_map_status get_locked(
    struct shm_map *map, const struct shm_map_subject *s, struct shm_map_item *item)
{
    for (int tries = 0; tries < TABLE_TRIES; tries++) {
        enum shm_map_status status = SHM_MAP_ABSENT;
        struct shm_map_place place;
        bool whole;

        shm_map_shard_lock(map, s->shard);
        whole = shm_map_find(map, s, &place);
        if (whole && place.present) {
            item->version = place.version;
            item->expires_ms = place.expires_ms;
            status = shm_map_copy(place.entry->bytes + map->value_at, place.value_n, item);
        }
        if (shm_map_shard_end(map, s->shard, whole))
            return status;
    }
    return SHM_MAP_ABSENT;
}

enum shm_map_status shm_map_get(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, struct shm_map_item *item)
{
    struct shm_map_subject s;
    enum shm_map_status status;
    size_t tries = 0;
    bool whole = false;

    assert(item->value != NULL || item->room == 0);
    if (key_n > map->shape.key_max)
        return SHM_MAP_ABSENT;
    s = shm_map_subject_of(map, key, key_n, now_ms);
    item->n = 0;
    if (likely(shm_map_is_checked(map, s.shard)))
        do
            whole = try_get(map, &s, item, &status);
        while (unlikely(!whole) && (tries += 1 + item->n / LONG) < SHM_MAP_READ_TRIES);
    if (!whole)
        status = get_locked(map, &s, item);
    if (status == SHM_MAP_ABSENT) /* clears the leftovers of a try */
        item->n = item->version = item->expires_ms = 0;
    return status;
}
