/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding a key, for the files of a map's calls: in which chain its entry is, and at which place of
 * it. Only that a chain is whole is checked here; a caller that finds it damaged has it mended, and
 * tries again. */
#pragma once

#include "shm/map_private.h"
#include "shm/siphash.h"

#include <assert.h>
#include <string.h>

/* The tries to read between two writes; then the reader takes the lock. */
#define SHM_MAP_READ_TRIES 64
/* The tries of a call that finds damage, or whose lock is taken from it. */
#define SHM_MAP_MEND_TRIES 8

/* The key that a call is about. */
struct shm_map_subject {
    const void *key;
    size_t key_n;
    uint64_t now_ms;
    uint64_t hash;
    uint32_t shard;
    _Atomic uint32_t *bucket;
};

/* The place of the key's entry in its chain, expired or not. */
struct shm_map_place {
    _Atomic uint32_t *link;
    uint32_t index;               /* the entry's; 0: none */
    struct shm_map_entry *entry;  /* NULL: none */
    uint64_t version, expires_ms; /* the entry's, with its value's length */
    uint32_t value_n;
    bool present; /* an entry was found that has not expired */
};

static inline struct shm_map_subject shm_map_subject_of(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms)
{
    struct shm_map_subject s = { .key = key, .key_n = key_n, .now_ms = now_ms };

    assert(key != NULL || key_n == 0);
    assert(key_n <= SHM_MAP_KEY_MAX);
    s.hash = siphash(map->seed, key, key_n);
    s.shard = shm_map_shard_of(map, s.hash);
    s.bucket = shm_map_buckets(map, s.shard) + shm_map_bucket_of(map, s.hash);
    return s;
}

static inline bool shm_map_is_of(const struct shm_map_entry *entry, const struct shm_map_subject *s)
{
    return SHM_LOAD(entry->hash) == s->hash && SHM_LOAD(entry->key_n) == s->key_n &&
           (s->key_n == 0 || memcmp(entry->bytes, s->key, s->key_n) == 0);
}

/* Finds the key's place, under the lock; false where the chain is damaged. */
bool shm_map_find(
    struct shm_map *map, const struct shm_map_subject *s, struct shm_map_place *place);
