/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a map, for its own files.
 *
 * Keys fall into shards by their hash, and a shard's keys into its buckets, which are chains of
 * entries. An entry belongs to a shard, or to the pool: the byte in `owners` says to which. Besides
 * the entries in its chains each shard has a spare one.
 *
 * Writers hold the shard's mutex, and within it, where entries come and go, the pool's. What is in
 * a chain is never written to but for its link: a new state is written into the spare, or into an
 * entry from the pool, and one store of a link publishes it. What that store has taken out of the
 * chain stays as it is until the shard's sequence has grown; a reader without the lock that finds
 * the sequence as it was has seen nothing but whole entries. So a chain is whole after every
 * instruction, and after a death it is enough to find the entries that are the shard's but in no
 * chain.
 *
 * Stores that others, or a repair, may see are releasing ones: the compiler keeps their order. */
#pragma once

#include "shm/map.h"
#include "shm/mutex.h"

#include <stdatomic.h>

#define SHM_MAP_MAGIC 0x66626d70u
#define SHM_MAP_REVISION 1u /* layout version */
#define SHM_MAP_SHARDS_MAX 64
#define SHM_MAP_REACHED 0x80 /* in an owner's byte, within a repair: it is in a chain */

#define SHM_LOAD(object) atomic_load_explicit(&(object), memory_order_acquire)
#define SHM_STORE(object, value) atomic_store_explicit(&(object), (value), memory_order_release)

/* Entries are numbered from 1, and 0 ends a chain. */
struct shm_map_entry {
    _Atomic uint32_t next;
    _Atomic uint32_t key_n;
    _Atomic uint64_t hash;
    _Atomic uint64_t version;
    _Atomic uint64_t expires_ms;
    _Atomic uint32_t value_n;
    uint32_t reserved;
    unsigned char bytes[]; /* the key, and behind its room the value */
};

struct shm_map_shard {
    alignas(CACHE_LINE) pthread_mutex_t mutex;
    _Atomic uint64_t sequence;   /* grows after an entry was taken out of a chain */
    _Atomic uint64_t version;    /* the latest that was given */
    _Atomic uint64_t soonest_ms; /* the earliest expiry, or an earlier time */
    _Atomic uint32_t count;      /* entries in chains */
    _Atomic uint32_t spare;
};

struct shm_map_pool {
    alignas(CACHE_LINE) pthread_mutex_t mutex;
    _Atomic uint32_t free; /* the first of a chain */
    _Atomic uint32_t used; /* entries beyond were never touched, and are free as well */
};

struct shm_map {
    uint32_t magic, revision;
    struct shm_map_shape shape;
    uint32_t shard_n;  /* a power of two */
    uint32_t bucket_n; /* buckets of each shard; a power of two */
    uint32_t entry_n;  /* the capacity, and a spare one for each shard */
    uint64_t seed[2];
    uint64_t owners, buckets, entries; /* offsets of the arrays from the map */
    uint64_t value_at;                 /* in an entry's bytes */
    uint64_t stride;                   /* bytes of an entry */
    struct shm_map_pool pool;
    struct shm_map_shard shards[];
};

/* The owners: a byte for each entry, which is 0 for the pool, else the shard's number + 1. */
static inline _Atomic uint8_t *shm_map_owners(struct shm_map *map)
{
    return (_Atomic uint8_t *)((char *)map + map->owners) - 1;
}

static inline struct shm_map_entry *shm_map_entry_at(struct shm_map *map, uint32_t index)
{
    return (struct shm_map_entry *)(void *)((char *)map + map->entries + (index - 1) * map->stride);
}

/* The first of a shard's buckets. */
static inline _Atomic uint32_t *shm_map_buckets(struct shm_map *map, uint32_t shard)
{
    return (_Atomic uint32_t *)(void *)((char *)map + map->buckets) + (size_t)shard * map->bucket_n;
}

static inline bool shm_map_is_expired(const struct shm_map_entry *entry, uint64_t now_ms)
{
    uint64_t expires_ms = SHM_LOAD(entry->expires_ms);

    return expires_ms != 0 && expires_ms <= now_ms;
}

/* The pool (map_pool.c): its functions lock it; the caller holds the shard. */

int shm_map_pool_init(struct shm_map *map);
/* Acquires an entry for the shard; 0 when there is none. */
uint32_t shm_map_pool_acquire(struct shm_map *map, uint32_t shard);
/* Releases an entry that no reader can confuse with its former state any more. */
void shm_map_pool_give(struct shm_map *map, uint32_t index);
bool shm_map_pool_is_empty(struct shm_map *map);

/* Shards (map_shard.c) */

int shm_map_shard_init(struct shm_map *map, uint32_t shard);
/* Locks a shard, and repairs it when its last holder has died. */
void shm_map_shard_lock(struct shm_map *map, uint32_t shard);
bool shm_map_shard_try(struct shm_map *map, uint32_t shard);
void shm_map_shard_unlock(struct shm_map *map, uint32_t shard);
/* Removes the entry that a link leads to from its chain, and releases it. */
void shm_map_shard_remove(struct shm_map *map, uint32_t shard, _Atomic uint32_t *link);
