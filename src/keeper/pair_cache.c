/* SPDX-License-Identifier: BSD-2-Clause */
/* The pairs that were parsed last, by number: see pair_cache.h. */
#include "keeper/pair_cache.h"

#include <assert.h>
#include <stdlib.h>

void pair_cache_init(struct pair_cache *cache)
{
    *cache = (struct pair_cache) { .n = 0 };
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

struct pair_cached *pair_cache_find(struct pair_cache *cache, const struct tls_pair *of)
{
    struct pair_cached *cached;

    LIST_FOREACH (cached, &cache->buckets[of->number % PAIRS_CACHED], link)
        if (cached->of.number == of->number && cached->of.certificate == of->certificate &&
            cached->of.key == of->key)
            break;
    if (cached != NULL && cached != TAILQ_FIRST(&cache->order)) {
        TAILQ_REMOVE(&cache->order, cached, order);
        TAILQ_INSERT_HEAD(&cache->order, cached, order);
    }
    return cached;
}

struct pair_cached *pair_cache_put(
    struct pair_cache *cache, const struct tls_pair *of, uint32_t version, struct pair *pair)
{
    struct pair_cached *cached = malloc(sizeof(*cached));

    pair_cache_drop(cache, of);
    if (cached == NULL) {
        pair_free(pair);
        return NULL;
    }
    if (cache->n == PAIRS_CACHED)
        free_cached(cache, TAILQ_LAST(&cache->order, pair_order));
    *cached = (struct pair_cached) { .of = *of, .version = version, .pair = *pair };
    *pair = (struct pair) { .leaf = NULL };
    TAILQ_INSERT_HEAD(&cache->order, cached, order);
    LIST_INSERT_HEAD(&cache->buckets[of->number % PAIRS_CACHED], cached, link);
    cache->n++;
    return cached;
}

void pair_cache_drop(struct pair_cache *cache, const struct tls_pair *of)
{
    struct pair_cached *cached = pair_cache_find(cache, of);

    if (cached != NULL)
        free_cached(cache, cached);
}
