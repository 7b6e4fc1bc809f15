/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of a map, by a single process. */
#include "shm/map_private.h"
#include "shm/memory.h"
#include "support/test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEEP SHM_MAP_KEEP_EXPIRY

static const struct shm_map_shape small = { .capacity = 4, .key_max = 16, .value_max = 24, 0 };

static enum shm_map_status set_key(
    struct shm_map *map, const char *key, const char *value, uint64_t now, uint64_t expires)
{
    return shm_map_set(map, key, strlen(key), now, value, strlen(value), expires, NULL);
}

static enum shm_map_status replace_key(
    struct shm_map *map, const char *key, uint64_t expected, const char *value, uint64_t *version)
{
    return shm_map_replace(map, key, strlen(key), 1, expected, value, strlen(value), 0, version);
}

static enum shm_map_status get_key(
    struct shm_map *map, const char *key, uint64_t now, struct shm_map_item *item)
{
    static char room[64];

    memset(room, 0, sizeof(room));
    *item = (struct shm_map_item) { .value = room, .room = sizeof(room) };
    return shm_map_get(map, key, strlen(key), now, item);
}

/* NULL: it must be absent. */
static void expect_value(struct shm_map *map, const char *key, uint64_t now, const char *value)
{
    struct shm_map_item item;
    enum shm_map_status status = get_key(map, key, now, &item);

    ck_assert_int_eq(status, value == NULL ? SHM_MAP_ABSENT : SHM_MAP_OK);
    if (value == NULL)
        return;
    ck_assert_str_eq(item.value, value);
    ck_assert_uint_eq(item.n, strlen(value));
    ck_assert_uint_ne(item.version, 0);
}

static uint64_t version_of(struct shm_map *map, const char *key)
{
    struct shm_map_item item;

    ck_assert_int_eq(get_key(map, key, 1, &item), SHM_MAP_OK);
    return item.version;
}

static const struct {
    struct shm_map_shape shape;
    bool can_be;
} shapes[] = {
    { { 1, 1, 0, 0 }, true },
    { { 0, 1, 0, 0 }, false },
    { { 1, 0, 0, 0 }, false },
    { { 1, 65535, 16777216, 0 }, true },
    { { 1, 65536, 0, 0 }, false },
    { { 1, 1, 16777217, 0 }, false },
    { { UINT32_MAX, 1, 0, 0 }, false },
    { { 1073741824, 1, 0, 0 }, sizeof(size_t) > 4 },
    { { 1073741825, 1, 0, 0 }, false },
    { { 1073741824, 65535, 16777216, 0 }, sizeof(size_t) > 4 },
    { { UINT32_MAX, UINT32_MAX, UINT32_MAX, 0 }, false },
    { { 1, 1, 4000, 1 }, true },
    { { 1, 1, 4096, 1 }, false },
};

START_TEST(some_shapes_cannot_be)
{
    size_t size = shm_map_kind.size(&shapes[_i].shape);

    ck_assert_int_eq(size != 0, shapes[_i].can_be);
    if (size != 0)
        ck_assert_uint_ge(size, (uint64_t)shapes[_i].shape.capacity *
                                    (shapes[_i].shape.key_max + shapes[_i].shape.value_max));
}
END_TEST

START_TEST(it_knows_its_shape)
{
    struct shm_map *map = map_create(&small);

    ck_assert(shm_map_kind.is(map->header, &small));
    ck_assert(shm_map_kind.is(map->header, &(struct shm_map_shape) { 32, 16, 24, 0 }));
    ck_assert(!shm_map_kind.is(map->header, &(struct shm_map_shape) { 33, 16, 24, 0 }));
    ck_assert(!shm_map_kind.is(map->header, &(struct shm_map_shape) { 4, 16, 24, 100 }));
    ck_assert(!shm_map_kind.is(map->header, &(struct shm_map_shape) { 4, 15, 24, 0 }));
    ck_assert(!shm_map_kind.is(map->header, &(struct shm_map_shape) { 4, 16, 23, 0 }));
    map->header->revision++;
    ck_assert(!shm_map_kind.is(map->header, &small));
    map_destroy(&map);
}
END_TEST

