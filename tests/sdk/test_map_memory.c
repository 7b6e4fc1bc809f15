/* SPDX-License-Identifier: BSD-2-Clause */
/* The option `memory` of a map: long values where few are long, for modules with the option; and
 * the map of a module of API 3. */
#include "sdk/scripted_conn.h"

#include "settings/calls.h"

#include <string.h>

#define MB (1u << 20)

static fb_map_options options = {
    .size = sizeof(options),
    .name = "things",
    .version = 1,
    .capacity = 100000,
    .key_max = 100,
    .value_max = 16 * MB,
    .memory = 40 * MB,
};

static fb_map *map;

static int conf_done(fb_conf *conf, void *own, const void *parent)
{
    (void)own;
    (void)parent;
    map = fb_conf_map(conf, &options);
    return map != NULL ? 0 : -1;
}

static int proto_opened(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    return 0;
}

static const fb_directive directives[] = {
    { .name = "proto", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = proto_opened };

static const fb_protocol proto = {
    FB_PROTOCOL_HEADER,
    .name = "proto",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
    .conf_done = conf_done,
};

static uint8_t value[16 * MB];

static fb_bytes bytes(const char *text)
{
    return (fb_bytes) { (const uint8_t *)text, strlen(text) };
}

/* The map for 100,000 values of 16 megabytes has room for 40. */
START_TEST(long_values_cost_what_is_there)
{
    fb_test *test = fb_test_start(&proto, "proto;");
    fb_worker *worker = fb_test_worker(test);
    fb_item item = { .value = value, .room = sizeof(value) };

    value[sizeof(value) - 1] = 7;
    ck_assert_int_eq(
        fb_map_set(worker, map, bytes("a"), (fb_bytes) { value, 16 * MB }, 0), FB_MAP_OK);
    ck_assert_int_eq(
        fb_map_set(worker, map, bytes("b"), (fb_bytes) { value, 16 * MB }, 0), FB_MAP_OK);
    ck_assert_int_eq(
        fb_map_set(worker, map, bytes("c"), (fb_bytes) { value, 16 * MB }, 0), FB_MAP_FULL);
    ck_assert_int_eq(fb_map_set(worker, map, bytes("c"), bytes("short"), 0), FB_MAP_OK);
    value[sizeof(value) - 1] = 0;
    ck_assert_int_eq(fb_map_get(worker, map, bytes("b"), &item), FB_MAP_OK);
    ck_assert_uint_eq(item.n, 16 * MB);
    ck_assert_uint_eq(value[sizeof(value) - 1], 7);
    ck_assert_int_eq(fb_map_delete(worker, map, bytes("a")), FB_MAP_OK);
    ck_assert_int_eq(
        fb_map_set(worker, map, bytes("c"), (fb_bytes) { value, 16 * MB }, 0), FB_MAP_OK);
    scripted_finish(&test);
}
END_TEST

/* A module of API 3 has no `memory`: bytes behind its options are not read. */
START_TEST(options_without_memory)
{
    fb_test *test;

    options.size = offsetof(fb_map_options, memory);
    test = fb_test_start(&proto, "proto;");
    ck_assert_uint_eq(map->shape.memory, 0);
    scripted_finish(&test);
    options.size = sizeof(options);
    options.memory = 5000 * (uint64_t)4096 - 1;
    test = fb_test_start(&proto, "proto;");
    ck_assert_uint_eq(map->shape.memory, 5000);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, long_values_cost_what_is_there);
    tcase_add_test(tcase, options_without_memory);
}

TEST_MAIN("sdk_map_memory", add_tests)
