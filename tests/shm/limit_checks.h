/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits for tests and fuzzers: counts, and checks that the shards are whole. */
#pragma once

#include "shm/limit_private.h"
#include "shm/siphash.h"

#include <assert.h>

/* Locks a shard, and looks through it as at a first visit. */
static inline void limit_look_at(struct shm_limit *limit, uint32_t shard)
{
    enum zone_lock_state state =
        zone_lock(&limit->table.locker, &limit->shards[shard].lock, &limit->table.hold);

    limit->mended.taken = limit->table.locker.taken;
    if (state != ZONE_LOCK_FREE)
        shm_limit_rebuild(limit, shard, false);
    shm_limit_look(limit, shard);
}

static inline void limit_leave(struct shm_limit *limit, uint32_t shard)
{
    if (!zone_lock_release(&limit->table.hold))
        limit->visits[shard].unsure = true;
}

/* Looks through all shards, and gives up keys that no worker needs. */
static inline void limit_sweep(struct shm_limit *limit, uint64_t now_ns)
{
    limit->now_ns = now_ns;
    for (uint32_t shard = 0; shard < limit->table.shard_n; shard++) {
        limit_look_at(limit, shard);
        limit_leave(limit, shard);
    }
}

/* Returns the sessions of a key in all workers. */
static inline uint64_t limit_sum(struct shm_limit *limit, const void *key, size_t n)
{
    const uint64_t *seed = limit->header->seed;
    const uint64_t words[2] = { siphash(seed, key, n), siphash(seed + 2, key, n) };
    uint32_t shard = table_shard_of(&limit->table, words[0]);
    struct shm_limit_cells cells = { .own = NULL };
    struct table_place place;

    limit_look_at(limit, shard);
    if (shm_limit_find(limit, words, &place) == TABLE_OK)
        shm_limit_read_cells(limit, &place, &cells);
    limit_leave(limit, shard);
    return cells.others + (cells.own != NULL ? shm_limit_cell_count(cells.own_word) : 0);
}

/* Counts the units in use. */
static inline uint64_t limit_used(const struct shm_limit *limit)
{
    uint64_t n = 0;

    for (uint32_t shard = 0; shard < limit->table.shard_n; shard++)
        for (uint32_t i = shm_limit_touched(limit, shard); i > 0; i--)
            n += shm_limit_unit_kind(shm_limit_unit_at(limit, shard, i)) != SHM_LIMIT_FREE;
    return n;
}

/* Asserts whole shards; the caller is the only user. */
static inline void limit_check(struct shm_limit *limit)
{
    for (uint32_t shard = 0; shard < limit->table.shard_n; shard++) {
        uint32_t rebuilt = limit->mended.rebuilt;
        enum zone_lock_state state =
            zone_lock_try(&limit->table.locker, &limit->shards[shard].lock, &limit->table.hold);

        assert(state == ZONE_LOCK_FREE && !limit->visits[shard].unsure);
        shm_limit_look(limit, shard);
        assert(limit->mended.rebuilt == rebuilt);
        zone_lock_release(&limit->table.hold);
    }
}