START_TEST(what_was_set_is_there_until_it_is_deleted)
{
    struct shm_map *map = map_create(&small);

    expect_value(map, "a", 1, NULL);
    ck_assert_int_eq(set_key(map, "a", "one", 1, 0), SHM_MAP_OK);
    ck_assert_int_eq(set_key(map, "b", "two", 1, 0), SHM_MAP_OK);
    expect_value(map, "a", 1, "one");
    expect_value(map, "b", 1, "two");
    expect_value(map, "", 1, NULL);
    ck_assert_int_eq(set_key(map, "a", "another one", 1, 0), SHM_MAP_OK);
    ck_assert_int_eq(set_key(map, "a", "", 1, 0), SHM_MAP_OK);
    expect_value(map, "a", 1, "");
    expect_value(map, "b", 1, "two");
    ck_assert_uint_eq(shm_map_count(map), 2);
    ck_assert_int_eq(shm_map_delete(map, "a", 1, 1), SHM_MAP_OK);
    ck_assert_int_eq(shm_map_delete(map, "a", 1, 1), SHM_MAP_ABSENT);
    expect_value(map, "a", 1, NULL);
    expect_value(map, "b", 1, "two");
    ck_assert_uint_eq(shm_map_count(map), 1);
    check_room(map, small.capacity);
    map_destroy(&map);
}
END_TEST

START_TEST(keys_are_bytes)
{
    static const struct {
        const char *bytes;
        size_t n;
    } keys[] = { { "", 0 }, { "\0", 1 }, { "\0\0", 2 }, { "a\0b", 3 }, { "a\0c", 3 }, { "a", 1 } };
    const struct shm_map_shape shape = { 8, 4, 8, 0 };
    struct shm_map *map = map_create(&shape);

    for (uint32_t i = 0; i < countof(keys); i++)
        ck_assert_int_eq(
            shm_map_set(map, keys[i].bytes, keys[i].n, 1, &i, sizeof(i), 0, NULL), SHM_MAP_OK);
    ck_assert_uint_eq(shm_map_count(map), countof(keys));
    for (uint32_t i = 0; i < countof(keys); i++) {
        uint32_t value = UINT32_MAX;
        struct shm_map_item item = { .value = &value, .room = sizeof(value) };

        ck_assert_int_eq(shm_map_get(map, keys[i].bytes, keys[i].n, 1, &item), SHM_MAP_OK);
        ck_assert_uint_eq(value, i);
    }
    map_destroy(&map);
}
END_TEST

START_TEST(versions_tell_every_state_from_every_other)
{
    struct shm_map *map = map_create(&small);
    uint64_t first, second, third;

    ck_assert_int_eq(replace_key(map, "a", 1, "x", NULL), SHM_MAP_CHANGED); /* absent */
    ck_assert_int_eq(replace_key(map, "a", 0, "x", &first), SHM_MAP_OK);
    ck_assert_uint_eq(version_of(map, "a"), first);
    ck_assert_int_eq(replace_key(map, "a", 0, "y", NULL), SHM_MAP_CHANGED);
    ck_assert_int_eq(replace_key(map, "a", first + 1, "y", NULL), SHM_MAP_CHANGED);
    expect_value(map, "a", 1, "x");
    ck_assert_int_eq(replace_key(map, "a", first, "x", &second), SHM_MAP_OK);
    ck_assert_uint_ne(first, second);
    ck_assert_int_eq(replace_key(map, "a", first, "z", NULL), SHM_MAP_CHANGED);
    /* the value again, but a different state */
    ck_assert_int_eq(shm_map_delete(map, "a", 1, 1), SHM_MAP_OK);
    ck_assert_int_eq(shm_map_set(map, "a", 1, 1, "x", 1, 0, &third), SHM_MAP_OK);
    ck_assert_uint_eq(version_of(map, "a"), third);
    ck_assert(third != first && third != second);
    ck_assert_int_eq(replace_key(map, "a", second, "z", NULL), SHM_MAP_CHANGED);
    expect_value(map, "a", 1, "x");
    map_destroy(&map);
}
END_TEST

