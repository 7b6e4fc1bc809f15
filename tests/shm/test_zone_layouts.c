/* SPDX-License-Identifier: BSD-2-Clause */
/* Zones with another layout in the next configuration: the memory still usable, and the messages
 * otherwise. */
#include "base/compiler.h"
#include "base/diag.h"
#include "shm/declared_map.h"
#include "shm/map_check.h"
#include "shm/map_private.h"
#include "shm/metrics.h"

static const struct shm_map_shape larger_shape = { 800, 16, 8, 0 };
static const struct shm_map_shape other_shape = { 801, 16, 8, 0 }; /* beyond what was laid out */
static const uint8_t kinds[] = { SHM_COUNTER, SHM_GAUGE };
static const struct shm_metrics_shape metrics_shape = { countof(kinds), kinds };

/* Against a map "sessions" of version 1. */
static const struct {
    const struct zone_kind *kind;
    uint32_t version;
    const void *shape;
} layouts[] = {
    { &shm_map_kind, 2, &map_shape },
    { &shm_map_kind, 1, &other_shape },
    { &shm_map_kind, 1, &(struct shm_map_shape) { 100, 15, 8, 0 } }, /* the same size */
    { &shm_map_kind, 1, &(struct shm_map_shape) { 100, 16, 8, 100 } },
    { &shm_metrics_kind, 1, &metrics_shape },
};

START_TEST(a_zone_of_another_layout_begins_empty)
{
    struct diag *diag = diag_create();
    struct diag_message message;
    struct declared old, new;
    struct zone *a, *b;
    const char *text;

    ck_assert_ptr_nonnull(diag);
    declared_start(&old);
    declared_start(&new);
    log_collect(&new.log.log, diag);
    a = declare_map(&old, "sessions", 1);
    open_all(&old, NULL);
    put_key(a, "a");
    declare_map(&new, "another", 1); /* no line about this one */
    b = zone_declare(&new.zones, new.arena, layouts[_i].kind, "sessions", layouts[_i].version,
        layouts[_i].shape);
    open_all(&new, &old);
    text = memory_log_take(&new.log);
    ck_assert_str_eq(strchr(text, '\n'), "\n"); /* one line */
    ck_assert_ptr_nonnull(
        strstr(text, "[warn] zone \"sessions\" begins empty because the zone's layout changed"));
    ck_assert_uint_eq(diag_count(diag), 1);
    ck_assert(diag_get(diag, 0, &message) && message.level == LEVEL_WARN);
    ck_assert_str_eq(
        message.text, "zone \"sessions\" begins empty because the zone's layout changed");
    if (b->kind == &shm_map_kind) {
        ck_assert(!has(b, "a"));
        put_key(b, "b");
        ck_assert(!has(a, "b"));
    }
    ck_assert(has(a, "a"));
    log_collect(&new.log.log, NULL);
    declared_stop(&new);
    put_key(a, "c");
    declared_stop(&old);
    diag_destroy(&diag);
}
END_TEST

/* Sets numbered keys until the map is full, and returns how many there are. */
static uint32_t fill(struct shm_map *map)
{
    for (uint32_t key = 0;; key++)
        if (shm_map_set(map, &key, sizeof(key), 1, "", 0, 0, NULL) != SHM_MAP_OK)
            return shm_map_count(map);
}

/* Workers of both configurations use the memory at once, up to the capacity of their
 * configuration. */
START_TEST(a_map_grows_and_shrinks_with_its_keys)
{
    struct declared old, larger, smaller;
    struct shm_map before, map;
    struct zone *a, *b, *c;

    declared_start(&old);
    declared_start(&larger);
    declared_start(&smaller);
    a = declare_map(&old, "sessions", 1);
    open_all(&old, NULL);
    put_key(a, "a");
    before = open_map(a);
    ck_assert_uint_eq(fill(&before), map_shape.capacity);
    b = zone_declare(&larger.zones, larger.arena, &shm_map_kind, "sessions", 1, &larger_shape);
    open_all(&larger, &old);
    ck_assert_uint_eq(b->size, a->size);
    ck_assert(has(b, "a"));
    map = open_map(b);
    ck_assert_uint_eq(fill(&map), larger_shape.capacity);
    ck_assert_uint_eq(shm_map_count(&before), larger_shape.capacity);
    map_check(&map);

    c = declare_map(&smaller, "sessions", 1);
    open_all(&smaller, &larger);
    declared_stop(&old);
    declared_stop(&larger);
    ck_assert(has(c, "a"));
    map = open_map(c);
    ck_assert_int_eq(shm_map_set(&map, "b", 1, 1, "", 0, 0, NULL), SHM_MAP_FULL);
    ck_assert_int_eq(shm_map_set(&map, "a", 1, 1, "x", 1, 0, NULL), SHM_MAP_OK);
    for (uint32_t key = 0; key < larger_shape.capacity; key++)
        shm_map_delete(&map, &key, sizeof(key), 1);
    ck_assert_uint_eq(fill(&map), map_shape.capacity);
    map_check(&map);
    declared_stop(&smaller);
}
END_TEST

/* The records of a formerly larger map, and of the number of keys, are overwritten. */
START_TEST(a_forged_size_is_found)
{
    struct declared declared;
    struct shm_map map, later;
    struct zone *zone;

    declared_start(&declared);
    zone = declare_map(&declared, "sessions", 1);
    open_all(&declared, NULL);
    map = open_map(zone);
    ck_assert_int_eq(shm_map_set(&map, "b", 1, 1, "", 0, 0, NULL), SHM_MAP_OK);
    if (_i == 1)
        ck_assert_uint_eq(shm_map_count(&map), 1); /* the look went through all shards */
    map.pool->used = map.table.entry_n;
    for (uint32_t shard = 0; shard < map.table.shard_n; shard++)
        map.shards[shard].count = 1000;
    ck_assert_int_eq(shm_map_set(&map, "a", 1, 5000, "", 0, 0, NULL), SHM_MAP_OK);
    later = open_map(zone);
    ck_assert_uint_eq(fill(&later), map_shape.capacity);
    map_check(&later);
    declared_stop(&declared);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_map_grows_and_shrinks_with_its_keys);
    tcase_add_loop_test(tcase, a_forged_size_is_found, 0, 2);
    tcase_add_loop_test(tcase, a_zone_of_another_layout_begins_empty, 0, (int)countof(layouts));
}

TEST_MAIN("layouts of zones", add_tests)
