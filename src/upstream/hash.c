/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses by a hash of the key: without `consistent` as Cache::Memcached does, by the weights one
 * after the other. A peer that cannot be used has the key hashed again, with a number before it;
 * after many of them, without a key, and among backups, the choice is left to round robin. */
#include "base/crc32.h"
#include "upstream/balancer.h"
#include "upstream/ketama.h"

#include <stdio.h>

/* Returns the hash of the key that was hashed so often before. */
static uint32_t hash_key(fb_bytes key, uint32_t rehashes)
{
    char number[16];
    uint32_t crc = 0;

    if (rehashes > 0)
        crc = crc32_add(0, number, (size_t)snprintf(number, sizeof(number), "%u", rehashes));
    return crc32_add(crc, key.p, key.n) >> 16 & 0x7fff;
}

static struct peer *choose(struct choice *choice)
{
    struct choice_more *more = choice->more;
    uint64_t weight;

    if (more == NULL || more->key.n == 0 || choice->backup)
        return round_robin_choose(choice);
    if (choice->upstream->balance.consistent)
        return ketama_choose(choice);
    weight = balancer_weight(choice);
    while (weight > 0 && choice->misses < BALANCER_MISSES) {
        struct peer *peer;

        more->hash += hash_key(more->key, more->rehashes++);
        peer = balancer_peer_at(choice, more->hash % weight);
        if (choice_may_use(choice, peer))
            return peer;
        choice->misses++;
    }
    return round_robin_choose(choice);
}

const struct balancer balancer_hash = { .name = "hash", .choose = choose, .forget = ketama_forget };
