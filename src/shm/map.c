/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes of a map's entries. A read sees an entry whole or not at all, and a write is
 * done by one store of a link; each store before it leaves a state that a repair understands. */
#include "shm/map_private.h"
#include "shm/siphash.h"

#include <assert.h>
#include <string.h>

/* The tries to read between two writes; then the reader takes the lock. */
#define READ_TRIES 64
/* The sweeps of a full map, whose gain other writers may take first. */
#define FULL_TRIES 64

/* The key that a call is about. */
struct subject {
    const void *key;
    size_t key_n;
    uint64_t now_ms;
    uint64_t hash;
    uint32_t shard;
    _Atomic uint32_t *bucket;
};

/* The place of the key's entry in its chain, expired or not. */
struct place {
    _Atomic uint32_t *link;
    uint32_t index;              /* the entry's; 0: none */
    struct shm_map_entry *entry; /* NULL: none */
    bool present;                /* an entry was found that has not expired */
};

/* A write that is to be done. */
struct change {
    enum { SET, REPLACE, ADD } kind;
    const void *value;
    size_t n;
    uint64_t expires_ms;
    uint64_t expected; /* REPLACE */
    int64_t by;        /* ADD, for which value is `sum` */
    int64_t sum;
    uint64_t version; /* set by the write */
};

static struct subject subject_of(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms)
{
    struct subject s = { .key = key, .key_n = key_n, .now_ms = now_ms };

    assert(key != NULL || key_n == 0);
    assert(key_n <= SHM_MAP_KEY_MAX);
    s.hash = siphash(map->seed, key, key_n);
    s.shard = (uint32_t)(s.hash >> 32) & (map->shard_n - 1);
    s.bucket = shm_map_buckets(map, s.shard) + ((uint32_t)s.hash & (map->bucket_n - 1));
    return s;
}

static bool is_of(const struct shm_map_entry *entry, const struct subject *s)
{
    return SHM_LOAD(entry->hash) == s->hash && SHM_LOAD(entry->key_n) == s->key_n &&
           (s->key_n == 0 || memcmp(entry->bytes, s->key, s->key_n) == 0);
}

static enum shm_map_status copy_out(const struct shm_map *map, const struct shm_map_entry *entry,
    const struct subject *s, struct shm_map_item *item)
{
    size_t n = SHM_LOAD(entry->value_n);

    if (shm_map_is_expired(entry, s->now_ms))
        return SHM_MAP_ABSENT;
    if (n > map->shape.value_max) /* the entry is being written, which the caller will detect */
        n = 0;
    item->n = n;
    item->version = SHM_LOAD(entry->version);
    item->expires_ms = SHM_LOAD(entry->expires_ms);
    if (n > item->room)
        n = item->room;
    if (n > 0)
        memcpy(item->value, entry->bytes + map->value_at, n);
    return item->n > item->room ? SHM_MAP_TOO_LARGE : SHM_MAP_OK;
}

/* Reads without the lock; false when an entry may have been written to meanwhile. */
static bool try_get(struct shm_map *map, const struct subject *s, struct shm_map_item *item,
    enum shm_map_status *status)
{
    _Atomic uint64_t *sequence = &map->shards[s->shard].sequence;
    uint64_t before = SHM_LOAD(*sequence);
    const struct shm_map_entry *entry = NULL;
    uint32_t index = SHM_LOAD(*s->bucket);

    while (index != 0) {
        if (index > map->entry_n)
            return false;
        entry = shm_map_entry_at(map, index);
        if (is_of(entry, s))
            break;
        index = SHM_LOAD(entry->next);
        if (SHM_LOAD(*sequence) != before)
            return false;
    }
    *status = index == 0 ? SHM_MAP_ABSENT : copy_out(map, entry, s, item);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(sequence, memory_order_relaxed) == before;
}

enum shm_map_status shm_map_get(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, struct shm_map_item *item)
{
    struct subject s;
    enum shm_map_status status = SHM_MAP_ABSENT;
    bool whole;

