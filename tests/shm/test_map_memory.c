/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps with a limit of memory, and pages per entry: long values, and the use and release of
 * memory. */
#include "os/memory.h"
#include "shm/map_private.h"
#include "shm/memory.h"
#include "support/test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MB (1u << 20)
#define NOW 1
#define KILLS 30

/* Eight megabytes, and the memory of the keys. */
static const struct shm_map_shape shape = { 200, 16, MB, 8 * 256 + 32 };

static char long_value[SHM_MAP_VALUE_MAX], copy[SHM_MAP_VALUE_MAX];

static enum shm_map_status set_long(struct shm_map *map, uint32_t key, size_t n)
{
    return shm_map_set(map, &key, sizeof(key), NOW, long_value, n, 0, NULL);
}

static enum shm_map_status delete_key(struct shm_map *map, uint32_t key)
{
    return shm_map_delete(map, &key, sizeof(key), NOW);
}

/* Resident bytes of the map's memory. */
static size_t resident(const struct shm_map *map)
{
    static unsigned char pages[1 << 19];
    size_t size = shm_map_kind.size(&map->shape), n = 0, page = (size_t)sysconf(_SC_PAGESIZE);

    ck_assert_uint_le(size / page, sizeof(pages));
    ck_assert_int_eq(mincore(map->header, size, pages), 0);
    for (size_t i = 0; i < size / page; i++)
        n += pages[i] & 1;
    return n * page;
}

/* Whether this system takes pages back. */
static bool gives_back(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = shared_memory(page);
    bool is_back;

    memory[0] = 'x';
    os_segment_release(memory, page);
    is_back = memory[0] == 0;
    munmap(memory, page);
    return is_back;
}

START_TEST(pages_are_given_back)
{
    struct shm_map *map = map_create(&shape);
    size_t few = resident(map) + 64 * 4096;

    for (int round = 0; round < 3; round++) {
        for (uint32_t key = 0; key < 8; key++)
            ck_assert_int_eq(set_long(map, key, MB), SHM_MAP_OK);
        ck_assert_uint_ge(resident(map), 8 * MB);
        for (uint32_t key = 0; key < 8; key++)
            ck_assert_int_eq(
                key % 2 == 0 ? set_long(map, key, 10) : delete_key(map, key), SHM_MAP_OK);
        if (gives_back())
            ck_assert_uint_le(resident(map), few);
    }
    map_check(map);
    map_destroy(&map);
}
END_TEST

/* A new state of a key needs memory beside the old state */
START_TEST(memory_is_a_limit)
{
    struct shm_map *map = map_create(&shape);
    uint32_t key = 7;

    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(set_long(map, i, MB - 100), SHM_MAP_OK);
    ck_assert_int_eq(set_long(map, 8, MB - 100), SHM_MAP_FULL);
    ck_assert_int_eq(set_long(map, 0, MB - 100), SHM_MAP_FULL);
    ck_assert_int_eq(set_long(map, 0, 10), SHM_MAP_OK);
    ck_assert_int_eq(set_long(map, 8, MB - 100), SHM_MAP_OK);
    ck_assert_int_eq(shm_map_append(map, &key, sizeof(key), NOW, "", 1, 0), SHM_MAP_FULL);
    ck_assert_int_eq(delete_key(map, 1), SHM_MAP_OK);
    ck_assert_int_eq(shm_map_append(map, &key, sizeof(key), NOW, "", 1, 0), SHM_MAP_OK);
    ck_assert_int_eq(set_long(map, 1, MB + 1), SHM_MAP_TOO_LARGE);
    ck_assert_uint_eq(shm_map_count(map), 8);
    map_check(map);
    for (uint32_t i = 0; i < 9; i++)
        delete_key(map, i);
    check_room(map, shape.capacity);
    map_destroy(&map);
}
END_TEST

START_TEST(what_has_expired_makes_room)
{
    struct shm_map *map = map_create(&shape);

    for (uint32_t key = 0; key < 8; key++)
        ck_assert_int_eq(
            shm_map_set(map, &key, sizeof(key), NOW, long_value, MB, NOW + 1, NULL), SHM_MAP_OK);
    ck_assert_int_eq(set_long(map, 9, MB), SHM_MAP_FULL);
    for (uint32_t key = 10; key < 18; key++)
        ck_assert_int_eq(
            shm_map_set(map, &key, sizeof(key), NOW + 1, long_value, MB, 0, NULL), SHM_MAP_OK);
    map_check(map);
    map_destroy(&map);
}
END_TEST

START_TEST(the_longest_value_is_read_and_made_longer)
{
    static const struct shm_map_shape great = { 4, 16, SHM_MAP_VALUE_MAX, 3 * 4096 + 64 };
    struct shm_map_item item = { .value = copy, .room = sizeof(copy) };
    struct shm_map *map = map_create(&great);
    size_t n = SHM_MAP_VALUE_MAX - 1;

    for (size_t i = 0; i < sizeof(long_value); i++)
        long_value[i] = (char)(i * 7 + i / 4096);
    ck_assert_int_eq(shm_map_set(map, "k", 1, NOW, long_value, n, 0, NULL), SHM_MAP_OK);
    ck_assert_int_eq(shm_map_append(map, "k", 1, NOW, long_value + n, 1, 0), SHM_MAP_OK);
    ck_assert_int_eq(shm_map_append(map, "k", 1, NOW, "x", 1, 0), SHM_MAP_TOO_LARGE);
    ck_assert_int_eq(shm_map_get(map, "k", 1, NOW, &item), SHM_MAP_OK);
    ck_assert_uint_eq(item.n, sizeof(copy));
    ck_assert_int_eq(memcmp(copy, long_value, sizeof(copy)), 0);
    map_check(map);
    map_destroy(&map);
}
END_TEST

