/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks through a shard, and the workers of a table. A walk is bounded whatever stands in chains: an
 * entry is in one of them, for its hash is of one bucket, and a circle is longer than any chain. */
#include "shm/table.h"

static_assert(SLOT_HALVES * SLOT_MAX == 1 << SLOT_BITS, "any slot in a word is an index");

bool table_goes_on(struct table *table, uint32_t n)
{
    if (n % TABLE_RENEW_EVERY == TABLE_RENEW_EVERY - 1)
        return zone_lock_renew(&table->locker, &table->hold);
    return table_holds(table);
}

enum table_step table_walk(struct table *table, uint32_t shard,
    enum table_visit (*visit)(
        struct table *table, const struct table_place *at, uint32_t *cost, void *arg),
    void *arg)
{
    uint32_t cost = 0;

    assert(table->hold.lock == table_lock_of(table, shard));
    for (uint32_t bucket = 0; bucket < table->bucket_n; bucket++) {
        struct table_place at = {
            .shard = shard,
            .bucket = bucket,
            .home = (uint64_t)shard << table->shard_shift | bucket,
        };

        if (cost++ >= TABLE_RENEW_EVERY) {
            cost = 0;
            zone_lock_renew(&table->locker, &table->hold);
        }
        if (!table_holds(table))
            return TABLE_NONE;
        at.index = table_first(table, shard, bucket);
        for (uint32_t n = 0, next; at.index != 0; at.index = next) {
            enum table_visit kept = TABLE_DAMAGED;

            if (table_is_sound(table, &at, n)) {
                next = ZONE_LOAD(*table_next(at.entry));
                cost++;
                kept = visit(table, &at, &cost, arg);
            }
            if (kept == TABLE_DAMAGED)
                return TABLE_FAILED;
            if (kept == TABLE_KEPT) {
                at.before = at.index;
                n++;
            }
        }
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