    assert(item->value != NULL || item->room == 0);
    if (key_n > map->shape.key_max)
        return SHM_MAP_ABSENT;
    s = subject_of(map, key, key_n, now_ms);
    for (int tries = 0; tries < READ_TRIES; tries++)
        if (try_get(map, &s, item, &status))
            return status;
    shm_map_shard_lock(map, s.shard);
    whole = try_get(map, &s, item, &status);
    shm_map_shard_unlock(map, s.shard);
    assert(whole);
    (void)whole;
    return status;
}

/* Finds the key's place, under the lock. */
static struct place find_place(struct shm_map *map, const struct subject *s)
{
    struct place place = { .link = s->bucket };

    for (uint32_t i = SHM_LOAD(*place.link); i != 0; i = SHM_LOAD(*place.link)) {
        struct shm_map_entry *entry = shm_map_entry_at(map, i);

        if (is_of(entry, s)) {
            place.index = i;
            place.entry = entry;
            place.present = !shm_map_is_expired(entry, s->now_ms);
            return place;
        }
        place.link = &entry->next;
    }
    place.link = s->bucket; /* a new entry comes first */
    return place;
}

/* Writes the next state into an entry that is in no chain. */
static void fill_entry(struct shm_map *map, struct shm_map_entry *entry, const struct subject *s,
    const struct change *change, uint32_t next)
{
    /* a reader that sees any of this must see the sequence, grown since the entry was in a chain */
    atomic_thread_fence(memory_order_release);
    SHM_STORE(entry->next, next);
    SHM_STORE(entry->hash, s->hash);
    SHM_STORE(entry->version, change->version);
    SHM_STORE(entry->expires_ms, change->expires_ms);
    SHM_STORE(entry->key_n, (uint32_t)s->key_n);
    SHM_STORE(entry->value_n, (uint32_t)change->n);
    if (s->key_n > 0)
        memcpy(entry->bytes, s->key, s->key_n);
    if (change->n > 0)
        memcpy(entry->bytes + map->value_at, change->value, change->n);
}

/* Publishes the next state. After each store the shard is in a state that is complete or can be
 * repaired. */
static enum shm_map_status publish_state(
    struct shm_map *map, const struct subject *s, const struct place *place, struct change *change)
{
    struct shm_map_shard *shard = &map->shards[s->shard];
    bool fresh = place->entry == NULL;
    uint32_t index = fresh ? shm_map_pool_acquire(map, s->shard) : SHM_LOAD(shard->spare);

    assert(fresh == (place->index == 0) && (!place->present || !fresh));
    if (index == 0)
        return SHM_MAP_FULL;
    change->version = SHM_LOAD(shard->version) + 1;
    SHM_STORE(shard->version, change->version);
    /* the expiry is written first: no entry may expire before soonest_ms, even if this process dies
     * right after it */
    if (change->expires_ms != 0 && change->expires_ms < SHM_LOAD(shard->soonest_ms))
        SHM_STORE(shard->soonest_ms, change->expires_ms);
    fill_entry(map, shm_map_entry_at(map, index), s, change,
        SHM_LOAD(*(fresh ? place->link : &place->entry->next)));

    SHM_STORE(*place->link, index);
    if (fresh) {
        SHM_STORE(shard->count, SHM_LOAD(shard->count) + 1);
    } else {
        SHM_STORE(shard->sequence, SHM_LOAD(shard->sequence) + 1);
        SHM_STORE(shard->spare, place->index);
    }
    return SHM_MAP_OK;
}

static enum shm_map_status sum_up(
    const struct shm_map *map, const struct place *place, struct change *change)
{
    int64_t before = 0;

    if (place->present) {
        if (SHM_LOAD(place->entry->value_n) != sizeof(before))
            return SHM_MAP_NOT_A_NUMBER;
        memcpy(&before, place->entry->bytes + map->value_at, sizeof(before));
    }
    if (__builtin_add_overflow(before, change->by, &change->sum))
        return SHM_MAP_NOT_A_NUMBER;
    change->value = &change->sum;
    return SHM_MAP_OK;
}

