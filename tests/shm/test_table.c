/* SPDX-License-Identifier: BSD-2-Clause */
/* The core of maps and limits, in the layouts of both: walks and finds meet all entries, and each
 * damage to a chain ends them. */
#include "shm/table.h"
#include "support/test.h"

#include "base/compiler.h"

#include <string.h>

#define SHARDS 2
#define BUCKETS 4
#define ENTRIES (TABLE_CHAIN_MAX + 40)
#define KEYS 3 /* in each bucket at first */

struct entry {
    _Atomic uint32_t next;
    uint32_t unused;
    _Atomic uint64_t hash;
};

struct scene {
    alignas(CACHE_LINE) char shards[SHARDS][CACHE_LINE];
    uint64_t buckets[SHARDS * BUCKETS];
    struct entry entries[SHARDS][ENTRIES];
    struct table_workers workers;
    struct table table;
    uint32_t used[SHARDS]; /* entries; in common if shared by shards */
    uint32_t met, removed;
};

static const struct {
    uint32_t shard_shift, head_shift;
    bool is_common; /* the shards' entries */
} layouts[] = { { 32, 2, true }, { 63, 3, false } };

static struct scene scene;

static uint64_t hash_of(uint32_t shard, uint32_t bucket, uint32_t key)
{
    return (uint64_t)shard << scene.table.shard_shift | (uint64_t)key << 8 | bucket;
}

static void set_first(uint32_t shard, uint32_t bucket, uint32_t index)
{
    void *head = table_bucket(&scene.table, shard, bucket);

    if (scene.table.head_shift == 2)
        *(_Atomic uint32_t *)head = index;
    else
        *(_Atomic uint64_t *)head = UINT64_C(7) << 32 | index;
}

static struct entry *entry_at(uint32_t shard, uint32_t index)
{
    return table_entry(&scene.table, shard, index);
}

static uint32_t add_key(uint32_t shard, uint32_t bucket, uint32_t key)
{
    uint32_t index = ++scene.used[scene.table.shard_stride > 0 ? shard : 0];

    entry_at(shard, index)->hash = hash_of(shard, bucket, key);
    entry_at(shard, index)->next = table_first(&scene.table, shard, bucket);
    set_first(shard, bucket, index);
    return index;
}

static void start(int layout)
{
    scene = (struct scene) {
        .table = {
            .shard_n = SHARDS,
            .bucket_n = BUCKETS,
            .entry_n = ENTRIES,
            .shard_shift = layouts[layout].shard_shift,
            .home_mask = UINT64_C(1) << layouts[layout].shard_shift | (BUCKETS - 1),
            .head_shift = layouts[layout].head_shift,
            .shards = scene.shards[0],
            .buckets = (char *)scene.buckets,
            .entries = (char *)scene.entries,
            .stride = sizeof(struct entry),
            .shard_stride = layouts[layout].is_common ? 0 : sizeof(scene.entries[0]),
            .locker = { .id = { 1, 1 }, .released = scene.workers.released },
        },
    };
    for (uint32_t i = 0; i < SHARDS * BUCKETS * KEYS; i++)
        add_key(i % SHARDS, i / SHARDS % BUCKETS, i);
}

static void hold(uint32_t shard)
{
    ck_assert_int_eq(
        zone_lock(&scene.table.locker, table_lock_of(&scene.table, shard), &scene.table.hold),
        ZONE_LOCK_FREE);
}

static enum table_step compare_hash(const void *entry, bool is_same, const void *key)
{
    ck_assert_int_eq(is_same, ((const struct entry *)entry)->hash == *(const uint64_t *)key);
    return is_same ? TABLE_OK : TABLE_NONE;
}

static enum table_step find_key(uint32_t shard, uint32_t bucket, uint32_t key)
{
    uint64_t hash = hash_of(shard, bucket, key);
    struct table_place place = table_place_of(&scene.table, hash);

    place.index = table_first(&scene.table, shard, bucket);
    return table_find(&scene.table, &place, compare_hash, &hash);
}

static enum table_visit count_entry(struct table_place *at, void *arg)
{
    struct scene *counted = arg;

    ck_assert_ptr_eq(at->entry, entry_at(at->shard, at->index));
    counted->met++;
    return TABLE_KEPT;
}

static enum table_visit remove_half(struct table_place *at, void *arg)
{
    struct scene *swept = arg;
    uint32_t next = *table_next(at->entry);

    if (at->index / 2 % 2 != 0)
        return count_entry(at, arg);
    if (at->before != 0)
        entry_at(at->shard, at->before)->next = next;
    else
        set_first(at->shard, at->bucket, next);
    swept->removed++;
    return TABLE_REMOVED;
}

