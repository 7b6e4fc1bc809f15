/* SPDX-License-Identifier: BSD-2-Clause */
/* The first look of a process at a map that another one has damaged where nobody has met it yet:
 * what is set from then on stays. */
#include "shm/map_private.h"
#include "shm/memory.h"
#include "shm/siphash.h"
#include "support/test.h"

#include <string.h>

#define CAPACITY 200
#define KEYS 90
#define OTHER 7 /* slot of the process that comes later */

static const struct shm_map_shape shape = { CAPACITY, 16, 32, 0 };

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
    return shm_map_shard_of(map, siphash(map->seed, &key, sizeof(key)));
}

static uint32_t bucket_of(const struct shm_map *map, uint32_t key)
{
    return shm_map_bucket_of(map, siphash(map->seed, &key, sizeof(key)));
}

/* The entry of a key that is there. */
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
        (uint8_t)((shard_of(map, key) + 1) % map->shard_n + 1);
}

static void break_value_n(struct shm_map *map, uint32_t key)
{
    shm_map_entry_at(map, entry_of(map, key))->value_n = UINT32_MAX;
}

static void break_key(struct shm_map *map, uint32_t key)
{
    shm_map_entry_at(map, entry_of(map, key))->bytes[0] ^= 1;
}

/* The next write to any key of the shard goes where this one is. */
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

/* A process that comes later loses nothing that it sets itself. */
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
    shm_map_repair_all(&later, SHM_MAP_SUSPECT);
    ck_assert_int_eq(get_key(&later, new), SHM_MAP_OK);
    shm_map_sweep(&later, 20);
    shm_map_check(&later);
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
    map->pool->used = map->entry_n;
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
    shm_map_check(&later);
    check_room(&later, CAPACITY);
    ck_assert_uint_eq(later.mended.rebuilt, 1);
    map_destroy(&map);
}
END_TEST

/* A whole map is only read. */
START_TEST(a_look_changes_nothing)
{
    struct shm_map *map = filled_map(), later;
    size_t n = shm_map_size(&shape);
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

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, damage_costs_only_what_was_there_before, 0, (int)countof(unmet));
    tcase_add_loop_test(
        tcase, a_damaged_pool_is_whole_once_it_is_used, 0, (int)countof(pool_damages));
    tcase_add_test(tcase, a_look_changes_nothing);
}

TEST_MAIN("map_look", add_tests)