/* Does a write, under the lock. */
static enum shm_map_status apply_change(struct shm_map *map, const struct subject *s,
    const struct change *wanted, struct change *change)
{
    struct place place = find_place(map, s);
    uint64_t version = place.present ? SHM_LOAD(place.entry->version) : 0;
    enum shm_map_status status;

    *change = *wanted;
    if (change->kind == REPLACE && version != change->expected)
        return SHM_MAP_CHANGED;
    if (change->kind == ADD && (status = sum_up(map, &place, change)) != SHM_MAP_OK)
        return status;
    if (change->expires_ms == SHM_MAP_KEEP_EXPIRY)
        change->expires_ms = place.present ? SHM_LOAD(place.entry->expires_ms) : 0;
    return publish_state(map, s, &place, change);
}

static enum shm_map_status write_entry(struct shm_map *map, const void *key, size_t key_n,
    uint64_t now_ms, const struct change *wanted, struct change *done)
{
    enum shm_map_status status = SHM_MAP_FULL;
    struct subject s;

    assert(wanted->value != NULL || wanted->n == 0 || wanted->kind == ADD);
    assert(wanted->kind != ADD || wanted->n == sizeof(wanted->by));
    if (key_n > map->shape.key_max || wanted->n > map->shape.value_max)
        return SHM_MAP_TOO_LARGE;
    s = subject_of(map, key, key_n, now_ms);
    for (int tries = 0; tries < FULL_TRIES; tries++) {
        shm_map_shard_lock(map, s.shard);
        status = apply_change(map, &s, wanted, done);
        shm_map_shard_unlock(map, s.shard);
        if (status != SHM_MAP_FULL)
            break;
        /* with no lock held: shards are never locked within one another */
        shm_map_sweep(map, now_ms);
        if (shm_map_pool_is_empty(map))
            break;
    }
    return status;
}

enum shm_map_status shm_map_set(struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms,
    const void *value, size_t n, uint64_t expires_ms, uint64_t *version)
{
    struct change done, wanted = { .kind = SET, .value = value, .n = n, .expires_ms = expires_ms };
    enum shm_map_status status = write_entry(map, key, key_n, now_ms, &wanted, &done);

    if (status == SHM_MAP_OK && version != NULL)
        *version = done.version;
    return status;
}

enum shm_map_status shm_map_replace(struct shm_map *map, const void *key, size_t key_n,
    uint64_t now_ms, uint64_t expected, const void *value, size_t n, uint64_t expires_ms,
    uint64_t *version)
{
    struct change done, wanted = {
        .kind = REPLACE, .value = value, .n = n, .expires_ms = expires_ms, .expected = expected
    };
    enum shm_map_status status = write_entry(map, key, key_n, now_ms, &wanted, &done);

    if (status == SHM_MAP_OK && version != NULL)
        *version = done.version;
    return status;
}

enum shm_map_status shm_map_add(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, int64_t by, int64_t *sum)
{
    struct change done,
        wanted = { .kind = ADD, .n = sizeof(by), .expires_ms = SHM_MAP_KEEP_EXPIRY, .by = by };
    enum shm_map_status status = write_entry(map, key, key_n, now_ms, &wanted, &done);

    if (status == SHM_MAP_OK && sum != NULL)
        *sum = done.sum;
    return status;
}

enum shm_map_status shm_map_delete(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms)
{
    struct subject s;
    struct place place;

    if (key_n > map->shape.key_max)
        return SHM_MAP_ABSENT;
    s = subject_of(map, key, key_n, now_ms);
    shm_map_shard_lock(map, s.shard);
    place = find_place(map, &s);
    if (place.entry != NULL)
        shm_map_shard_remove(map, s.shard, place.link);
    shm_map_shard_unlock(map, s.shard);
    return place.present ? SHM_MAP_OK : SHM_MAP_ABSENT;
}
