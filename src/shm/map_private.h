/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a map, for map*.c.
 *
 * Keys fall into shards by their hash, and a shard's keys into buckets, the heads of chains of
 * entries. An entry belongs to a shard, or to the pool, by the byte in `owners`. Besides the
 * entries in chains a shard has a spare entry.
 *
 * Writers hold the shard's lock, and within it, where entries come and go, the pool's. Of an entry
 * in a chain only the link is written: a new state is written into the spare, or into an entry from
 * the pool, and one store of a link publishes it. The replaced entry stays unchanged until the
 * shard's sequence has grown; a reader without the lock that finds an unchanged sequence has seen
 * whole entries only. So a chain is whole after every instruction, and after a death a repair need
 * only find the shard's entries outside of chains.
 *
 * A holder that stood still, and lost the lock, may go on at any time. A holder looks at the lock
 * before each publishing store, and gives up after a loss. Entries perhaps still being written are
 * kept back: the shard owns them, with the holder's incarnation in `kept_for`, until the holder has
 * come back or has died.
 *
 * Stores visible to readers or a repair are releasing ones: the compiler keeps their order. Words
 * of shared memory are read once, and checked before use as an index or a length. */
#pragma once

#include "base/compiler.h"
#include "shm/map.h"
#include "shm/siphash.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#define SHM_MAP_MAGIC 0x66626d70u
#define SHM_MAP_REVISION 4u       /* layout version, of maps without `memory` */
#define SHM_MAP_REVISION_PAGED 5u /* layout version, of maps with `memory` */
#define SHM_MAP_REACHED 0x80      /* in an owner's byte, within a repair: it is in a chain */
/* The upper bound of a shard's version: no counting gets beyond. */
#define SHM_MAP_VERSION_MAX (UINT64_MAX / 2)
/* The greatest version after a repair, with room for counting on. */
#define SHM_MAP_VERSION_MOST (SHM_MAP_VERSION_MAX / 8 * 7)
/* The time between the first two looks of a process for entries that damage has hidden. */
#define SHM_MAP_AUDIT_MS 1000
/* Bytes of a key that cost a walk as much as an entry. */
#define SHM_MAP_KEY_COST 64

/* Entries are numbered from 1, and 0 ends a chain. */
struct shm_map_entry {
    _Atomic uint32_t next;
    _Atomic uint32_t key_n;
    _Atomic uint64_t hash;
    _Atomic uint64_t version;
    _Atomic uint64_t expires_ms;
    _Atomic uint32_t value_n;
    _Atomic uint32_t kept_for; /* slot_incarnation() of a process perhaps writing here; 0: none */
    unsigned char bytes[];     /* the key, and the value behind the key's room */
};

enum shm_map_suspicion {
    SHM_MAP_SUSPECT = 1,   /* entries may have been lost */
    SHM_MAP_KEEPS_NOTHING, /* entries may have been lost, and kept back entries are needed */
};

struct shm_map_shard {
    alignas(CACHE_LINE) struct shm_lock lock;
    _Atomic uint64_t sequence;   /* grows after an entry was taken out of a chain */
    _Atomic uint64_t version;    /* the latest that was given */
    _Atomic uint64_t soonest_ms; /* the earliest expiry, or an earlier time */
    _Atomic uint32_t count;      /* entries in chains */
    _Atomic uint32_t spare;      /* 0: none, until the pool has one */
    _Atomic uint32_t suspect;    /* enum shm_map_suspicion: not 0: the next holder repairs */
    _Atomic uint32_t kept_for;   /* incarnation of the last entry kept back; 0: none */
    _Atomic uint64_t bytes;      /* with `memory`: bytes in pages of entries in chains */
};

struct shm_map_pool {
    alignas(CACHE_LINE) struct shm_lock lock;
    _Atomic uint32_t free; /* the first of a chain */
    _Atomic uint32_t used; /* entries beyond were never touched, and are free as well */
};

/* The pages that the master alone writes. */
struct shm_map_header {
    uint32_t magic, revision;
    struct shm_map_shape shape; /* shape at the making of the map */
    uint64_t seed[2];
    /* serial of the last dead worker, by slot, whose locks are free; 0: none */
    alignas(CACHE_LINE) _Atomic uint32_t released[SLOT_HALVES * SLOT_MAX];
};

/* The owner of an entry: 0 for the pool, else the shard's number + 1. */
static inline _Atomic uint8_t *shm_map_owner(const struct shm_map *map, uint32_t index)
{
    return &map->owners[index - 1];
}

static inline struct shm_map_entry *shm_map_entry_at(const struct shm_map *map, uint32_t index)
{
    return table_entry(&map->table, 0, index);
}

/* The first of a shard's buckets. */
static inline _Atomic uint32_t *shm_map_buckets(const struct shm_map *map, uint32_t shard)
{
    return (_Atomic uint32_t *)(void *)map->table.buckets + (size_t)shard * map->table.bucket_n;
}

/* Whether this process has checked the shard. */
static inline bool shm_map_is_checked(const struct shm_map *map, uint32_t shard)
{
    return map->checked >> shard & 1;
}

static inline bool shm_map_has_passed(uint64_t expires_ms, uint64_t now_ms)
{
    return expires_ms != 0 && expires_ms <= now_ms;
}

/* Whether as many keys are there as fit, or a few are just being set. */
static inline bool shm_map_has_all(const struct shm_map *map)
{
    uint64_t count = 0;

    for (uint32_t shard = 0; shard < map->table.shard_n; shard++)
        count += ZONE_LOAD(map->shards[shard].count);
    return count >= map->shape.capacity;
}

