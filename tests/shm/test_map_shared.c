/* SPDX-License-Identifier: BSD-2-Clause */
/* Several processes at once, without deaths. */
#include "shm/map_private.h"
#include "shm/memory.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 4
#define ROUNDS 20000
#define KEYS 5

static void add_up(struct shm_map *map, int worker)
{
    map_join(map, 1 + (uint32_t)worker, 1);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t key = (uint32_t)i % KEYS;

        if (shm_map_add(map, &key, sizeof(key), 1, i, NULL) != SHM_MAP_OK)
            _exit(1);
    }
    _exit(0);
}

START_TEST(sums_are_exact)
{
    const struct shm_map_shape shape = { KEYS, 4, 8, 0 };
    struct shm_map *map = map_create(&shape);
    int64_t expected[KEYS] = { 0 };
    pid_t pids[WORKERS];

    for (int w = 0; w < WORKERS; w++)
        if ((pids[w] = fork_child()) == 0)
            add_up(map, w);
    for (int w = 0; w < WORKERS; w++)
        wait_for_child(pids[w]);
    for (int i = 0; i < ROUNDS; i++)
        expected[i % KEYS] += (int64_t)i * WORKERS;
    for (uint32_t key = 0; key < KEYS; key++) {
        int64_t sum;

        ck_assert_int_eq(shm_map_add(map, &key, sizeof(key), 1, 0, &sum), SHM_MAP_OK);
        ck_assert_int_eq(sum, expected[key]);
    }
    ck_assert_uint_eq(shm_map_count(map), KEYS);
    map_destroy(&map);
}
END_TEST

/* Adds 1, like a caller with a state of his own in a value. */
static void count_up(struct shm_map *map, int worker)
{
    map_join(map, 1 + (uint32_t)worker, 1);
    for (int i = 0; i < ROUNDS / 4;) {
        uint32_t n = 0;
        struct shm_map_item item = { .value = &n, .room = sizeof(n) };
        enum shm_map_status status = shm_map_get(map, "n", 1, 1, &item);

        if (status == SHM_MAP_ABSENT)
            item.version = 0;
        else if (status != SHM_MAP_OK)
            _exit(1);
        n++;
        status = shm_map_replace(map, "n", 1, 1, item.version, &n, sizeof(n), 0, NULL);
        if (status == SHM_MAP_OK)
            i++;
        else if (status != SHM_MAP_CHANGED)
            _exit(2);
    }
    _exit(0);
}

START_TEST(nobody_replaces_what_he_has_not_seen)
{
    const struct shm_map_shape shape = { 2, 4, 8, 0 };
    struct shm_map *map = map_create(&shape);
    pid_t pids[WORKERS];
    uint32_t n = 0;
    struct shm_map_item item = { .value = &n, .room = sizeof(n) };

    for (int w = 0; w < WORKERS; w++)
        if ((pids[w] = fork_child()) == 0)
            count_up(map, w);
    for (int w = 0; w < WORKERS; w++)
        wait_for_child(pids[w]);
    ck_assert_int_eq(shm_map_get(map, "n", 1, 1, &item), SHM_MAP_OK);
    ck_assert_uint_eq(n, WORKERS * (ROUNDS / 4));
    map_destroy(&map);
}
END_TEST

#define VALUE 600

/* Bytes of a value are equal, and its length also encodes the value. */
static void write_values(struct shm_map *map, int writer)
{
    char value[VALUE];

    map_join(map, 1 + (uint32_t)writer, 1);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t key = (uint32_t)i % 2;
        int c = (i * WORKERS + writer) % 200;

        memset(value, c, sizeof(value));
        if (i % 50 == 49)
            shm_map_delete(map, &key, sizeof(key), 1);
        else if (shm_map_set(map, &key, sizeof(key), 1, value, (size_t)(VALUE - c), 0, NULL) !=
                 SHM_MAP_OK)
            _exit(1);
    }
    _exit(0);
}