/* Two configurations with different limits share the pages. */
START_TEST(a_map_can_be_given_another_memory)
{
    struct shm_map_shape other = shape;
    struct shm_map *map = map_create(&shape), larger;

    other.memory = 2 * shape.memory;
    ck_assert(shm_map_kind.is(map->header, &other));
    shm_map_open(&larger, map->header, &other, (struct slot_id) { 1, 1 });
    for (uint32_t key = 0; key < 8; key++)
        ck_assert_int_eq(set_long(map, key, MB), SHM_MAP_OK);
    ck_assert_int_eq(set_long(map, 8, MB), SHM_MAP_FULL);
    for (uint32_t key = 8; key < 16; key++)
        ck_assert_int_eq(set_long(&larger, key, MB), SHM_MAP_OK);
    ck_assert_int_eq(set_long(&larger, 16, MB), SHM_MAP_FULL);
    ck_assert_int_eq(set_long(map, 16, 1), SHM_MAP_FULL);
    ck_assert_uint_eq(shm_map_count(map), 16);
    for (uint32_t key = 0; key < 9; key++)
        ck_assert_int_eq(delete_key(&larger, key), SHM_MAP_OK);
    ck_assert_int_eq(set_long(map, 16, MB), SHM_MAP_OK);
    map_check(map);
    map_destroy(&map);
}
END_TEST

START_TEST(a_map_of_no_or_too_little_memory_is_another)
{
    struct shm_map_shape other = shape;
    struct shm_map *map = map_create(&shape);

    ck_assert(shm_map_kind.is(map->header, &shape));
    other.memory = 0;
    ck_assert(!shm_map_kind.is(map->header, &other));
    other.memory = 10; /* no value of this length would fit */
    ck_assert_uint_eq(shm_map_kind.size(&other), 0);
    map_destroy(&map);
}
END_TEST

/* The shards' counts of used memory are overwritten. */
START_TEST(damaged_counts_are_made_anew)
{
    struct shm_map *map = map_create(&shape);

    ck_assert_int_eq(set_long(map, 1, MB), SHM_MAP_OK);
    for (uint32_t i = 0; i < map->table.shard_n; i++)
        map->shards[i].bytes = UINT64_MAX - i;
    map->audited_ms = 0;
    map->audit_wait_ms = 0;
    ck_assert_int_eq(set_long(map, 2, MB), SHM_MAP_OK);
    ck_assert_int_eq(set_long(map, 1, MB), SHM_MAP_OK);
    map_check(map);
    map_destroy(&map);
}
END_TEST

/* A value is a repeated byte, and its length determines the byte. */
static void write_values(struct shm_map *map, uint64_t random)
{
    for (;;) {
        uint32_t key = random_below(&random, 6), n = 1 + random_below(&random, MB);

        memset(long_value, (int)(n % 251), n);
        if (random_below(&random, 4) == 0)
            delete_key(map, key);
        else if (set_long(map, key, n) == SHM_MAP_TOO_LARGE)
            _exit(1);
    }
}

static void check_value(struct shm_map *map, uint32_t key)
{
    struct shm_map_item item = { .value = copy, .room = sizeof(copy) };

    if (shm_map_get(map, &key, sizeof(key), NOW, &item) != SHM_MAP_OK)
        return;
    for (size_t i = 0; i < item.n; i++)
        test_require((unsigned char)copy[i] == item.n % 251);
}

START_TEST(a_killed_writer_of_long_values_takes_nothing_with_it)
{
    struct shm_map *map = map_create(&shape);
    pid_t pids[2];

    for (uint32_t kill = 0; kill < KILLS; kill++) {
        for (uint32_t i = 0; i < 2; i++)
            if ((pids[i] = fork_child()) == 0) {
                map_join(map, 1 + i, 1 + kill);
                write_values(map, 2 * kill + i);
            }
        for (uint32_t key = 0; key < 6; key++)
            check_value(map, key);
        for (uint32_t i = 0; i < 2; i++) {
            kill_child(pids[i]);
            map_bury(map, 1 + i, 1 + kill);
        }
        for (uint32_t key = 0; key < 6; key++)
            check_value(map, key);
        map_check(map);
    }
    for (uint32_t key = 0; key < 6; key++)
        delete_key(map, key);
    map_check(map);
    for (uint32_t key = 0; key < 8; key++)
        ck_assert_int_eq(set_long(map, key, MB), SHM_MAP_OK);
    ck_assert_uint_eq(map->mended.emptied + map->mended.rebuilt, 0);
    map_destroy(&map);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, pages_are_given_back);
    tcase_add_test(tcase, memory_is_a_limit);
    tcase_add_test(tcase, what_has_expired_makes_room);
    tcase_add_test(tcase, the_longest_value_is_read_and_made_longer);
    tcase_add_test(tcase, a_map_can_be_given_another_memory);
    tcase_add_test(tcase, a_map_of_no_or_too_little_memory_is_another);
    tcase_add_test(tcase, damaged_counts_are_made_anew);
    tcase_add_test(tcase, a_killed_writer_of_long_values_takes_nothing_with_it);
}

TEST_MAIN("map_memory", add_tests)
