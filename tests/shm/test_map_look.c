/* SPDX-License-Identifier: BSD-2-Clause */
/* The first look of a process at a map damaged by another process in a place not yet found: values
 * set from then on stay. */
#include "shm/map_private.h"
#include "shm/memory.h"
#include "shm/siphash.h"
#include "support/test.h"

#include <string.h>
#include <time.h>

#define CAPACITY 200
#define KEYS 90
#define OTHER 7  /* slot of the process that comes later */
#define FORGED 8 /* slot of a living process, forged in locks */
#define TRIALS 300
#define WRITES_MOST 400
#define RUN_MOST 64
#define NOW_MS UINT64_C(1000000000000)

static const struct shm_map_shape shape = { CAPACITY, 16, 32, 0 };

/* Replaces the C library's: a wait for a forged holder is pointless. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time;
    (void)left;
    return 0;
}

#include "shm/filled_map.h"

/* Another process's handle to the same map. */
static struct shm_map other_handle(const struct shm_map *map)
{
    struct shm_map other = *map;

    map_join(&other, OTHER, 5);
    return other;
}

static uint32_t shard_of(const struct shm_map *map, uint32_t key)
{
    return table_shard_of(&map->table, siphash(map->seed, &key, sizeof(key)));
}

static uint32_t bucket_of(const struct shm_map *map, uint32_t key)
{
    return table_bucket_of(&map->table, siphash(map->seed, &key, sizeof(key)));
}

/* The entry of an existing key. */
static uint32_t entry_of(const struct shm_map *map, uint32_t key)
{
    uint32_t i = shm_map_buckets(map, shard_of(map, key))[bucket_of(map, key)];

    while (memcmp(shm_map_entry_at(map, i)->bytes, &key, sizeof(key)) != 0)
        i = shm_map_entry_at(map, i)->next;
    return i;
}

static void break_link(struct shm_map *map, uint32_t key)
{
    shm_map_buckets(map, shard_of(map, key))[bucket_of(map, key)] = UINT32_MAX;
}

static void break_owner(struct shm_map *map, uint32_t key)
{
    *shm_map_owner(map, entry_of(map, key)) =
        (uint8_t)((shard_of(map, key) + 1) % map->table.shard_n + 1);
}

static void break_value_n(struct shm_map *map, uint32_t key)
{
    shm_map_entry_at(map, entry_of(map, key))->value_n = UINT32_MAX;
}

static void break_key(struct shm_map *map, uint32_t key)
{
    shm_map_entry_at(map, entry_of(map, key))->bytes[0] ^= 1;
}

/* The next write to any key of the shard goes to the entry of `key`. */
static void make_it_spare(struct shm_map *map, uint32_t key)
{
    map->shards[shard_of(map, key)].spare = entry_of(map, key);
}

static void exhaust_versions(struct shm_map *map, uint32_t key)
{
    map->shards[shard_of(map, key)].version = SHM_MAP_VERSION_MAX - 2;
}

static void miscount(struct shm_map *map, uint32_t key)
{
    map->shards[shard_of(map, key)].count = CAPACITY;
}

static void expire_never(struct shm_map *map, uint32_t key)
{
    shm_map_entry_at(map, entry_of(map, key))->expires_ms = 10;
}

static const struct {
    void (*damage)(struct shm_map *map, uint32_t key);
    bool empties;
    bool reads; /* the process reads first, else it writes */
} unmet[] = {
    { break_link, true, false },
    { break_link, true, true },
    { break_owner, true, false },
    { break_value_n, true, false },
    { break_value_n, true, true },
    { break_key, true, false },
    { make_it_spare, false, false },
    { exhaust_versions, true, false },
    { miscount, false, false },
    { miscount, false, true },
    { expire_never, false, false },
};

/* A late process loses none of its own values. */
START_TEST(damage_costs_only_what_was_there_before)
{
    struct shm_map *map = filled_map(), later = other_handle(map);
    uint32_t old = 0, new = KEYS, shard = shard_of(map, old);

    while (shard_of(map, new) != shard || bucket_of(map, new) == bucket_of(map, old))
        new ++;
    unmet[_i].damage(map, old);
    if (unmet[_i].reads)
        ck_assert_int_eq(get_key(&later, new), SHM_MAP_ABSENT);
    ck_assert_int_eq(later.mended.emptied + later.mended.rebuilt, unmet[_i].reads);
    ck_assert_int_eq(set_key(&later, new), SHM_MAP_OK);
    ck_assert_int_eq(later.mended.emptied, unmet[_i].empties);
    ck_assert_int_eq(later.mended.rebuilt, !unmet[_i].empties);
    ck_assert_int_eq(get_key(&later, old), unmet[_i].empties ? SHM_MAP_ABSENT : SHM_MAP_OK);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(set_key(&later, old), SHM_MAP_OK);
        ck_assert_int_eq(get_key(&later, new), SHM_MAP_OK);
    }
    shm_map_pool_suspect(&later, SHM_MAP_SUSPECT);
    ck_assert_int_eq(get_key(&later, new), SHM_MAP_OK);
    shm_map_sweep(&later, 20);
    map_check(&later);
    ck_assert_int_eq(get_key(&later, new), SHM_MAP_OK);
    ck_assert_int_eq(later.mended.emptied + later.mended.rebuilt, 1);
    check_room(&later, CAPACITY);
    map_destroy(&map);
}
END_TEST

