/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks through a map, an entry a call, with no lock held between two calls; sweeps of expired
 * entries, and the count of all. A walk's entries go by an order of the keys' hashes in which the
 * chains follow one another: a change of other keys moves none, and a new state of a key takes the
 * place of the old state. The cursor is the last key's place in the order. A sweep also checks
 * shards new to this process, and otherwise waits for no lock. */
#include "shm/map_log.h"
#include "shm/map_private.h"

/* Empty buckets a call; then the call returns MORE. */
#define BUCKETS_MOST 8192

/* Seed of a second hash, for keys with equal first hashes. */
#define TIE_SEED UINT64_C(0x9e3779b97f4a7c15)

/* A look for the next entry in a chain. */
struct look {
    const struct shm_map_cursor *cursor;
    uint64_t now_ms;
    uint64_t place; /* the bucket, numbered over all shards */
    uint32_t shard;
    const struct shm_map_entry *entry; /* the next; NULL: none */
    struct shm_map_cursor at;          /* behind that entry */
    struct shm_map_item *key, *item;   /* copies */
    enum shm_map_status status;
};

/* High bits of an order: the number of the bucket. The low bits are the rest of the hash. */
static int place_bits(const struct shm_map *map)
{
    return __builtin_ctz(map->table.shard_n) + __builtin_ctz(map->table.bucket_n);
}

/* The first order of a bucket. */
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

/* Reorders the bits of a hash in the bucket with the first order, so that the bits of shard and
 * bucket come first. */
