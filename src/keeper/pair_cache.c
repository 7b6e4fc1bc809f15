/* SPDX-License-Identifier: BSD-2-Clause */
/* The pairs that were parsed last: see pair_cache.h. */
#include "keeper/pair_cache.h"

#include "base/crc32.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void pair_cache_init(struct pair_cache *cache, unsigned most)
{
    *cache = (struct pair_cache) { .most = most };
    TAILQ_INIT(&cache->order);
}

static void free_cached(struct pair_cache *cache, struct pair_cached *cached)
{
    assert(cache->n > 0);
    TAILQ_REMOVE(&cache->order, cached, order);
    LIST_REMOVE(cached, link);
    cache->n--;
    pair_free(&cached->pair);
    free(cached);
}

void pair_cache_done(struct pair_cache *cache)
{
    while (cache->n > 0)
        free_cached(cache, TAILQ_FIRST(&cache->order));
}

static unsigned bucket_of(const void *key, size_t key_n)
{
    return crc32_add(0, key, key_n) % PAIRS_CACHED;
}

struct pair_cached *pair_cache_find(struct pair_cache *cache, const void *key, size_t key_n)
{
    struct pair_cached *cached;

    LIST_FOREACH (cached, &cache->buckets[bucket_of(key, key_n)], link)
        if (cached->key_n == key_n && memcmp(cached->key, key, key_n) == 0)
            break;
    if (cached != NULL && cached != TAILQ_FIRST(&cache->order)) {
        TAILQ_REMOVE(&cache->order, cached, order);
        TAILQ_INSERT_HEAD(&cache->order, cached, order);
    }
    return cached;
}

struct pair_cached *pair_cache_put(
    struct pair_cache *cache, const void *key, size_t key_n, uint32_t version, struct pair *pair)
{
    struct pair_cached *cached = malloc(sizeof(*cached) + key_n);

    pair_cache_drop(cache, key, key_n);
    if (cached == NULL) {
        pair_free(pair);
        return NULL;
    }
    if (cache->n == cache->most)
        free_cached(cache, pair_cache_oldest(cache));
    *cached = (struct pair_cached) { .version = version, .pair = *pair, .key_n = key_n };
    memcpy(cached->key, key, key_n);
    *pair = (struct pair) { .leaf = NULL };
    TAILQ_INSERT_HEAD(&cache->order, cached, order);
    LIST_INSERT_HEAD(&cache->buckets[bucket_of(key, key_n)], cached, link);
    cache->n++;
    return cached;
}

void pair_cache_drop(struct pair_cache *cache, const void *key, size_t key_n)
{
    struct pair_cached *cached = pair_cache_find(cache, key, key_n);

    if (cached != NULL)
        free_cached(cache, cached);
}

struct pair_cached *pair_cache_oldest(struct pair_cache *cache)
{
    return TAILQ_LAST(&cache->order, pair_order);
}
