/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes of a map's entries. A read sees an entry whole or not at all, and a write is
 * done by one store of a link; each store before it leaves a state that a repair understands. A
 * shard that turns out to be damaged is emptied, and the call tried again. */
#include "base/compiler.h"
#include "shm/map_private.h"
#include "shm/siphash.h"

#include <assert.h>
#include <string.h>

/* The tries to read between two writes; then the reader takes the lock. */
#define READ_TRIES 64
/* The sweeps of a full map, whose gain other writers may take first. */
#define FULL_TRIES 64
/* The tries of a call that finds damage, or whose lock is taken from it. */
#define MEND_TRIES 8
/* The longest time between two looks of a process for entries that damage has hidden. */
#define AUDIT_MS_MOST 60000
/* How long a full map goes without the entries that are kept back. */
#define KEEP_MS 10000

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
    uint32_t index;               /* the entry's; 0: none */
    struct shm_map_entry *entry;  /* NULL: none */
    uint64_t version, expires_ms; /* the entry's, with its value's length */
    uint32_t value_n;
    bool present; /* an entry was found that has not expired */
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
    s.shard = shm_map_shard_of(map, s.hash);
    s.bucket = shm_map_buckets(map, s.shard) + shm_map_bucket_of(map, s.hash);
    return s;
}

static bool is_of(const struct shm_map_entry *entry, const struct subject *s)
{
    return SHM_LOAD(entry->hash) == s->hash && SHM_LOAD(entry->key_n) == s->key_n &&
           (s->key_n == 0 || memcmp(entry->bytes, s->key, s->key_n) == 0);
}

/* Copies a value whose length was read and checked. */
static enum shm_map_status copy_value(const struct shm_map *map, const struct shm_map_entry *entry,
    uint32_t n, struct shm_map_item *item)
{
    size_t part = n < item->room ? n : item->room;

    assert(n <= map->shape.value_max);
    item->n = n;
    if (part > 0)
        memcpy(item->value, entry->bytes + map->value_at, part);
    return n > item->room ? SHM_MAP_TOO_LARGE : SHM_MAP_OK;
}

/* Copies an entry out without the lock. A length that cannot be is found only in an entry that is
 * being written, which the caller will detect, or in a damaged one. */
static bool copy_out(const struct shm_map *map, const struct shm_map_entry *entry,
    const struct subject *s, struct shm_map_item *item, enum shm_map_status *status)
{
    uint64_t expires_ms = SHM_LOAD(entry->expires_ms);
    uint32_t n = SHM_LOAD(entry->value_n);

    *status = SHM_MAP_ABSENT;
    if (shm_map_has_passed(expires_ms, s->now_ms))
        return true;
    if (n > map->shape.value_max)
        return false;
    item->version = SHM_LOAD(entry->version);
    item->expires_ms = expires_ms;
    *status = copy_value(map, entry, n, item);
    return true;
}

/* Reads without the lock; false when an entry may have been written to meanwhile, or the chain is
 * damaged. */
static bool try_get(struct shm_map *map, const struct subject *s, struct shm_map_item *item,
    enum shm_map_status *status)
{
    _Atomic uint64_t *sequence = &map->shards[s->shard].sequence;
    uint64_t before = SHM_LOAD(*sequence);
    uint32_t index = SHM_LOAD(*s->bucket);