START_TEST(what_is_too_large_is_refused)
{
    static const char bytes[32] = "0123456789abcdef0123456789abcde";
    struct shm_map *map = map_create(&small);
    char room[4] = "----";
    struct shm_map_item item = { .value = room, .room = 3 };

    ck_assert_int_eq(shm_map_set(map, bytes, 17, 1, "x", 1, 0, NULL), SHM_MAP_TOO_LARGE);
    ck_assert_int_eq(shm_map_set(map, bytes, 1, 1, bytes, 25, 0, NULL), SHM_MAP_TOO_LARGE);
    ck_assert_int_eq(shm_map_add(map, bytes, 17, 1, 1, NULL), SHM_MAP_TOO_LARGE);
    ck_assert_int_eq(shm_map_get(map, bytes, 17, 1, &item), SHM_MAP_ABSENT);
    ck_assert_int_eq(shm_map_delete(map, bytes, 17, 1), SHM_MAP_ABSENT);
    ck_assert_uint_eq(shm_map_count(map), 0);
    ck_assert_int_eq(shm_map_set(map, bytes, 16, 1, bytes, 24, 0, NULL), SHM_MAP_OK);
    ck_assert_int_eq(shm_map_get(map, bytes, 16, 1, &item), SHM_MAP_TOO_LARGE);
    ck_assert_uint_eq(item.n, 24);
    ck_assert_mem_eq(room, "012-", 4);
    item = (struct shm_map_item) { .value = NULL };
    ck_assert_int_eq(shm_map_get(map, bytes, 16, 1, &item), SHM_MAP_TOO_LARGE);
    ck_assert_uint_eq(item.n, 24);
    map_destroy(&map);
}
END_TEST

START_TEST(numbers_are_added_up)
{
    struct shm_map *map = map_create(&small);
    struct shm_map_item item;
    int64_t sum = 0, greatest = INT64_MAX, least = INT64_MIN;

    ck_assert_int_eq(shm_map_add(map, "n", 1, 1, -5, &sum), SHM_MAP_OK);
    ck_assert_int_eq(sum, -5);
    ck_assert_int_eq(shm_map_add(map, "n", 1, 1, 7, NULL), SHM_MAP_OK);
    ck_assert_int_eq(shm_map_add(map, "n", 1, 1, 0, &sum), SHM_MAP_OK);
    ck_assert_int_eq(sum, 2);
    ck_assert_int_eq(get_key(map, "n", 1, &item), SHM_MAP_OK);
    ck_assert_uint_eq(item.n, sizeof(sum));
    ck_assert_mem_eq(item.value, &sum, sizeof(sum));
    ck_assert_uint_eq(item.expires_ms, 0);

    set_key(map, "s", "1234567", 1, 0);
    ck_assert_int_eq(shm_map_add(map, "s", 1, 1, 1, &sum), SHM_MAP_NOT_A_NUMBER);
    expect_value(map, "s", 1, "1234567");
    shm_map_set(map, "g", 1, 1, &greatest, 8, 0, NULL);
    shm_map_set(map, "l", 1, 1, &least, 8, 0, NULL);
    ck_assert_int_eq(shm_map_add(map, "g", 1, 1, 1, &sum), SHM_MAP_NOT_A_NUMBER);
    ck_assert_int_eq(shm_map_add(map, "l", 1, 1, -1, &sum), SHM_MAP_NOT_A_NUMBER);
    ck_assert_int_eq(shm_map_add(map, "l", 1, 1, INT64_MAX, &sum), SHM_MAP_OK);
    ck_assert_int_eq(sum, -1);
    ck_assert_int_eq(shm_map_add(map, "g", 1, 1, 0, &sum), SHM_MAP_OK);
    ck_assert_int_eq(sum, INT64_MAX);
    map_destroy(&map);
}
END_TEST

START_TEST(a_map_of_short_values_has_no_numbers)
{
    struct shm_map *map = map_create(&(struct shm_map_shape) { 4, 4, 7, 0 });

    ck_assert_int_eq(shm_map_add(map, "n", 1, 1, 1, NULL), SHM_MAP_TOO_LARGE);
    ck_assert_uint_eq(shm_map_count(map), 0);
    map_destroy(&map);
}
END_TEST

