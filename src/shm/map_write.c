/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes of entries, done by one store of a link; each store before leaves a state known to
 * repairs. A damaged shard is emptied, and the call tried again; a full map is swept first. */
#include "shm/map_log.h"
#include "shm/map_private.h"

/* The sweeps of a full map: competing writers may take the gain first. */
#define FULL_TRIES 64
/* The longest time between two looks of a process for entries that damage has hidden. */
#define AUDIT_MS_MOST 60000
/* How long a full map goes without the entries that are kept back. */
#define KEEP_MS 10000

/* A write, and the results of a try. */
struct change {
    enum { SET, REPLACE, ADD, APPEND } kind;
    const void *value;
    size_t n;
    uint64_t expires_ms; /* or SHM_MAP_KEEP_EXPIRY */
    uint64_t expected;   /* REPLACE */
    int64_t by;          /* ADD, for which value is `sum` */

    const void *before; /* APPEND: the value goes behind this */
    size_t before_n;    /* bytes of that; else 0 */
    uint64_t ends_ms;   /* expiry of the new state */
    int64_t sum;
    uint64_t version;
};

/* Writes the next state into an entry outside of chains. */
static void fill_entry(struct shm_map *map, struct shm_map_entry *entry,
    const struct shm_map_subject *s, const struct change *change, uint32_t next)
{
    assert(change->before_n + change->n <= map->shape.value_max);
    /* a reader of these stores sees the sequence, grown since the entry was in a chain */
    atomic_thread_fence(memory_order_release);
    ZONE_STORE(entry->next, next);
    ZONE_STORE(entry->hash, s->hash);
    ZONE_STORE(entry->version, change->version);
    ZONE_STORE(entry->expires_ms, change->ends_ms);
    ZONE_STORE(entry->key_n, (uint32_t)s->key_n);
    ZONE_STORE(entry->value_n, (uint32_t)(change->before_n + change->n));
    if (s->key_n > 0)
        memcpy(entry->bytes, s->key, s->key_n);
    if (unlikely(change->before_n > 0))
        memcpy(entry->bytes + map->value_at, change->before, change->before_n);
    if (change->n > 0)
        memcpy(entry->bytes + map->value_at + change->before_n, change->value, change->n);
}

static enum table_step compare_entry(const void *there, bool is_same, const void *entry)
{
    (void)is_same;
    return there == entry ? TABLE_OK : TABLE_NONE;
}

/* Whether the hash's chain has the entry; the check of a shard finds entries in wrong chains. A new
 * state there would replace a different key's, and hide the rest of the chain. */
static bool is_in_chain(const struct shm_map *map, uint32_t shard, uint32_t index)
{
    const struct shm_map_entry *entry = shm_map_entry_at(map, index);
    uint64_t hash = ZONE_LOAD(entry->hash);
    struct table_place at = { .entries = map->table.entries, .home = hash };

    if (table_shard_of(&map->table, hash) != shard)
        return false;
    at.index = ZONE_LOAD(shm_map_buckets(map, shard)[table_bucket_of(&map->table, hash)]);
    return table_find(&map->table, &at, compare_entry, entry) != TABLE_NONE;
}

/* Chooses the entry for the next state: of the pool for a new key, else the spare, to be exchanged
 * for the `last` state's. 0: none is free; false where an entry is not the shard's, or is in
 * use. */
static bool choose_entry(struct shm_map *map, uint32_t number, uint32_t last, uint32_t *index)
{
    struct shm_map_shard *shard = &map->shards[number];
    uint32_t spare = ZONE_LOAD(shard->spare);

    assert(map->table.hold.lock == &shard->lock && last <= map->table.entry_n);
    if (unlikely(spare == 0)) { /* no entry was left for the spare after a repair */
        spare = shm_map_pool_acquire(map, number);
        if (spare != 0 && table_holds(&map->table))
            ZONE_STORE(shard->spare, spare);
    }
    *index = spare;
    if (spare == 0)
        return true;
    if (spare > map->table.entry_n)
        return false;
    if (last != 0)
        return ZONE_LOAD(*shm_map_owner(map, spare)) == number + 1 &&
               ZONE_LOAD(*shm_map_owner(map, last)) == number + 1 &&
               !is_in_chain(map, number, spare);
    *index = shm_map_is_reduced(map) ? 0 : shm_map_pool_acquire(map, number);
    return true;
}