static enum table_visit lose_lock(struct table_place *at, void *arg)
{
    (void)at;
    (void)arg;
    scene.table.hold.lock->word++;
    return TABLE_KEPT;
}

START_TEST(entries_are_found_and_walked)
{
    start(_i);
    for (uint32_t i = 0; i < SHARDS * BUCKETS * KEYS; i++)
        ck_assert_int_eq(find_key(i % SHARDS, i / SHARDS % BUCKETS, i), TABLE_OK);
    ck_assert_int_eq(find_key(0, 0, 1000), TABLE_NONE);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        hold(shard);
        scene.met = 0;
        ck_assert_int_eq(table_walk(&scene.table, shard, count_entry, &scene), TABLE_OK);
        ck_assert_uint_eq(scene.met, BUCKETS * KEYS);
        scene.met = scene.removed = 0;
        ck_assert_int_eq(table_walk(&scene.table, shard, remove_half, &scene), TABLE_OK);
        ck_assert_uint_eq(scene.met + scene.removed, BUCKETS * KEYS);
        scene.met = 0;
        ck_assert_int_eq(table_walk(&scene.table, shard, count_entry, &scene), TABLE_OK);
        ck_assert_uint_eq(scene.met, BUCKETS * KEYS - scene.removed);
        ck_assert_int_eq(table_walk(&scene.table, shard, lose_lock, NULL), TABLE_NONE);
        scene.table.hold.lock = NULL;
    }
}
END_TEST

/* ---- Damage to the chain of shard 1's bucket 2, whose first entry is given ---- */

static void lead_beyond(uint32_t first)
{
    entry_at(1, first)->next = ENTRIES + 1;
}

static void lead_far(uint32_t first)
{
    entry_at(1, first)->next = UINT32_MAX;
}

static void lead_to_itself(uint32_t first)
{
    entry_at(1, first)->next = first;
}

static void lead_back(uint32_t first)
{
    entry_at(1, entry_at(1, first)->next)->next = first;
}

static void change_shard(uint32_t first)
{
    entry_at(1, first)->hash = hash_of(0, 2, 5);
}

static void change_bucket(uint32_t first)
{
    entry_at(1, first)->hash = hash_of(1, 3, 5);
}

static void grow_chain(uint32_t first)
{
    (void)first;
    for (uint32_t i = KEYS; i < TABLE_CHAIN_MAX + 1; i++)
        add_key(1, 2, 2000 + i);
}

static void (*const damages[])(uint32_t first) = { lead_beyond, lead_far, lead_to_itself, lead_back,
    change_shard, change_bucket, grow_chain };

START_TEST(damage_ends_walks_and_finds)
{
    for (size_t i = 0; i < countof(damages); i++) {
        start(_i);
        damages[i](table_first(&scene.table, 1, 2));
        ck_assert_int_eq(find_key(1, 2, 1000), TABLE_FAILED);
        ck_assert_int_eq(find_key(1, 3, 1000), TABLE_NONE);
        hold(1);
        ck_assert_int_eq(table_walk(&scene.table, 1, count_entry, &scene), TABLE_FAILED);
        ck_assert_uint_le(scene.met, 3 * KEYS + TABLE_CHAIN_MAX);
        zone_lock_release(&scene.table.hold);
        hold(0);
        ck_assert_int_eq(table_walk(&scene.table, 0, count_entry, &scene), TABLE_OK);
    }
}
END_TEST

START_TEST(workers_begin_and_end)
{
    struct slot_id id = { 3, 9 };

    start(0);
    ck_assert(!table_worker_ends(&scene.workers, id.slot)); /* without a worker */
    table_worker_begins(&scene.workers, id);
    ck_assert_uint_eq(scene.workers.living[id.slot], id.serial);
    ck_assert(table_worker_ends(&scene.workers, id.slot));
    ck_assert_uint_eq(scene.workers.living[id.slot], 0);
    ck_assert_uint_eq(scene.workers.released[id.slot], id.serial);
    ck_assert(!table_worker_ends(&scene.workers, id.slot)); /* by a second zone */
    ck_assert(zone_lock_is_past(&scene.table.locker, slot_incarnation(id)));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, entries_are_found_and_walked, 0, countof(layouts));
    tcase_add_loop_test(tcase, damage_ends_walks_and_finds, 0, countof(layouts));
    tcase_add_test(tcase, workers_begin_and_end);
}

TEST_MAIN("table", add_tests)