START_TEST(what_has_expired_is_absent)
{
    struct shm_map *map = map_create(&small);
    struct shm_map_item item;
    int64_t sum;

    set_key(map, "a", "x", 1, 10);
    expect_value(map, "a", 9, "x");
    expect_value(map, "a", 10, NULL);
    ck_assert_int_eq(shm_map_delete(map, "a", 1, 10), SHM_MAP_ABSENT);
    expect_value(map, "a", 9, NULL);

    set_key(map, "a", "x", 1, 10);
    ck_assert_int_eq(
        shm_map_replace(map, "a", 1, 10, version_of(map, "a"), "y", 1, 0, NULL), SHM_MAP_CHANGED);
    ck_assert_int_eq(shm_map_replace(map, "a", 1, 10, 0, "y", 1, KEEP, NULL), SHM_MAP_OK);
    ck_assert_int_eq(get_key(map, "a", 1000, &item), SHM_MAP_OK);
    ck_assert_uint_eq(item.expires_ms, 0); /* the expired one's was not kept */
    ck_assert_uint_eq(shm_map_count(map), 1);

    set_key(map, "n", "no number", 1, 10);
    ck_assert_int_eq(shm_map_add(map, "n", 1, 10, 3, &sum), SHM_MAP_OK);
    ck_assert_int_eq(sum, 3);
    expect_value(map, "b", 1, NULL);
    set_key(map, "b", "x", 50, 40); /* already */
    expect_value(map, "b", 50, NULL);
    map_destroy(&map);
}
END_TEST

START_TEST(an_expiry_can_be_kept)
{
    struct shm_map *map = map_create(&small);
    struct shm_map_item item;

    set_key(map, "a", "x", 1, 10);
    set_key(map, "a", "y", 1, KEEP);
    ck_assert_int_eq(get_key(map, "a", 1, &item), SHM_MAP_OK);
    ck_assert_uint_eq(item.expires_ms, 10);
    expect_value(map, "a", 10, NULL);
    set_key(map, "a", "y", 1, 20);
    expect_value(map, "a", 10, "y");
    set_key(map, "a", "y", 1, 0);
    expect_value(map, "a", UINT64_MAX, "y");
    set_key(map, "b", "12345678", 1, 10);
    ck_assert_int_eq(shm_map_add(map, "b", 1, 1, 1, NULL), SHM_MAP_OK);
    expect_value(map, "b", 10, NULL);
    set_key(map, "c", "new", 1, KEEP);
    expect_value(map, "c", UINT64_MAX, "new");
    map_destroy(&map);
}
END_TEST

/* With one shard and with many. */
static const uint32_t capacities[] = { 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 100, 1000, 2000 };

START_TEST(exactly_so_many_keys_fit)
{
    const struct shm_map_shape shape = { capacities[_i], 16, 8, 0 };
    struct shm_map *map = map_create(&shape);

    for (int round = 0; round < 3; round++)
        check_room(map, shape.capacity);
    ck_assert_int_eq(set_key(map, "a", "x", 1, 0), SHM_MAP_OK);
    check_room(map, shape.capacity);
    expect_value(map, "a", 1, "x");
    map_destroy(&map);
}
END_TEST

START_TEST(a_full_map_still_changes_its_keys)
{
    struct shm_map *map = map_create(&small);

    set_key(map, "a", "1", 1, 0);
    set_key(map, "b", "2", 1, 0);
    set_key(map, "c", "3", 1, 0);
    set_key(map, "d", "4", 1, 0);
    ck_assert_int_eq(set_key(map, "e", "5", 1, 0), SHM_MAP_FULL);
    ck_assert_int_eq(replace_key(map, "e", 0, "5", NULL), SHM_MAP_FULL);
    ck_assert_int_eq(shm_map_add(map, "e", 1, 1, 1, NULL), SHM_MAP_FULL);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(set_key(map, i % 2 == 0 ? "b" : "d", "new", 1, 0), SHM_MAP_OK);
    expect_value(map, "a", 1, "1");
    expect_value(map, "b", 1, "new");
    expect_value(map, "c", 1, "3");
    expect_value(map, "d", 1, "new");
    expect_value(map, "e", 1, NULL);
    ck_assert_int_eq(shm_map_delete(map, "c", 1, 1), SHM_MAP_OK);
    ck_assert_int_eq(set_key(map, "e", "5", 1, 0), SHM_MAP_OK);
    map_destroy(&map);
}
END_TEST

