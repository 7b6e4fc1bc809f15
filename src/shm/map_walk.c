/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks through a map, an entry a call, with no lock held between two calls. Entries go by an order
 * of their keys' hashes in which the chains follow one another: a change of other keys moves none,
 * and a new state of a key takes the place of the old one. So a cursor is the last key's place in
 * the order, and never stands in anybody's way. */
#include "base/compiler.h"
#include "shm/map_private.h"

/* Empty buckets a call; then the call returns MORE. */
#define BUCKETS_MOST 8192

/* Seed of a second hash, for keys with equal first hashes. */
#define TIE_SEED UINT64_C(0x9e3779b97f4a7c15)

/* The next entry of a walk, if `entry` is not NULL. */
struct next {
    const struct shm_map_entry *entry;
    struct shm_map_cursor at;
};

/* High bits of an order: the number of the bucket. The low bits are the rest of the hash. */
static int place_bits(const struct shm_map *map)
{
    return __builtin_ctz(map->table.shard_n) + __builtin_ctz(map->table.bucket_n);
}

/* The first order of a bucket, numbered over all shards. */
static uint64_t order_of_place(const struct shm_map *map, uint64_t place)
{
    int bits = place_bits(map);

    return bits == 0 ? 0 : place << (64 - bits);
}

static uint64_t place_of_order(const struct shm_map *map, uint64_t order)
{
    int bits = place_bits(map);

    return bits == 0 ? 0 : order >> (64 - bits);
}

/* Reorders the hash's bits, so that the bits of shard and bucket come first. */
static uint64_t order_of_hash(const struct shm_map *map, uint64_t hash)
{
    int shard_bits = __builtin_ctz(map->table.shard_n),
        bucket_bits = __builtin_ctz(map->table.bucket_n);
    uint64_t place = (uint64_t)table_shard_of(&map->table, hash) << bucket_bits |
                     table_bucket_of(&map->table, hash);
    uint64_t above = hash >> 32 >> shard_bits, below = (uint32_t)hash >> bucket_bits;

    return order_of_place(map, place) | above << (32 - bucket_bits) | below;
}

static uint64_t tie_of(const struct shm_map *map, const struct shm_map_entry *entry, uint32_t key_n)
{
    const uint64_t seed[2] = { map->seed[0] ^ TIE_SEED, map->seed[1] };

    return siphash(seed, entry->bytes, key_n) | 1;
}

static bool is_behind(const struct shm_map_cursor *a, const struct shm_map_cursor *b)
{
    return a->order != b->order ? a->order > b->order : a->tie > b->tie;
}

/* Finds the first entry of a chain that is behind the cursor; false where the chain is damaged, or
 * was changed since its shard's sequence was `before`. */
static bool find_next(struct shm_map *map, uint64_t place, uint64_t before,
    const struct shm_map_cursor *cursor, uint64_t now_ms, struct next *next)
{
    uint32_t shard = (uint32_t)(place / map->table.bucket_n),
             index = ZONE_LOAD(shm_map_buckets(map, 0)[place]);

    *next = (struct next) { .entry = NULL };
    for (uint32_t n = 0; index != 0; n++) {
        const struct shm_map_entry *entry;
        struct shm_map_cursor at = { .tie = 0 };
        uint32_t key_n;

        if (index > map->table.entry_n || n == TABLE_CHAIN_MAX)
            return false;
        entry = shm_map_entry_at(map, index);
        key_n = ZONE_LOAD(entry->key_n);
        at.order = order_of_hash(map, ZONE_LOAD(entry->hash));
        if (key_n > map->shape.key_max || place_of_order(map, at.order) != place)
            return false;
        if (at.order >= cursor->order && (next->entry == NULL || at.order <= next->at.order) &&
            !shm_map_has_passed(ZONE_LOAD(entry->expires_ms), now_ms)) {
            at.tie = tie_of(map, entry, key_n);
            if (is_behind(&at, cursor) && (next->entry == NULL || is_behind(&next->at, &at)))
                *next = (struct next) { .entry = entry, .at = at };
        }
        index = ZONE_LOAD(entry->next);
        if (ZONE_LOAD(map->shards[shard].sequence) != before)
            return false;
    }
    return true;
}