    *status = SHM_MAP_ABSENT;
    for (uint32_t n = 0; index != 0; n++) {
        const struct shm_map_entry *entry;

        if (index > map->entry_n || n == SHM_MAP_CHAIN_MAX)
            return false;
        entry = shm_map_entry_at(map, index);
        if (is_of(entry, s)) {
            if (!copy_out(map, entry, s, item, status))
                return false;
            break;
        }
        index = SHM_LOAD(entry->next);
        if (SHM_LOAD(*sequence) != before)
            return false;
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(sequence, memory_order_relaxed) == before;
}

/* Finds the key's place, under the lock; false where the chain is damaged. */
static bool find_place(struct shm_map *map, const struct subject *s, struct place *place)
{
    uint32_t bucket = shm_map_bucket_of(map, s->hash), index = SHM_LOAD(*s->bucket);

    *place = (struct place) { .link = s->bucket };
    for (uint32_t n = 0; index != 0; n++) {
        struct shm_map_entry *entry;
        uint64_t hash;

        if (index > map->entry_n || n == SHM_MAP_CHAIN_MAX)
            return false;
        entry = shm_map_entry_at(map, index);
        hash = SHM_LOAD(entry->hash);
        if (shm_map_shard_of(map, hash) != s->shard || shm_map_bucket_of(map, hash) != bucket)
            return false;
        if (hash == s->hash && is_of(entry, s)) {
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

static enum shm_map_status get_locked(
    struct shm_map *map, const struct subject *s, struct shm_map_item *item)
{
    for (int tries = 0; tries < MEND_TRIES; tries++) {
        enum shm_map_status status = SHM_MAP_ABSENT;
        struct place place;
        bool whole;

        shm_map_shard_lock(map, s->shard);
        whole = find_place(map, s, &place);
        if (!whole)
            shm_map_repair_damage(map, s->shard);
        if (whole && place.present) {
            item->version = place.version;
            item->expires_ms = place.expires_ms;
            status = copy_value(map, place.entry, place.value_n, item);
        }
        shm_map_shard_unlock(map);
        if (whole)
            return status;
    }
    return SHM_MAP_ABSENT;
}

enum shm_map_status shm_map_get(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, struct shm_map_item *item)
{
    struct subject s;
    enum shm_map_status status;
    bool whole = false;

    assert(item->value != NULL || item->room == 0);
    if (key_n > map->shape.key_max)
        return SHM_MAP_ABSENT;
    s = subject_of(map, key, key_n, now_ms);
    if (likely(shm_map_is_checked(map, s.shard)))
        for (int tries = 0; tries < READ_TRIES && !whole; tries++)
            whole = try_get(map, &s, item, &status);
    if (!whole)
        status = get_locked(map, &s, item);
    if (status == SHM_MAP_ABSENT) /* clears what a try may have left there */
        item->n = item->version = item->expires_ms = 0;
    return status;
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

/* Chooses the entry for the next state: one from the pool for a new key, else the spare. 0: none is
 * free; false where the spare is not the shard's. */
static bool choose_entry(struct shm_map *map, uint32_t number, bool fresh, uint32_t *index)
{
    struct shm_map_shard *shard = &map->shards[number];
    uint32_t spare = SHM_LOAD(shard->spare);

    if (unlikely(spare == 0)) { /* none was left for it after a repair */
        spare = shm_map_pool_acquire(map, number);
        if (spare != 0 && shm_map_lock_holds(&map->shard_hold))
            SHM_STORE(shard->spare, spare);
    }
    *index = spare;
    if (spare == 0)
        return true;
    if (spare > map->entry_n)
        return false;
    if (!fresh)
        return SHM_LOAD(*shm_map_owner(map, spare)) == number + 1;
    *index = shm_map_pool_acquire(map, number);
    return true;
}

/* Publishes the next state. After each store the shard is in a state that is complete or can be
 * repaired. False: nothing was published, because of damage or because the lock was taken. */
static bool publish_state(struct shm_map *map, const struct subject *s, const struct place *place,
    struct change *change, enum shm_map_status *status)
{
    struct shm_map_shard *shard = &map->shards[s->shard];
    bool fresh = place->entry == NULL;
    uint32_t index, next = SHM_LOAD(*(fresh ? place->link : &place->entry->next));

    assert(fresh == (place->index == 0) && (!place->present || !fresh));
    if (!choose_entry(map, s->shard, fresh, &index))
        return false;
    if (index == 0)
        return true; /* the status is FULL */
    change->version = SHM_LOAD(shard->version) + 1;
    if (index == place->index || change->version >= SHM_MAP_VERSION_MAX || next > map->entry_n ||
        !shm_map_lock_holds(&map->shard_hold))
        return false;
    SHM_STORE(shard->version, change->version);
    /* the expiry is written first: no entry may expire before soonest_ms, even if this process dies
     * right after it */
    if (change->expires_ms != 0 && change->expires_ms < SHM_LOAD(shard->soonest_ms))
        SHM_STORE(shard->soonest_ms, change->expires_ms);
    fill_entry(map, shm_map_entry_at(map, index), s, change, next);

    if (!shm_map_lock_holds(&map->shard_hold)) /* the entry is kept back, for the next try */
        return false;
    SHM_STORE(*place->link, index);
    *status = SHM_MAP_OK;
    if (!shm_map_lock_holds(&map->shard_hold)) /* the holder has found the rest by now */
        return true;
    if (fresh) {
        SHM_STORE(shard->count, SHM_LOAD(shard->count) + 1);
    } else {
        SHM_STORE(shard->sequence, SHM_LOAD(shard->sequence) + 1);
        SHM_STORE(shard->spare, place->index);
    }
    return true;
}

static enum shm_map_status sum_up(
    const struct shm_map *map, const struct place *place, struct change *change)
{
    int64_t before = 0;

    if (place->present) {
        if (place->value_n != sizeof(before))
            return SHM_MAP_NOT_A_NUMBER;
        memcpy(&before, place->entry->bytes + map->value_at, sizeof(before));
    }
    if (__builtin_add_overflow(before, change->by, &change->sum))
        return SHM_MAP_NOT_A_NUMBER;
    change->value = &change->sum;
    return SHM_MAP_OK;
}

/* Does a write, under the lock; false: nothing was done, and the shard is to be mended. */
static bool apply_change(struct shm_map *map, const struct subject *s, const struct change *wanted,
    struct change *change, enum shm_map_status *status)
{
    struct place place;

    *change = *wanted;
    *status = SHM_MAP_CHANGED;
    if (!find_place(map, s, &place))
        return false;
    if (change->kind == REPLACE && (place.present ? place.version : 0) != change->expected)
        return true;
    if (change->kind == ADD && (*status = sum_up(map, &place, change)) != SHM_MAP_OK)
        return true;
    if (change->expires_ms == SHM_MAP_KEEP_EXPIRY)
        change->expires_ms = place.present ? place.expires_ms : 0;
    *status = SHM_MAP_FULL;
    return publish_state(map, s, &place, change, status);
}

/* Does a write, and mends the shard where it has to. */
static enum shm_map_status write_once(
    struct shm_map *map, const struct subject *s, const struct change *wanted, struct change *done)
{
    enum shm_map_status status = SHM_MAP_FULL;
    bool whole = false;

    for (int tries = 0; tries < MEND_TRIES && !whole; tries++) {
        shm_map_shard_lock(map, s->shard);
        whole = apply_change(map, s, wanted, done, &status);
        if (!whole)
            shm_map_repair_damage(map, s->shard);
        shm_map_shard_unlock(map);
    }
    return whole ? status : SHM_MAP_FULL;
}

/* Whether as many keys are there as fit, or a few are just being set. */
static bool has_all_keys(const struct shm_map *map)
{
    uint64_t count = 0;

    for (uint32_t shard = 0; shard < map->shard_n; shard++)
        count += SHM_LOAD(map->shards[shard].count);
    return count >= map->shape.capacity;
}

/* Looks through a full map that has fewer keys than fit: entries are kept back, or somebody has
 * written over what tells whose they are, or for whom they are kept. It costs as much as there are
 * entries, and is done ever less often. */
static void audit_map(struct shm_map *map, uint64_t now_ms)
{
    bool keeps = now_ms - map->short_ms < KEEP_MS;

    map->audited_ms = now_ms;
    map->audit_wait_ms =
        map->audit_wait_ms < AUDIT_MS_MOST / 2 ? 2 * map->audit_wait_ms : AUDIT_MS_MOST;
    shm_map_repair_all(map, keeps ? SHM_MAP_SUSPECT : SHM_MAP_KEEPS_NOTHING);
    shm_map_sweep(map, now_ms);
    shm_map_pool_audit(map);
}

/* In a full map: looks for room. False when there is none. */
static bool make_room(struct shm_map *map, uint64_t now_ms)
{
    /* with no lock held: shards are never locked within one another */
    shm_map_sweep(map, now_ms);
    if (!shm_map_pool_is_empty(map))
        return true;
    if (has_all_keys(map)) {
        map->short_ms = 0;
        return false;
    }
    if (map->short_ms == 0)
        map->short_ms = now_ms;
    if (now_ms - map->audited_ms < map->audit_wait_ms)
        return false;
    audit_map(map, now_ms);
    return !shm_map_pool_is_empty(map);
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
        status = write_once(map, &s, wanted, done);
        if (status != SHM_MAP_FULL || !make_room(map, now_ms))
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
    bool whole = false;

    if (key_n > map->shape.key_max)
        return SHM_MAP_ABSENT;
    s = subject_of(map, key, key_n, now_ms);
    for (int tries = 0; tries < MEND_TRIES && !whole; tries++) {
        shm_map_shard_lock(map, s.shard);
        whole = find_place(map, &s, &place);
        if (whole && place.entry != NULL)
            whole = shm_map_shard_remove(map, s.shard, place.link, place.index);
        if (!whole)
            shm_map_repair_damage(map, s.shard);
        shm_map_shard_unlock(map);
    }
    return whole && place.present ? SHM_MAP_OK : SHM_MAP_ABSENT;
}