/* Publishes the next state, by steps that a repair can undo or complete. False: nothing was
 * published, because of damage or because the lock was taken. */
static bool publish_state(struct shm_map *map, const struct shm_map_subject *s,
    const struct shm_map_place *place, struct change *change, enum shm_map_status *status)
{
    struct shm_map_shard *shard = &map->shards[s->shard];
    bool fresh = place->entry == NULL;
    uint32_t index, next = ZONE_LOAD(*(fresh ? place->link : &place->entry->next));

    assert(fresh == (place->index == 0) && (!place->present || !fresh));
    if (!choose_entry(map, s->shard, place->index, &index))
        return false;
    if (index == 0)
        return true; /* the status is FULL */
    change->version = ZONE_LOAD(shard->version) + 1;
    if (change->version >= SHM_MAP_VERSION_MAX || next > map->table.entry_n ||
        !table_holds(&map->table))
        return false;
    ZONE_STORE(shard->version, change->version);
    /* first: no entry may expire before soonest_ms, even after a death in between */
    if (change->ends_ms != 0 && change->ends_ms < ZONE_LOAD(shard->soonest_ms))
        ZONE_STORE(shard->soonest_ms, change->ends_ms);
    fill_entry(map, shm_map_entry_at(map, index), s, change, next);

    if (!table_holds(&map->table)) /* the entry is kept back, for the next try */
        return false;
    ZONE_STORE(*place->link, index);
    *status = SHM_MAP_OK;
    if (!table_holds(&map->table)) /* the holder has found the rest by now */
        return true;
    if (fresh) {
        ZONE_STORE(shard->count, ZONE_LOAD(shard->count) + 1);
    } else {
        ZONE_STORE(shard->sequence, ZONE_LOAD(shard->sequence) + 1);
        ZONE_STORE(shard->spare, place->index);
    }
    return true;
}

static enum shm_map_status sum_up(
    const struct shm_map *map, const struct shm_map_place *place, struct change *change)
{
    int64_t before = 0;

    assert(change->kind == ADD && change->n == sizeof(before));
    if (place->present) {
        if (place->value_n != sizeof(before))
            return SHM_MAP_NOT_A_NUMBER;
        memcpy(&before, place->entry->bytes + map->value_at, sizeof(before));
    }
    if (__builtin_add_overflow(before, change->by, &change->sum))
        return SHM_MAP_NOT_A_NUMBER;
    return SHM_MAP_OK;
}

/* Appends the new bytes to the present value. */
static enum shm_map_status join_up(
    const struct shm_map *map, const struct shm_map_place *place, struct change *change)
{
    assert(change->kind == APPEND);
    if (!place->present)
        return SHM_MAP_OK;
    if (change->n > map->shape.value_max - place->value_n)
        return SHM_MAP_TOO_LARGE;
    change->before = place->entry->bytes + map->value_at;
    change->before_n = place->value_n;
    return SHM_MAP_OK;
}

/* Counts the pages of a published, or abandoned, state, and releases the pages before. */
static void settle_memory(struct shm_map *map, const struct shm_map_subject *s,
    const struct shm_map_place *place, const struct change *change, bool done)
{
    assert(map->page != 0);
    if (!table_holds(&map->table)) /* the holder counts anew */
        return;
    if (!done) {
        shm_map_pool_give_pages(map, s->shard, (uint32_t)(change->before_n + change->n));
    } else if (place->entry != NULL) {
        shm_map_pool_give_pages(map, s->shard, place->value_n);
        shm_map_pool_release_pages(map, place->index, place->value_n);
    }
}

/* Does a write, under the lock; false: nothing was done, and the shard is to be mended. */
static bool apply_change(struct shm_map *map, const struct shm_map_subject *s,
    struct change *change, enum shm_map_status *status)
{
    struct shm_map_place place;
    uint64_t before = unlikely(map->log != NULL) ? shm_map_log_state(map, s->shard) : 0;
    bool whole;