/* Whether the map, of once greater capacity, has as many keys as fit: entries may be free. */
static inline bool shm_map_is_reduced(const struct shm_map *map)
{
    return unlikely(ZONE_LOAD(map->pool->used) > map->touched_most) && shm_map_has_all(map);
}

/* Bytes of pages for an entry with a value of value_n bytes. */
static inline uint64_t shm_map_paged(const struct shm_map *map, uint32_t value_n)
{
    uint64_t n = sizeof(struct shm_map_entry) + map->value_at + value_n;

    return (n + map->page - 1) / map->page * map->page;
}

/* Keys */

/* The tries to read between two writes; then the reader takes the lock. */
#define SHM_MAP_READ_TRIES 64

/* The key that a call is about. */
struct shm_map_subject {
    const void *key;
    size_t key_n;
    uint64_t now_ms;
    uint64_t hash;
    uint32_t shard;
    _Atomic uint32_t *bucket;
};

/* The place of the key's entry in the chain, expired or not. */
struct shm_map_place {
    _Atomic uint32_t *link;
    uint32_t index;               /* the entry's; 0: none */
    struct shm_map_entry *entry;  /* NULL: none */
    uint64_t version, expires_ms; /* the entry's, with its value's length */
    uint32_t value_n;
    bool present; /* the entry exists and has not expired */
};

static inline struct shm_map_subject shm_map_subject_of(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms)
{
    struct shm_map_subject s = { .key = key, .key_n = key_n, .now_ms = now_ms };

    assert(key != NULL || key_n == 0);
    assert(key_n <= SHM_MAP_KEY_MAX);
    s.hash = siphash(map->seed, key, key_n);
    s.shard = table_shard_of(&map->table, s.hash);
    s.bucket = shm_map_buckets(map, s.shard) + table_bucket_of(&map->table, s.hash);
    return s;
}

/* For table_find(), with a subject. */
static inline enum table_step shm_map_compare_key(
    const void *there, bool is_same, const void *subject)
{
    const struct shm_map_entry *entry = there;
    const struct shm_map_subject *s = subject;

    return is_same && ZONE_LOAD(entry->key_n) == s->key_n &&
                   (s->key_n == 0 || memcmp(entry->bytes, s->key, s->key_n) == 0)
               ? TABLE_OK
               : TABLE_NONE;
}

/* Finds the key's entry, unless `place` remains at the end: OK; NONE; FAILED. */
static ALWAYS_INLINE enum table_step shm_map_find_key(
    const struct shm_map *map, const struct shm_map_subject *s, struct table_place *place)
{
    *place = (struct table_place) {
        .index = ZONE_LOAD(*s->bucket),
        .entries = map->table.entries,
        .home = s->hash,
    };
    return table_find(&map->table, place, shm_map_compare_key, s);
}

/* Copies as much of a value, or key, as there is room for: OK; TOO_LARGE. */
static inline enum shm_map_status shm_map_copy(
    const void *bytes, uint32_t n, struct shm_map_item *item)
{
    size_t part = n < item->room ? n : item->room;

    item->n = n;
    if (part > 0)
        memcpy(item->value, bytes, part);
    return part == n ? SHM_MAP_OK : SHM_MAP_TOO_LARGE;
}

/* Whether a read since `before`, without the lock, has met whole entries only. */
static inline bool shm_map_is_unchanged(const struct shm_map *map, uint32_t shard, uint64_t before)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&map->shards[shard].sequence, memory_order_relaxed) == before;
}

/* The pool and the memory (map_pool.c), for the holder of the shard. */

/* Acquires an entry for the shard; 0 when there is none. */
uint32_t shm_map_pool_acquire(struct shm_map *map, uint32_t shard);
/* Releases an entry of the shard, safe from readers of the former state. */
void shm_map_pool_give(struct shm_map *map, uint32_t shard, uint32_t index);
bool shm_map_pool_is_empty(struct shm_map *map);
/* Makes the list of free entries anew, of all that have no owner. */
void shm_map_pool_audit(struct shm_map *map);
/* Returns the last entry that may have an owner. */
uint32_t shm_map_pool_used(const struct shm_map *map);
/* Marks all shards for a repair by the next holder. */
void shm_map_pool_suspect(struct shm_map *map, enum shm_map_suspicion why);
/* Adds an entry's pages to the shard's; false, without a change, beyond the limit of all. */
bool shm_map_pool_take_pages(struct shm_map *map, uint32_t shard, uint32_t value_n);
/* Subtracts an entry's pages. */
void shm_map_pool_give_pages(struct shm_map *map, uint32_t shard, uint32_t value_n);
/* Gives the pages of an entry that is in no chain back to the system, but for the first. */
void shm_map_pool_release_pages(struct shm_map *map, uint32_t index, uint32_t value_n);

/* Shards (map_shard.c). A repair gives up where the lock is taken: the next holder repairs. */

/* Locks a shard, with a repair after a dead or robbed holder, and a check, once a process. */
void shm_map_shard_lock(struct shm_map *map, uint32_t shard);
bool shm_map_shard_try(struct shm_map *map, uint32_t shard);
/* Unlocks after a step, with a repair of found damage, unless the lock was lost. Returns
 * `whole`. */
bool shm_map_shard_end(struct shm_map *map, uint32_t shard, bool whole);
/* Removes a link's entry; false where the shard is damaged or no longer held. */
bool shm_map_shard_remove(
    struct shm_map *map, uint32_t shard, _Atomic uint32_t *link, uint32_t index);
/* Empties the shard: the keys are lost, the entries go to the pool. */
void shm_map_shard_empty(struct shm_map *map, uint32_t shard);
/* Finds the key's place; false where the chain is damaged. */
bool shm_map_find(
    struct shm_map *map, const struct shm_map_subject *s, struct shm_map_place *place);