static void read_values(struct shm_map *map, int reader, _Atomic int *done)
{
    unsigned char value[VALUE];
    uint64_t seen[2] = { 0, 0 };

    map_join(map, 11 + (uint32_t)reader, 1);
    for (uint32_t i = 0; !*done || i < 2; i++) {
        uint32_t key = i % 2;
        struct shm_map_item item = { .value = value, .room = sizeof(value) };
        enum shm_map_status status = shm_map_get(map, &key, sizeof(key), 1, &item);

        if (status == SHM_MAP_ABSENT)
            continue;
        if (status != SHM_MAP_OK || item.n != (size_t)(VALUE - value[0]))
            _exit(1);
        for (size_t j = 0; j < item.n; j++)
            if (value[j] != value[0])
                _exit(2);
        if (item.version < seen[key]) /* time does not go back */
            _exit(3);
        seen[key] = item.version;
    }
    _exit(0);
}

START_TEST(no_value_is_seen_half_written)
{
    const struct shm_map_shape shape = { 2, 4, VALUE, 0 };
    struct shm_map *map = map_create(&shape);
    _Atomic int *done = shared_memory(sizeof(*done));
    pid_t readers[2], writers[2];

    for (int i = 0; i < 2; i++)
        if ((readers[i] = fork_child()) == 0)
            read_values(map, i, done);
    for (int i = 0; i < 2; i++)
        if ((writers[i] = fork_child()) == 0)
            write_values(map, i);
    for (int i = 0; i < 2; i++)
        wait_for_child(writers[i]);
    *done = 1;
    for (int i = 0; i < 2; i++)
        wait_for_child(readers[i]);
    ck_assert_uint_le(shm_map_count(map), 2);
    map_destroy(&map);
}
END_TEST

/* More keys than fit, in shards with borrowed entries; some expire. */
static void churn_keys(struct shm_map *map, uint64_t seed)
{
    map_join(map, 1 + (uint32_t)seed, 1);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t key = random_below(&seed, 60);
        uint64_t now = 1 + (uint64_t)i, expires = random_below(&seed, 2) == 0 ? now + 5 : 0;
        enum shm_map_status status;

        if (random_below(&seed, 3) == 0)
            status = shm_map_delete(map, &key, sizeof(key), now);
        else
            status = shm_map_set(map, &key, sizeof(key), now, &key, sizeof(key), expires, NULL);
        if (status == SHM_MAP_OK || status == SHM_MAP_ABSENT || status == SHM_MAP_FULL)
            continue;
        _exit(1);
    }
    _exit(0);
}

START_TEST(no_entry_is_lost_between_the_shards)
{
    const struct shm_map_shape shape = { 40, 4, 8, 0 };
    struct shm_map *map = map_create(&shape);
    uint32_t there = 0;
    pid_t pids[WORKERS];

    ck_assert_uint_gt(map->table.shard_n, 1);
    for (int w = 0; w < WORKERS; w++)
        if ((pids[w] = fork_child()) == 0)
            churn_keys(map, (uint64_t)w);
    for (int w = 0; w < WORKERS; w++)
        wait_for_child(pids[w]);
    shm_map_sweep(map, ROUNDS + 10);
    for (uint32_t key = 0; key < 60; key++) {
        uint32_t value = 0;
        struct shm_map_item item = { .value = &value, .room = sizeof(value) };

        if (shm_map_get(map, &key, sizeof(key), ROUNDS + 10, &item) != SHM_MAP_OK)
            continue;
        ck_assert_uint_eq(value, key);
        there++;
    }
    ck_assert_uint_eq(shm_map_count(map), there);
    check_room(map, shape.capacity);
    map_destroy(&map);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, sums_are_exact);
    tcase_add_test(tcase, nobody_replaces_what_he_has_not_seen);
    tcase_add_test(tcase, no_value_is_seen_half_written);
    tcase_add_test(tcase, no_entry_is_lost_between_the_shards);
}

TEST_MAIN("map_shared", add_tests)