    change->before_n = 0;
    *status = SHM_MAP_CHANGED;
    if (!shm_map_find(map, s, &place))
        return false;
    if (change->kind == REPLACE && (place.present ? place.version : 0) != change->expected)
        return true;
    if (change->kind == ADD && (*status = sum_up(map, &place, change)) != SHM_MAP_OK)
        return true;
    if (change->kind == APPEND && (*status = join_up(map, &place, change)) != SHM_MAP_OK)
        return true;
    change->ends_ms = change->expires_ms;
    if (change->expires_ms == SHM_MAP_KEEP_EXPIRY)
        change->ends_ms = place.present ? place.expires_ms : 0;
    *status = SHM_MAP_FULL;
    if (unlikely(map->page != 0) &&
        !shm_map_pool_take_pages(map, s->shard, (uint32_t)(change->before_n + change->n)))
        return true;
    whole = publish_state(map, s, &place, change, status);
    if (unlikely(map->page != 0))
        settle_memory(map, s, &place, change, whole && *status == SHM_MAP_OK);
    if (unlikely(map->log != NULL) && *status == SHM_MAP_OK)
        shm_map_log_put(map, s->shard, before, SHM_MAP_WAS_SET, s->hash, s->key, s->key_n);
    return whole;
}

/* Does a write, and repairs a damaged shard. */
static enum shm_map_status write_once(
    struct shm_map *map, const struct shm_map_subject *s, struct change *change)
{
    enum shm_map_status status;

    for (int tries = 0; tries < TABLE_TRIES; tries++) {
        shm_map_shard_lock(map, s->shard);
        if (shm_map_shard_end(map, s->shard, apply_change(map, s, change, &status)))
            return status;
    }
    return SHM_MAP_FULL;
}

/* The next sweep looks through all shards again, and the pool's next user through the pool. */
static void forget_checks(struct shm_map *map)
{
    map->checked = 0;
    map->pool_checked = false;
}

/* After the death of a process: shards that were looked through may have been written over. */
static void note_deaths(struct shm_map *map)
{
    uint64_t deaths = 0;

    for (size_t i = 0; i < countof(map->header->released); i++)
        deaths += ZONE_LOAD(map->header->released[i]);
    if (deaths == map->deaths)
        return;
    map->deaths = deaths;
    map->audited_ms = 0;
    forget_checks(map);
}

/* Audits a full map with fewer keys than fit: entries are kept back, or a stray write has hit
 * owners or `kept_for`. Costs as much as there are entries; done ever less often. */
static void audit_map(struct shm_map *map, uint64_t now_ms)
{
    bool keeps = now_ms - map->short_ms < KEEP_MS;

    map->audited_ms = now_ms;
    map->audit_wait_ms =
        map->audit_wait_ms < AUDIT_MS_MOST / 2 ? 2 * map->audit_wait_ms : AUDIT_MS_MOST;
    forget_checks(map);
    shm_map_sweep(map, now_ms); /* damage is logged that this finds */
    shm_map_pool_suspect(map, keeps ? SHM_MAP_SUSPECT : SHM_MAP_KEEPS_NOTHING);
    shm_map_sweep(map, now_ms);
    shm_map_pool_audit(map);
}

/* Looks for room in a full map; false: none. Counts are trusted of shards checked since the last
 * death; a map full by counts alone is checked again now and then. */