START_TEST(the_expired_make_room)
{
    const struct shm_map_shape shape = { capacities[_i], 16, 8, 0 };
    struct shm_map *map = map_create(&shape);
    uint32_t expiring = (shape.capacity + 1) / 2, i;

    for (i = 0; i < shape.capacity; i++)
        test_require(shm_map_set(map, &i, sizeof(i), 1, "", 0, i < expiring ? 10 + i : 0, NULL) ==
                     SHM_MAP_OK);
    for (uint32_t j = 0; j < expiring; j++, i++) { /* entries expire, one a millisecond */
        test_require(shm_map_set(map, &i, sizeof(i), 9 + j, "", 0, 0, NULL) == SHM_MAP_FULL);
        test_require(shm_map_set(map, &i, sizeof(i), 10 + j, "", 0, 0, NULL) == SHM_MAP_OK);
    }
    ck_assert_int_eq(shm_map_set(map, &i, sizeof(i), 1000000, "", 0, 0, NULL), SHM_MAP_FULL);
    ck_assert_uint_eq(shm_map_count(map), shape.capacity);
    map_destroy(&map);
}
END_TEST

START_TEST(a_sweep_gives_back_what_has_expired)
{
    const struct shm_map_shape shape = { 200, 16, 8, 0 };
    struct shm_map *map = map_create(&shape);

    for (uint32_t i = 0; i < 100; i++)
        test_require(shm_map_set(map, &i, sizeof(i), 1, "", 0, i % 4 * 10, NULL) == SHM_MAP_OK);
    for (uint32_t tens = 0; tens < 5; tens++) {
        shm_map_sweep(map, 10 * tens);
        ck_assert_uint_eq(shm_map_count(map), tens >= 3 ? 25 : 100 - 25 * tens);
    }
    check_room(map, shape.capacity);
    map_destroy(&map);
}
END_TEST

START_TEST(memory_is_touched_as_it_is_used)
{
    const struct shm_map_shape shape = { 100000, 256, 1024, 0 };
    struct shm_map *map = map_create(&shape);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = shm_map_kind.size(&shape), touched = 0;
    unsigned char *in_core = malloc(size / page + 1);

    ck_assert_ptr_nonnull(in_core);
    set_key(map, "a", "x", 1, 0);
    expect_value(map, "a", 1, "x");
    check_room(map, 100000);
    map_destroy(&map);
    map = map_create(&shape);
    set_key(map, "a", "x", 1, 0);
    expect_value(map, "a", 1, "x");
    expect_value(map, "b", 1, NULL);
    ck_assert_int_eq(mincore(map->header, size, in_core), 0);
    for (size_t i = 0; i < (size + page - 1) / page; i++)
        touched += in_core[i] & 1;
    /* the header, the shards, a page of owners, two shards' buckets, spare entries, an entry */
    ck_assert_uint_le(touched, TABLE_SHARDS_MAX * CACHE_LINE / page + 6 +
                                   2 * (map->table.bucket_n * sizeof(uint32_t) / page + 1));
    free(in_core);
    map_destroy(&map);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, some_shapes_cannot_be, 0, (int)countof(shapes));
    tcase_add_test(tcase, it_knows_its_shape);
    tcase_add_test(tcase, what_was_set_is_there_until_it_is_deleted);
    tcase_add_test(tcase, keys_are_bytes);
    tcase_add_test(tcase, versions_tell_every_state_from_every_other);
    tcase_add_test(tcase, what_is_too_large_is_refused);
    tcase_add_test(tcase, numbers_are_added_up);
    tcase_add_test(tcase, a_map_of_short_values_has_no_numbers);
    tcase_add_test(tcase, what_has_expired_is_absent);
    tcase_add_test(tcase, an_expiry_can_be_kept);
    tcase_add_loop_test(tcase, exactly_so_many_keys_fit, 0, (int)countof(capacities));
    tcase_add_test(tcase, a_full_map_still_changes_its_keys);
    tcase_add_loop_test(tcase, the_expired_make_room, 0, (int)countof(capacities));
    tcase_add_test(tcase, a_sweep_gives_back_what_has_expired);
    tcase_add_test(tcase, memory_is_touched_as_it_is_used);
}

TEST_MAIN("map", add_tests)