static uint64_t order_of_hash(const struct shm_map *map, uint64_t first, uint64_t hash)
{
    int shard_bits = __builtin_ctz(map->table.shard_n),
        bucket_bits = __builtin_ctz(map->table.bucket_n);
    uint64_t above = hash >> 32 >> shard_bits, below = (uint32_t)hash >> bucket_bits;

    return first | above << (32 - bucket_bits) | below;
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

/* Finds the first entry behind the cursor; false where the chain is damaged, or changed. */
static bool find_next(const struct shm_map *map, struct look *look)
{
    struct table_place in =
        table_place_of(&map->table, (uint64_t)look->shard << map->table.shard_shift |
                                        (look->place & (map->table.bucket_n - 1)));
    uint64_t first = order_of_place(map, look->place), hash;

    look->entry = NULL;
    in.index = table_first(&map->table, in.shard, in.bucket);
    for (uint32_t n = 0; in.index != 0; n++) {
        const struct shm_map_entry *entry;
        struct shm_map_cursor at = { .tie = 0 };
        uint32_t key_n;

        if (!table_read(&map->table, &in, n, &hash))
            return false;
        entry = in.entry;
        key_n = ZONE_LOAD(entry->key_n);
        if (key_n > map->shape.key_max)
            return false;
        at.order = order_of_hash(map, first, hash);
        if (at.order >= look->cursor->order &&
            (look->entry == NULL || at.order <= look->at.order) &&
            !shm_map_has_passed(ZONE_LOAD(entry->expires_ms), look->now_ms)) {
            at.tie = tie_of(map, entry, key_n);
            if (is_behind(&at, look->cursor) &&
                (look->entry == NULL || is_behind(&look->at, &at))) {
                look->entry = entry;
                look->at = at;
            }
        }
        in.index = ZONE_LOAD(entry->next);
    }
    return true;
}

/* Copies the next entry of a chain, or finds none; false as find_next(). */
static bool try_next(const struct shm_map *map, struct look *look)
{
    uint64_t before = ZONE_LOAD(map->shards[look->shard].sequence);
    const struct shm_map_entry *entry;
    uint32_t key_n, value_n;

    look->status = SHM_MAP_ABSENT;
    if (!find_next(map, look))
        return false;
    if ((entry = look->entry) != NULL) {
        key_n = ZONE_LOAD(entry->key_n);
        value_n = ZONE_LOAD(entry->value_n);
        if (key_n > map->shape.key_max || value_n > map->shape.value_max)
            return false;
        look->item->version = ZONE_LOAD(entry->version);
        look->item->expires_ms = ZONE_LOAD(entry->expires_ms);
        look->status = shm_map_copy(entry->bytes, key_n, look->key);
        if (shm_map_copy(entry->bytes + map->value_at, value_n, look->item) != SHM_MAP_OK)
            look->status = SHM_MAP_TOO_LARGE;
    }
    return shm_map_is_unchanged(map, look->shard, before);
}

/* Looks for the next entry: without the lock, or else with the lock, and a repair. */
static void look_in_chain(struct shm_map *map, struct look *look)
{
    bool whole = false;

    if (likely(shm_map_is_checked(map, look->shard)))
        for (int tries = 0; tries < SHM_MAP_READ_TRIES && !whole; tries++)
            whole = try_next(map, look);
    for (int tries = 0; tries < TABLE_TRIES && !whole; tries++) {
        shm_map_shard_lock(map, look->shard);
        whole = shm_map_shard_end(map, look->shard, try_next(map, look));
    }
    if (!whole)
        look->status = SHM_MAP_ABSENT;
}

enum shm_map_status shm_map_next(struct shm_map *map, struct shm_map_cursor *cursor,
    uint64_t now_ms, struct shm_map_item *key, struct shm_map_item *item)
{
    uint64_t place_n = (uint64_t)map->table.shard_n * map->table.bucket_n;
    struct look look = { .cursor = cursor, .now_ms = now_ms, .key = key, .item = item };

    assert(key->value != NULL || key->room == 0);
    assert(item->value != NULL || item->room == 0);
    for (int n = 0; n < BUCKETS_MOST; n++) {
        look.place = place_of_order(map, cursor->order);
        look.shard = (uint32_t)(look.place / map->table.bucket_n);
        look_in_chain(map, &look);
        if (look.status != SHM_MAP_ABSENT) {
            *cursor = look.at;
            return look.status;
        }
        item->n = item->version = item->expires_ms = key->n = 0;
        if (look.place + 1 == place_n) {
            *cursor = (struct shm_map_cursor) { 0 };
            return SHM_MAP_ABSENT;
        }
        *cursor = (struct shm_map_cursor) { .order = order_of_place(map, look.place + 1) };
    }
    return SHM_MAP_MORE;
}

struct sweep {
    struct shm_map *map;
    uint64_t now_ms;
    uint64_t soonest_ms; /* the earliest expiry of remaining entries */
};

/* Removes an entry if it has expired. */
static enum table_visit sweep_entry(struct table_place *at, void *arg)
{
    struct sweep *sweep = arg;
    struct shm_map *map = sweep->map;
    const struct shm_map_entry *entry = at->entry;
    uint64_t expires_ms = ZONE_LOAD(entry->expires_ms), before = 0;
    _Atomic uint32_t *link = at->before != 0 ? &shm_map_entry_at(map, at->before)->next
                                             : &shm_map_buckets(map, at->shard)[at->bucket];

    if (!shm_map_has_passed(expires_ms, sweep->now_ms)) {
        if (expires_ms != 0 && expires_ms < sweep->soonest_ms)
            sweep->soonest_ms = expires_ms;
        return TABLE_KEPT;
    }
    if (unlikely(map->log != NULL)) {
        uint32_t key_n = ZONE_LOAD(entry->key_n);

        before = shm_map_log_state(map, at->shard);
        if (key_n <= map->shape.key_max)
            shm_map_log_put(map, at->shard, before, SHM_MAP_WAS_EXPIRED, ZONE_LOAD(entry->hash),
                entry->bytes, key_n);
    }
    if (!shm_map_shard_remove(map, at->shard, link, at->index))
        return TABLE_DAMAGED;
    if (unlikely(map->log != NULL))
        shm_map_log_skip(map, at->shard, before);
    return TABLE_REMOVED;
}

/* Sweeps the shard if an entry may have expired, and unlocks. */
static void sweep_shard(struct shm_map *map, uint32_t shard, uint64_t now_ms)
{
    struct shm_map_shard *s = &map->shards[shard];
    struct sweep sweep = { .map = map, .now_ms = now_ms, .soonest_ms = UINT64_MAX };

    assert(map->table.hold.lock == &s->lock);
    if (ZONE_LOAD(s->soonest_ms) <= now_ms) {
        enum table_step step = table_walk(&map->table, shard, sweep_entry, &sweep);

        if (table_holds(&map->table) && step == TABLE_FAILED)
            shm_map_shard_empty(map, shard);
        else if (table_holds(&map->table))
            ZONE_STORE(s->soonest_ms, sweep.soonest_ms);
    }
    zone_lock_release(&map->table.hold);
}

/* Locks a shard to be repaired, or not yet checked by this process, however long the holder stands
 * still; any other shard only without a wait. */
static bool lock_to_look(struct shm_map *map, uint32_t shard)
{
    assert(shard < map->table.shard_n && map->table.hold.lock == NULL);
    if (likely(ZONE_LOAD(map->shards[shard].suspect) == 0 && shm_map_is_checked(map, shard)))
        return shm_map_shard_try(map, shard);
    shm_map_shard_lock(map, shard);
    return true;
}

void shm_map_sweep(struct shm_map *map, uint64_t now_ms)
{
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++) {
        if (ZONE_LOAD(map->shards[shard].soonest_ms) <= now_ms)
            shm_map_shard_lock(map, shard);
        else if (!lock_to_look(map, shard))
            continue; /* the lock was tried only to repair what a death may have left */
        sweep_shard(map, shard, now_ms);
    }
}

void shm_map_sweep_some(struct shm_map *map, uint64_t now_ms, uint32_t *next, uint32_t most)
{
    for (uint32_t i = 0; i < map->table.shard_n && most > 0; i++) {
        uint32_t shard = (*next)++ % map->table.shard_n;

        if (ZONE_LOAD(map->shards[shard].soonest_ms) > now_ms || !shm_map_shard_try(map, shard))
            continue;
        sweep_shard(map, shard, now_ms);
        most--;
    }
}

uint32_t shm_map_count(struct shm_map *map)
{
    uint64_t count = 0;

    assert(map->table.hold.lock == NULL && map->pool_hold.lock == NULL);
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++) {
        bool held = lock_to_look(map, shard);

        count += ZONE_LOAD(map->shards[shard].count);
        if (held)
            zone_lock_release(&map->table.hold);
    }
    return count < map->table.entry_n ? (uint32_t)count : map->table.entry_n;
}