static bool make_map_room(struct shm_map *map, uint64_t now_ms, int tries)
{
    assert(map->table.hold.lock == NULL && map->pool_hold.lock == NULL);
    note_deaths(map);
    /* without a lock: shards are never locked within shards */
    shm_map_sweep(map, now_ms);
    if (map->page != 0 && tries > 0) { /* an audit counts the memory anew */
        if (tries > 1 || now_ms - map->audited_ms < map->audit_wait_ms)
            return false;
        audit_map(map, now_ms);
    }
    if (map->page != 0 || !shm_map_pool_is_empty(map))
        return true;
    if (shm_map_is_reduced(map)) {
        map->short_ms = now_ms; /* entries that are kept back stay */
    } else if (shm_map_has_all(map)) {
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

/* Writes; an OK change has the new version in *version, unless NULL. */
static enum shm_map_status write_entry(struct shm_map *map, const void *key, size_t key_n,
    uint64_t now_ms, struct change *change, uint64_t *version)
{
    enum shm_map_status status = SHM_MAP_FULL;
    struct shm_map_subject s;

    assert(change->value != NULL || change->n == 0);
    if (key_n > map->shape.key_max || change->n > map->shape.value_max)
        return SHM_MAP_TOO_LARGE;
    s = shm_map_subject_of(map, key, key_n, now_ms);
    for (int tries = 0; tries < FULL_TRIES; tries++) {
        status = write_once(map, &s, change);
        if (status != SHM_MAP_FULL || !make_map_room(map, now_ms, tries))
            break;
    }
    if (status == SHM_MAP_OK && version != NULL)
        *version = change->version;
    return status;
}

enum shm_map_status shm_map_set(struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms,
    const void *value, size_t n, uint64_t expires_ms, uint64_t *version)
{
    struct change change = { .kind = SET, .value = value, .n = n, .expires_ms = expires_ms };

    return write_entry(map, key, key_n, now_ms, &change, version);
}

enum shm_map_status shm_map_replace(struct shm_map *map, const void *key, size_t key_n,
    uint64_t now_ms, uint64_t expected, const void *value, size_t n, uint64_t expires_ms,
    uint64_t *version)
{
    struct change change = {
        .kind = REPLACE, .value = value, .n = n, .expires_ms = expires_ms, .expected = expected
    };

    return write_entry(map, key, key_n, now_ms, &change, version);
}

enum shm_map_status shm_map_add(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, int64_t by, int64_t *sum)
{
    struct change change = {
        .kind = ADD, .n = sizeof(by), .expires_ms = SHM_MAP_KEEP_EXPIRY, .by = by
    };
    enum shm_map_status status;

    change.value = &change.sum;
    status = write_entry(map, key, key_n, now_ms, &change, NULL);
    if (status == SHM_MAP_OK && sum != NULL)
        *sum = change.sum;
    return status;
}

enum shm_map_status shm_map_append(struct shm_map *map, const void *key, size_t key_n,
    uint64_t now_ms, const void *value, size_t n, uint64_t expires_ms)
{
    struct change change = { .kind = APPEND, .value = value, .n = n, .expires_ms = expires_ms };

    return write_entry(map, key, key_n, now_ms, &change, NULL);
}

static bool remove_found(
    struct shm_map *map, const struct shm_map_subject *s, const struct shm_map_place *place)
{
    uint64_t before = unlikely(map->log != NULL) ? shm_map_log_state(map, s->shard) : 0;

    if (!shm_map_shard_remove(map, s->shard, place->link, place->index))
        return false;
    if (unlikely(map->log != NULL) && place->present)
        shm_map_log_put(map, s->shard, before, SHM_MAP_WAS_DELETED, s->hash, s->key, s->key_n);
    else if (unlikely(map->log != NULL))
        shm_map_log_skip(map, s->shard, before);
    return true;
}

/* Removes a key's entry with the version `expected`; 0: any version. */
static enum shm_map_status remove_key(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, uint64_t expected)
{
    struct shm_map_subject s;
    struct shm_map_place place;
    bool whole = false, changed = false;

    if (key_n > map->shape.key_max)
        return SHM_MAP_ABSENT;
    s = shm_map_subject_of(map, key, key_n, now_ms);
    for (int tries = 0; tries < TABLE_TRIES && !whole; tries++) {
        shm_map_shard_lock(map, s.shard);
        whole = shm_map_find(map, &s, &place);
        changed = expected != 0 && place.present && place.version != expected;
        if (whole && place.entry != NULL && !changed)
            whole = remove_found(map, &s, &place);
        shm_map_shard_end(map, s.shard, whole);
    }
    if (!whole || !place.present)
        return SHM_MAP_ABSENT;
    return changed ? SHM_MAP_CHANGED : SHM_MAP_OK;
}

enum shm_map_status shm_map_delete(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms)
{
    return remove_key(map, key, key_n, now_ms, 0);
}

enum shm_map_status shm_map_remove(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, uint64_t expected)
{
    return remove_key(map, key, key_n, now_ms, expected != 0 ? expected : UINT64_MAX);
}
