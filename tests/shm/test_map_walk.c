/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks through a map, unchanged and under changes by other workers. */
#include "shm/map_private.h"
#include "shm/memory.h"
#include "support/test.h"

#include <string.h>

#define KEYS 300
#define NOW 1

static const struct shm_map_shape shape = { 2 * KEYS, 8, 32, 0 };

#include "shm/filled_map.h"

/* How often a walk has met the keys. */
struct met {
    unsigned times[2 * KEYS];
    unsigned n, more;
};

/* Goes one step; false at the end. */
static bool step(struct shm_map *map, struct shm_map_cursor *cursor, struct met *met)
{
    uint32_t number = UINT32_MAX, value[8] = { UINT32_MAX };
    struct shm_map_item key = { .value = &number, .room = sizeof(number) };
    struct shm_map_item item = { .value = value, .room = sizeof(value) };

    switch (shm_map_next(map, cursor, NOW, &key, &item)) {
    case SHM_MAP_OK:
        test_require(key.n == sizeof(number) && number < 2 * KEYS);
        test_require(item.n >= sizeof(number) && value[0] == number && item.version != 0);
        met->times[number]++;
        met->n++;
        return true;
    case SHM_MAP_MORE:
        met->more++;
        return true;
    default:
        return false;
    }
}

static void check_met(const struct met *met, uint32_t from, uint32_t to, unsigned times)
{
    for (uint32_t key = from; key < to; key++)
        test_require(met->times[key] == times);
}

START_TEST(every_key_is_met_once)
{
    struct shm_map *map = filled_map();
    struct shm_map_cursor cursor = { 0 };

    for (int walk = 0; walk < 2; walk++) { /* at the end the cursor is at the beginning */
        struct met met = { .n = 0 };

        while (step(map, &cursor, &met))
            ;
        ck_assert_uint_eq(met.n, KEYS);
        check_met(&met, 0, KEYS, 1);
    }
    map_destroy(&map);
}
END_TEST

START_TEST(an_empty_map_ends_at_once)
{
    struct shm_map *map = map_create(&shape);
    struct shm_map_cursor cursor = { 0 };
    struct met met = { .n = 0 };

    ck_assert(!step(map, &cursor, &met));
    map_destroy(&map);
}
END_TEST

/* Between two steps a third of the keys is set again, a second third is deleted and set, and the
 * rest come and go: the first third is met exactly once, and nothing more often than it came. */
START_TEST(a_walk_stands_changes)
{
    struct shm_map *map = filled_map();
    struct shm_map_cursor cursor = { 0 };
    struct met met = { .n = 0 };
    uint64_t random = 1;

    while (step(map, &cursor, &met))
        for (int i = 0; i < 5; i++) {
            uint32_t key = random_below(&random, 2 * KEYS);

            if (key >= 2 * KEYS / 3)
                shm_map_delete(map, &key, sizeof(key), NOW);
            if (key % 2 == 0 || key < 2 * KEYS / 3)
                test_require(shm_map_append(map, &key, sizeof(key), NOW, &key, 0,
                                 SHM_MAP_KEEP_EXPIRY) != SHM_MAP_FULL);
            set_key(map, key);
        }
    check_met(&met, 0, KEYS / 3, 1);
    for (uint32_t key = 0; key < 2 * KEYS; key++) /* an order has a place for each */
        test_require(met.times[key] <= 1);
    map_destroy(&map);
}
END_TEST

START_TEST(what_has_expired_is_left_out)
{
    struct shm_map *map = map_create(&shape);
    struct shm_map_cursor cursor = { 0 };
    struct met met = { .n = 0 };

    for (uint32_t key = 0; key < KEYS; key++)
        shm_map_set(map, &key, sizeof(key), 0, &key, sizeof(key), key % 2, NULL);
    while (step(map, &cursor, &met))
        ;
    ck_assert_uint_eq(met.n, KEYS / 2);
    for (uint32_t key = 0; key < KEYS; key++)
        test_require(met.times[key] == (key % 2 == 0));
    map_destroy(&map);
}
END_TEST

/* A call does not look through a great map for its only key. */
START_TEST(a_call_has_bounds)
{
    static const struct shm_map_shape great = { 1u << 20, 8, 32, 0 };
    struct shm_map *map = map_create(&great);
    struct shm_map_cursor cursor = { 0 };
    struct met met = { .n = 0 };

    set_key(map, 7);
    while (step(map, &cursor, &met))
        ;
    ck_assert_uint_eq(met.n, 1);
    ck_assert_uint_ge(met.more, 16);
    ck_assert_uint_le(met.more, 200);
    map_destroy(&map);
}
END_TEST

