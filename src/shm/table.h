/* SPDX-License-Identifier: BSD-2-Clause */
/* Sharded hash tables in shared memory: the core of maps, of limits, and of the zones of upstream
 * groups. Keys fall into shards by their hash, each with a lock of its own, and a shard's keys into
 * buckets: chains of entries, numbered from 1, that begin with the number of the next entry.
 *
 * Any worker may write anywhere into the memory. Each step of a walk checks the entry's number, the
 * chain's length, and the shard and bucket of the entry's hash. The core finds damage, and never
 * repairs it: its user rebuilds the shard, or empties it, under the lock. */
#pragma once

#include "base/compiler.h"
#include "shm/zone_lock.h"

#include <stdalign.h>

#define TABLE_SHARDS_MAX 64
/* The longest chain; a longer chain is damaged. */
#define TABLE_CHAIN_MAX 256
/* The retry limit of a call after damage, or after a lost lock. */
#define TABLE_TRIES 8
/* The offset of an entry's hash. */
#define TABLE_HASH_AT 8

/* The workers of the memory, in pages written by masters alone. */
struct table_workers {
    /* serial of the last dead worker, by slot; 0: none */
    alignas(CACHE_LINE) _Atomic uint32_t released[SLOT_HALVES * SLOT_MAX];
    /* serial of the living worker, by slot; 0: none */
    _Atomic uint32_t living[SLOT_HALVES * SLOT_MAX];
};

/* A process's own handle. The layout follows from the shape, never from what workers can write. */
struct table {
    uint32_t shard_n;     /* a power of two */
    uint32_t bucket_n;    /* buckets per shard; a power of two */
    uint32_t entry_n;     /* the greatest number of an entry */
    uint32_t shard_shift; /* bits of a hash below those of the shard; the lowest are the bucket's */
    uint64_t home_mask;   /* bits of a hash for the shard or the bucket */
    uint32_t head_shift;  /* 2: a head is a number; 3: a number and a change count */
    char *shards;         /* a CACHE_LINE each, beginning with a lock */
    char *buckets;        /* of all shards */
    char *entries;
    uint64_t stride;       /* bytes of an entry */
    uint64_t shard_stride; /* bytes of a shard's entries; 0: shards share all entries */
    struct zone_locker locker;
    struct zone_hold hold; /* of a shard */
};

enum table_step {
    TABLE_OK,
    TABLE_NONE,   /* there is none */
    TABLE_FAILED, /* damage was read, or the lock was taken */
};

/* A place in a chain. */
struct table_place {
    uint32_t shard, bucket;
    uint32_t before; /* number of the preceding entry; 0: none */
    uint32_t index;  /* 0: the end of the chain */
    void *entry;     /* valid where the index was checked */
    char *entries;   /* the shard's */
    uint64_t home;   /* a hash of the shard and the bucket */
    uint32_t cost;   /* entries since a walk has renewed the lock */
};

/* Layouts: the shards for so many entries, and an offset rounded up. */
static inline uint32_t table_shards_for(uint64_t entries, uint32_t per_shard)
{
    uint32_t n = 1;

    while (n < TABLE_SHARDS_MAX && entries / n >= UINT64_C(2) * per_shard)
        n *= 2;
    return n;
}

static inline uint64_t table_align(uint64_t offset, uint64_t to)
{
    return (offset + to - 1) / to * to;
}

static inline bool table_is_index(const struct table *table, uint32_t index)
{
    return index - 1 < table->entry_n;
}

static inline uint32_t table_shard_of(const struct table *table, uint64_t hash)
{
    return (uint32_t)(hash >> table->shard_shift) & (table->shard_n - 1);
}

static inline uint32_t table_bucket_of(const struct table *table, uint64_t hash)
{
    return (uint32_t)hash & (table->bucket_n - 1);
}

static inline struct shm_lock *table_lock_of(const struct table *table, uint32_t shard)
{
    assert(shard < table->shard_n);
    return (struct shm_lock *)(void *)(table->shards + (size_t)shard * CACHE_LINE);
}

static inline void *table_entry(const struct table *table, uint32_t shard, uint32_t index)
{
    return table->entries + shard * table->shard_stride + (index - 1) * table->stride;
}

/* The number of the next entry. */
static inline _Atomic uint32_t *table_next(void *entry)
{
    return entry;
}

static inline void *table_bucket(const struct table *table, uint32_t shard, uint32_t bucket)
{
    return table->buckets + (((size_t)shard * table->bucket_n + bucket) << table->head_shift);
}

/* The first entry of a chain. */
static inline uint32_t table_first(const struct table *table, uint32_t shard, uint32_t bucket)
{
    void *head = table_bucket(table, shard, bucket);

    return table->head_shift == 2 ? ZONE_LOAD(*(_Atomic uint32_t *)head)
                                  : (uint32_t)ZONE_LOAD(*(_Atomic uint64_t *)head);
}

/* The beginning of the chain of a hash's bucket, before an entry was read. */
static inline struct table_place table_place_of(const struct table *table, uint64_t hash)
{
    uint32_t shard = table_shard_of(table, hash);

    return (struct table_place) {
        .shard = shard,
        .bucket = table_bucket_of(table, hash),
        .entries = table_entry(table, shard, 1),
        .home = hash,
    };
}

/* Reads the hash of a place's entry, the nth of its chain; false for an impossible entry. */
static inline bool table_read(
    const struct table *table, struct table_place *at, uint32_t n, uint64_t *hash)
{
    if (!table_is_index(table, at->index) || n == TABLE_CHAIN_MAX)
        return false;
    at->entry = at->entries + (at->index - 1) * table->stride;
    *hash = ZONE_LOAD(*(_Atomic uint64_t *)(void *)((char *)at->entry + TABLE_HASH_AT));
    return *hash == at->home || ((*hash ^ at->home) & table->home_mask) == 0;
}

/* Finds the entry that `compare` accepts, from a place with the first index: OK; NONE; FAILED. */
static ALWAYS_INLINE enum table_step table_find(const struct table *table,
    struct table_place *place,
    enum table_step (*compare)(const void *entry, bool is_same, const void *key), const void *key)
{
    for (uint32_t n = 0; place->index != 0; n++) {
        enum table_step step;
        uint64_t there;

        if (!table_read(table, place, n, &there))
            return TABLE_FAILED;
        step = compare(place->entry, there == place->home, key);
        if (step != TABLE_NONE)
            return step;
        place->before = place->index;
        place->index = ZONE_LOAD(*table_next(place->entry));
    }
    return TABLE_NONE;
}

/* Whether this process still has the shard: for a check before publishing stores. */
static inline bool table_holds(const struct table *table)
{
    return zone_lock_holds(&table->hold);
}

/* Whether step n of a long work may go on. */
static inline bool table_goes_on(struct table *table, uint32_t n)
{
    return zone_lock_goes_on(&table->locker, &table->hold, n);
}

enum table_visit {
    TABLE_KEPT,
    TABLE_REMOVED, /* the entry is in the chain no more */
    TABLE_DAMAGED,
};

/* Calls `visit` for each entry of a held shard: OK; NONE where the lock was taken; FAILED at
 * damage. A visit that takes long adds to the place's cost. */
enum table_step table_walk(struct table *table, uint32_t shard,
    enum table_visit (*visit)(struct table_place *at, void *arg), void *arg);
/* The master: a worker is about to have the slot. */
void table_worker_begins(struct table_workers *workers, struct slot_id id);
/* The master: the slot's worker has died; false: none, or noted before. */
bool table_worker_ends(struct table_workers *workers, uint32_t slot);