static void free_beyond(struct shm_map *map)
{
    map->pool->free = UINT32_MAX;
}

static void free_and_in_use(struct shm_map *map)
{
    map->pool->free = 1;
}

static void used_beyond(struct shm_map *map)
{
    map->pool->used = UINT32_MAX;
}

static void lose_free(struct shm_map *map)
{
    map->pool->free = 0;
}

static void free_in_a_circle(struct shm_map *map)
{
    uint32_t first = map->pool->free;

    shm_map_entry_at(map, shm_map_entry_at(map, first)->next)->next = first;
}

static void use_all(struct shm_map *map)
{
    map->pool->used = map->table.entry_n;
}

static void use_none(struct shm_map *map)
{
    map->pool->used = map->pool->free = 0;
}

static void (*const pool_damages[])(struct shm_map *map) = {
    lose_free,
    free_in_a_circle,
    free_beyond,
    free_and_in_use,
    use_all,
    use_none,
    used_beyond,
};

START_TEST(a_damaged_pool_is_whole_once_it_is_used)
{
    struct shm_map *map = filled_map(), later;

    for (uint32_t key = 0; key < KEYS / 2; key++)
        ck_assert_int_eq(shm_map_delete(map, &key, sizeof(key), 1), SHM_MAP_OK);
    later = other_handle(map);
    pool_damages[_i](map);
    ck_assert_int_eq(set_key(&later, 0), SHM_MAP_OK);
    ck_assert_uint_eq(later.mended.rebuilt, 1);
    ck_assert_uint_eq(later.mended.emptied, 0);
    map_check(&later);
    check_room(&later, CAPACITY);
    ck_assert_uint_eq(later.mended.rebuilt, 1);
    map_destroy(&map);
}
END_TEST

/* A whole map is only read. */
START_TEST(a_look_changes_nothing)
{
    struct shm_map *map = filled_map(), later;
    size_t n = shm_map_kind.size(&shape);
    void *before = malloc(n);

    ck_assert_ptr_nonnull(before);
    shm_map_delete(map, "\1\0\0", 4, 1);
    later = other_handle(map);
    memcpy(before, map->header, n);
    ck_assert_uint_eq(shm_map_count(&later), KEYS - 1);
    ck_assert(!shm_map_pool_is_empty(&later));
    ck_assert_int_eq(memcmp(before, map->header, n), 0);
    ck_assert(later.pool_checked);
    ck_assert_uint_eq(later.mended.emptied + later.mended.rebuilt, 0);
    free(before);
    map_destroy(&map);
}
END_TEST

/* ---- Full by forged counts ---- */

static void forge_lock(struct shm_map *map, uint32_t shard)
{
    map->shards[shard].lock.word = UINT64_C(5) << 32 | FORGED;
}

/* Forges the counts of a full map; `shard` is the number of shards for the entries in use. */
static void forge_number(struct shm_map *map, uint32_t shard)
{
    if (shard == map->table.shard_n) {
        map->pool->used = map->table.entry_n;
        map->pool->free = 0;
    } else {
        map->shards[shard].count = UINT32_MAX;
        map->shards[shard].bytes = UINT64_MAX;
    }
}

static void forge_all(struct shm_map *map, bool locks)
{
    for (uint32_t shard = 0; shard <= map->table.shard_n; shard++) {
        forge_number(map, shard);
        if (locks && shard < map->table.shard_n)
            forge_lock(map, shard);
    }
}

/* Sets a key, later than any look of the process. */
static void check_that_it_sets(struct shm_map *map, uint32_t key)
{
    test_require(shm_map_set(map, &key, sizeof(key), NOW_MS, "", 0, 0, NULL) == SHM_MAP_OK);
}

/* Fails the test unless the map is, once the holder that was only forged has died. */
static void check_whole(struct shm_map *map)
{
    map_bury(map, FORGED, 5);
    map_check(map);
    if (map->page == 0)
        check_room(map, CAPACITY);
}

