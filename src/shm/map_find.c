/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a key's place in its chain, under the lock of its shard. What is read is checked: a chain
 * that is not the bucket's, or an entry that no write has left there, is damage. */
#include "shm/map_find.h"

bool shm_map_find(struct shm_map *map, const struct shm_map_subject *s, struct shm_map_place *place)
{
    uint32_t bucket = shm_map_bucket_of(map, s->hash), index = SHM_LOAD(*s->bucket);

    *place = (struct shm_map_place) { .link = s->bucket };
    for (uint32_t n = 0; index != 0; n++) {
        struct shm_map_entry *entry;
        uint64_t hash;

        if (index > map->entry_n || n == SHM_MAP_CHAIN_MAX)
            return false;
        entry = shm_map_entry_at(map, index);
        hash = SHM_LOAD(entry->hash);
        if (shm_map_shard_of(map, hash) != s->shard || shm_map_bucket_of(map, hash) != bucket)
            return false;
        if (hash == s->hash && shm_map_is_of(entry, s)) {
            place->index = index;
            place->entry = entry;
            place->version = SHM_LOAD(entry->version);
            place->expires_ms = SHM_LOAD(entry->expires_ms);
            place->value_n = SHM_LOAD(entry->value_n);
            place->present = !shm_map_has_passed(place->expires_ms, s->now_ms);
            return place->value_n <= map->shape.value_max && place->version != 0 &&
                   place->version <= SHM_LOAD(map->shards[s->shard].version);
        }
        place->link = &entry->next;
        index = SHM_LOAD(entry->next);
    }
    place->link = s->bucket; /* a new entry comes first */
    return true;
}
