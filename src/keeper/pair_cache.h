/* SPDX-License-Identifier: BSD-2-Clause */
/* The pairs that were parsed last, of which so many are kept that the memory of a keeper does not
 * grow with the number of certificates. A pair is known by a key of any bytes: its numbers, or the
 * names of its files. */
#pragma once

#include "keeper/pair.h"

#include <bsd/sys/queue.h>

/* Parsed pairs of a keeper, of some 7 KB each. */
#define PAIRS_CACHED 256

struct pair_cached {
    TAILQ_ENTRY(pair_cached) order;
    LIST_ENTRY(pair_cached) link;
    struct pair pair;
    uint32_t version; /* of the store */
    /* of pairs by names (keeper/named_pairs.h): */
    uint64_t identities[PAIR_PASSWORDS]; /* the files as they were read */
    uint64_t checked_ms, used_ms;        /* monotonic: when files and pair were found equal, */
    size_t key_n;                        /* and when the pair was used last */
    uint8_t key[];
};

struct pair_cache {
    TAILQ_HEAD(pair_order, pair_cached) order; /* the latest use first */
    LIST_HEAD(, pair_cached) buckets[PAIRS_CACHED];
    unsigned n, most;
};

void pair_cache_init(struct pair_cache *cache, unsigned most);
void pair_cache_done(struct pair_cache *cache);
/* Returns a parsed pair, of any version, now the latest; NULL: it is not kept. */
struct pair_cached *pair_cache_find(struct pair_cache *cache, const void *key, size_t key_n);
/* Keeps a pair, in place of its former version, and takes it over; NULL without memory, and the
 * pair is freed. */
struct pair_cached *pair_cache_put(
    struct pair_cache *cache, const void *key, size_t key_n, uint32_t version, struct pair *pair);
/* Forgets a pair, if it is kept. */
void pair_cache_drop(struct pair_cache *cache, const void *key, size_t key_n);
/* Returns the pair that was used the longest time ago; NULL: none is kept. */
struct pair_cached *pair_cache_oldest(struct pair_cache *cache);