static const struct shm_map_shape forged_shapes[] = { { CAPACITY, 16, 32, 0 },
    { CAPACITY, 16, 32, CAPACITY + 1 } };

static struct shm_map *map_to_forge(int i)
{
    struct shm_map *map = map_create(&forged_shapes[i / 2]);

    for (uint32_t key = 0; key < KEYS; key++)
        check_that_it_sets(map, key);
    return map;
}

/* The count of a single shard, with the limiting number, and of all shards. */
START_TEST(a_process_that_comes_is_refused_nothing_by_forged_counts)
{
    struct shm_map *map = map_to_forge(_i), later;
    uint32_t shard_n = map->table.shard_n;

    for (uint32_t shard = 0; shard < shard_n; shard++) {
        forge_number(map, shard_n);
        forge_number(map, shard);
        if (_i % 2 == 1)
            forge_lock(map, shard);
        later = other_handle(map);
        check_that_it_sets(&later, KEYS + shard);
        ck_assert_uint_gt(later.mended.rebuilt + later.mended.taken, 0);
    }
    forge_all(map, _i % 2 == 1);
    later = other_handle(map);
    check_that_it_sets(&later, KEYS + shard_n);
    ck_assert_uint_eq(shm_map_count(&later), KEYS + shard_n + 1);
    ck_assert_uint_eq(later.mended.emptied, 0);
    check_whole(&later);
    map_destroy(&map);
}
END_TEST

/* A process that has looked through all, and has just looked for room, looks again after a further
 * death. */
START_TEST(a_death_has_forged_counts_looked_for)
{
    struct shm_map *map = map_to_forge(_i);

    for (uint32_t serial = 1; serial < 4; serial++) {
        forge_all(map, _i % 2 == 1);
        map->audited_ms = NOW_MS;
        map_bury(map, OTHER, serial);
        check_that_it_sets(map, KEYS + serial);
        ck_assert_uint_gt(map->mended.rebuilt + map->mended.taken, 0);
        ck_assert_uint_eq(shm_map_count(map), KEYS + serial);
        map->mended = (struct shm_map_mended) { 0 };
    }
    check_whole(map);
    map_destroy(&map);
}
END_TEST

/* Writes at random, half the times before the entries. */
static void write_at_random(struct shm_map *map, uint64_t *random)
{
    char *base = (char *)map->pool;
    size_t all = shm_map_kind.size(&map->shape) - segment_pages(shm_map_kind.header);

    for (uint32_t i = random_below(random, WRITES_MOST); i > 0; i--) {
        size_t most = random_below(random, 2) == 0 ? all : (size_t)(map->table.entries - base);
        char *to = base + random_below(random, (uint32_t)(most - RUN_MOST));
        uint32_t n = 1 + random_below(random, RUN_MOST), kind = random_below(random, 4);

        if (kind < 2)
            memset(to, kind == 0 ? 0 : 0xff, n);
        for (uint32_t j = 0; j < n && kind >= 2; j++)
            to[j] = (char)random_below(random, kind == 2 ? 256 : map->table.shard_n + 2);
    }
}

/* The next generation can set all keys, whether the damage was met before or not. */
START_TEST(what_was_written_at_random_ends_with_its_generation)
{
    uint64_t random = random_seed();

    for (int i = 0; i < TRIALS; i++) {
        struct shm_map *map = map_to_forge(2 * _i), witness = other_handle(map), later[2];

        write_at_random(map, &random);
        for (uint32_t key = 0; key < KEYS; key++) {
            get_key(&witness, key);
            set_key(&witness, key);
        }
        map_bury(map, 0, 1);
        set_key(&witness, 0);
        map_bury(map, OTHER, 5);
        for (uint32_t slot = 0; slot < 2; slot++) {
            later[slot] = *map;
            map_join(&later[slot], slot, 10);
        }
        for (uint32_t key = 0; key < CAPACITY / 2; key++)
            check_that_it_sets(&later[key % 2], key);
        map_destroy(&map);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, damage_costs_only_what_was_there_before, 0, (int)countof(unmet));
    tcase_add_loop_test(
        tcase, a_damaged_pool_is_whole_once_it_is_used, 0, (int)countof(pool_damages));
    tcase_add_test(tcase, a_look_changes_nothing);
    tcase_add_loop_test(tcase, a_process_that_comes_is_refused_nothing_by_forged_counts, 0, 4);
    tcase_add_loop_test(tcase, a_death_has_forged_counts_looked_for, 0, 4);
    tcase_add_loop_test(
        tcase, what_was_written_at_random_ends_with_its_generation, 0, (int)countof(forged_shapes));
}

TEST_MAIN("map_look", add_tests)
