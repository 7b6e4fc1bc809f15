/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks through a shard, and the workers of a table. A walk is bounded whatever stands in chains:
 * no entry is in two, for its hash is of one bucket, and a circle is longer than any chain. */
#include "shm/table.h"

/* Walks the chain of a bucket; false at the first damage. */
static bool walk_chain(struct table *table, struct table_place *at,
    enum table_visit (*visit)(struct table_place *at, void *arg), void *arg)
{
    uint64_t hash;
    uint32_t next;

    at->before = 0;
    at->index = table_first(table, at->shard, at->bucket);
    at->home = (uint64_t)at->shard << table->shard_shift | at->bucket;
    for (uint32_t n = 0; at->index != 0; at->index = next) {
        enum table_visit kept;

        if (!table_read(table, at, n, &hash))
            return false;
        next = ZONE_LOAD(*table_next(at->entry));
        at->cost++;
        kept = visit(at, arg);
        if (kept == TABLE_DAMAGED)
            return false;
        if (kept == TABLE_KEPT) {
            at->before = at->index;
            n++;
        }
    }
    return true;
}

enum table_step table_walk(struct table *table, uint32_t shard,
    enum table_visit (*visit)(struct table_place *at, void *arg), void *arg)
{
    struct table_place at = table_place_of(table, (uint64_t)shard << table->shard_shift);

    assert(table->hold.lock == table_lock_of(table, shard));
    for (; at.bucket < table->bucket_n; at.bucket++) {
        if (at.cost++ >= ZONE_LOCK_RENEW_EVERY) {
            at.cost = 0;
            zone_lock_renew(&table->locker, &table->hold);
        }
        if (!table_holds(table))
            return TABLE_NONE;
        if (!walk_chain(table, &at, visit, arg))
            return TABLE_FAILED;
    }
    return table_holds(table) ? TABLE_OK : TABLE_NONE;
}

void table_worker_begins(struct table_workers *workers, struct slot_id id)
{
    assert(slot_id_is_valid(id));
    ZONE_STORE(workers->living[id.slot], id.serial);
}

bool table_worker_ends(struct table_workers *workers, uint32_t slot)
{
    uint32_t serial = ZONE_LOAD(workers->living[slot]);

    assert(slot < SLOT_HALVES * SLOT_MAX);
    if (serial == 0)
        return false;
    ZONE_STORE(workers->released[slot], serial);
    ZONE_STORE(workers->living[slot], 0);
    return true;
}