/* Keys with the same hash differ in a further byte. */
START_TEST(keys_of_one_hash_are_met_once_each)
{
    static const struct shm_map_shape small = { 8, 8, 32, 0 };
    struct shm_map *map = map_create(&small);
    struct shm_map_cursor cursor = { 0 };
    struct met met = { .n = 0 };
    uint32_t index = 0;

    for (uint32_t key = 0; key < 8; key++)
        test_require(set_key(map, key) == SHM_MAP_OK);
    for (uint32_t i = 0; i < map->table.bucket_n; i++)
        for (uint32_t first = shm_map_buckets(map, 0)[i]; first != 0; first = index) {
            index = shm_map_entry_at(map, first)->next;
            if (index != 0)
                shm_map_entry_at(map, index)->hash = shm_map_entry_at(map, first)->hash;
        }
    while (step(map, &cursor, &met))
        ;
    ck_assert_uint_eq(met.n, 8);
    check_met(&met, 0, 8, 1);
    map_destroy(&map);
}
END_TEST

START_TEST(a_key_may_be_longer_than_the_room)
{
    struct shm_map *map = map_create(&shape);
    struct shm_map_cursor cursor = { 0 };
    char part[3] = "";
    struct shm_map_item key = { .value = part, .room = 2 }, item = { .room = 0 };

    shm_map_set(map, "abcd", 4, NOW, "value", 5, 0, NULL);
    ck_assert_int_eq(shm_map_next(map, &cursor, NOW, &key, &item), SHM_MAP_TOO_LARGE);
    ck_assert_str_eq(part, "ab");
    ck_assert_uint_eq(key.n, 4);
    ck_assert_uint_eq(item.n, 5);
    ck_assert_int_eq(shm_map_next(map, &cursor, NOW, &key, &item), SHM_MAP_ABSENT);
    ck_assert_uint_eq(key.n + item.n + item.version, 0);
    map_destroy(&map);
}
END_TEST

/* A forged cursor leads nowhere outside the map. */
START_TEST(any_cursor_comes_to_the_end)
{
    struct shm_map *map = filled_map();
    uint64_t random = 3;

    for (int i = 0; i < 100; i++) {
        struct shm_map_cursor cursor = { next_random(&random), next_random(&random) };
        struct met met = { .n = 0 };

        while (step(map, &cursor, &met))
            test_require(met.n <= KEYS);
    }
    map_destroy(&map);
}
END_TEST

START_TEST(damage_ends_no_walk)
{
    struct shm_map *map = filled_map();
    struct shm_map_cursor cursor = { 0 };
    struct met met = { .n = 0 };

    for (int i = 0; i < 20; i++)
        test_require(step(map, &cursor, &met));
    for (uint32_t i = 0; i < map->table.shard_n * map->table.bucket_n; i++)
        shm_map_buckets(map, 0)[i] = i % 2 == 0 ? UINT32_MAX : 1 + i % map->table.entry_n;
    while (step(map, &cursor, &met))
        test_require(met.n <= KEYS);
    ck_assert_uint_gt(map->mended.emptied, 0);
    for (uint32_t key = 0; key < KEYS; key++)
        test_require(set_key(map, key) == SHM_MAP_OK && get_key(map, key) == SHM_MAP_OK);
    map_destroy(&map);
}
END_TEST

/* Two children change a part of the keys as fast as they can. */
START_TEST(keys_that_stay_are_met_once_while_others_write)
{
    struct shm_map *map = filled_map();
    pid_t pids[2];

    for (uint32_t i = 0; i < 2; i++)
        if ((pids[i] = fork_child()) == 0) {
            uint64_t random = i;

            map_join(map, 1 + i, 1);
            for (;;) {
                uint32_t key = random_below(&random, 2 * KEYS);

                if (key % 2 == 1)
                    shm_map_delete(map, &key, sizeof(key), NOW);
                if (random_below(&random, 2) == 0 || key % 2 == 0)
                    set_key(map, key);
            }
        }
    for (int walk = 0; walk < 200; walk++) {
        struct shm_map_cursor cursor = { 0 };
        struct met met = { .n = 0 };

        while (step(map, &cursor, &met))
            ;
        for (uint32_t key = 0; key < KEYS; key += 2)
            test_require(met.times[key] == 1);
        for (uint32_t key = 1; key < 2 * KEYS; key += 2)
            test_require(met.times[key] <= 1);
    }
    for (uint32_t i = 0; i < 2; i++)
        kill_child(pids[i]);
    map_destroy(&map);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_key_is_met_once);
    tcase_add_test(tcase, an_empty_map_ends_at_once);
    tcase_add_test(tcase, a_walk_stands_changes);
    tcase_add_test(tcase, what_has_expired_is_left_out);
    tcase_add_test(tcase, a_call_has_bounds);
    tcase_add_test(tcase, keys_of_one_hash_are_met_once_each);
    tcase_add_test(tcase, a_key_may_be_longer_than_the_room);
    tcase_add_test(tcase, any_cursor_comes_to_the_end);
    tcase_add_test(tcase, damage_ends_no_walk);
    tcase_add_test(tcase, keys_that_stay_are_met_once_while_others_write);
}

TEST_MAIN("map_walk", add_tests)