/* Copies the next entry of a chain, or finds none; false as find_next(). */
static bool try_next(struct shm_map *map, uint64_t place, const struct shm_map_cursor *cursor,
    uint64_t now_ms, struct next *next, struct shm_map_item *key, struct shm_map_item *item,
    enum shm_map_status *status)
{
    _Atomic uint64_t *sequence = &map->shards[place / map->table.bucket_n].sequence;
    uint64_t before = ZONE_LOAD(*sequence);
    const struct shm_map_entry *entry;
    uint32_t key_n, value_n;

    *status = SHM_MAP_ABSENT;
    if (!find_next(map, place, before, cursor, now_ms, next))
        return false;
    if ((entry = next->entry) != NULL) {
        key_n = ZONE_LOAD(entry->key_n);
        value_n = ZONE_LOAD(entry->value_n);
        if (key_n > map->shape.key_max || value_n > map->shape.value_max)
            return false;
        item->version = ZONE_LOAD(entry->version);
        item->expires_ms = ZONE_LOAD(entry->expires_ms);
        *status = shm_map_copy(entry->bytes, key_n, key);
        if (shm_map_copy(entry->bytes + map->value_at, value_n, item) != SHM_MAP_OK)
            *status = SHM_MAP_TOO_LARGE;
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(sequence, memory_order_relaxed) == before;
}

/* Tries the next entry under the lock, and repairs a damaged shard. */
static void next_locked(struct shm_map *map, uint64_t place, const struct shm_map_cursor *cursor,
    uint64_t now_ms, struct next *next, struct shm_map_item *key, struct shm_map_item *item,
    enum shm_map_status *status)
{
    uint32_t shard = (uint32_t)(place / map->table.bucket_n);
    bool whole = false;

    for (int tries = 0; tries < TABLE_TRIES && !whole; tries++) {
        shm_map_shard_lock(map, shard);
        whole = shm_map_shard_end(
            map, shard, try_next(map, place, cursor, now_ms, next, key, item, status));
    }
    if (!whole)
        *status = SHM_MAP_ABSENT;
}

/* Looks for the next entry in the cursor's chain. */
static enum shm_map_status next_in_chain(struct shm_map *map, uint64_t place,
    struct shm_map_cursor *cursor, uint64_t now_ms, struct shm_map_item *key,
    struct shm_map_item *item)
{
    enum shm_map_status status = SHM_MAP_ABSENT;
    struct next next;
    bool whole = false;

    if (likely(shm_map_is_checked(map, (uint32_t)(place / map->table.bucket_n))))
        for (int tries = 0; tries < SHM_MAP_READ_TRIES && !whole; tries++)
            whole = try_next(map, place, cursor, now_ms, &next, key, item, &status);
    if (!whole)
        next_locked(map, place, cursor, now_ms, &next, key, item, &status);
    if (status != SHM_MAP_ABSENT)
        *cursor = next.at;
    return status;
}

enum shm_map_status shm_map_next(struct shm_map *map, struct shm_map_cursor *cursor,
    uint64_t now_ms, struct shm_map_item *key, struct shm_map_item *item)
{
    uint64_t place_n = (uint64_t)map->table.shard_n * map->table.bucket_n;
    enum shm_map_status status;

    assert(key->value != NULL || key->room == 0);
    assert(item->value != NULL || item->room == 0);
    for (int n = 0; n < BUCKETS_MOST; n++) {
        uint64_t place = place_of_order(map, cursor->order);

        status = next_in_chain(map, place, cursor, now_ms, key, item);
        if (status != SHM_MAP_ABSENT)
            return status;
        item->n = item->version = item->expires_ms = key->n = 0;
        if (place + 1 == place_n) {
            *cursor = (struct shm_map_cursor) { 0 };
            return SHM_MAP_ABSENT;
        }
        *cursor = (struct shm_map_cursor) { .order = order_of_place(map, place + 1) };
    }
    return SHM_MAP_MORE;
}
