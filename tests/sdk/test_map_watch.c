/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_map_watch(): a protocol is told of changes of a map by any worker. */
#include "sdk/scripted_conn.h"

#include "settings/calls.h"

#include <string.h>

static fb_map *map;
static char told[256];
static bool ends_itself;

static int conf_done(fb_conf *conf, void *own, const void *parent)
{
    static const fb_map_options options = {
        .size = sizeof(options),
        .name = "things",
        .version = 1,
        .capacity = 100,
        .key_max = 16,
        .value_max = 64,
    };

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

static void proto_changed(
    fb_worker *worker, void *state, fb_map *changed, fb_bytes key, fb_map_change what)
{
    size_t n = strlen(told);

    ck_assert_ptr_eq(changed, map);
    ck_assert_ptr_eq(state, fb_own_state(worker));
    told[n] = " +-!x"[what];
    if (key.n > 0)
        memcpy(told + n + 1, key.p, key.n);
    if (ends_itself)
        ck_assert_int_eq(fb_map_watch(worker, map, 0), 0);
}

static const fb_directive directives[] = {
    { .name = "proto", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = proto_opened };

static const fb_worker_ops worker_ops = {
    .size = sizeof(fb_worker_ops),
    .map_changed = proto_changed,
};

static const fb_protocol watching = {
    FB_PROTOCOL_HEADER,
    .name = "proto",
    FB_PROTOCOL_DIRECTIVES(directives),
    .worker_state = 8,
    .ops = &ops,
    .conf_done = conf_done,
    .worker_ops = &worker_ops,
};

static const fb_protocol plain = {
    FB_PROTOCOL_HEADER,
    .name = "proto",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
    .conf_done = conf_done,
};

static fb_bytes bytes(const char *text)
{
    return (fb_bytes) { (const uint8_t *)text, strlen(text) };
}

static fb_test *start(const fb_protocol *protocol)
{
    fb_test *test = fb_test_start(protocol, "proto;");

    ck_assert_ptr_nonnull(test);
    memset(told, 0, sizeof(told));
    ends_itself = false;
    return test;
}

START_TEST(changes_are_told_on_the_loop)
{
    fb_test *test = start(&watching);
    fb_worker *worker = fb_test_worker(test);

    fb_map_set(worker, map, bytes("before"), bytes("v"), 0);
    ck_assert_int_eq(fb_map_watch(worker, map, 1), 0);
    ck_assert_int_eq(fb_map_watch(worker, map, 1), 0); /* the same */
    fb_map_set(worker, map, bytes("a"), bytes("v"), 0);
    fb_map_set(worker, map, bytes("a"), bytes("w"), 0);
    fb_map_delete(worker, map, bytes("a"));
    ck_assert_str_eq(told, ""); /* never within a call */
    fb_test_run(test);
    ck_assert_str_eq(told, "+a+a-a");
    fb_test_run(test);
    fb_test_pass(test, 1000);
    ck_assert_str_eq(told, "+a+a-a");

    ck_assert_int_eq(fb_map_watch(worker, map, 0), 0);
    fb_map_set(worker, map, bytes("a"), bytes("v"), 0);
    fb_test_pass(test, 1000);
    ck_assert_str_eq(told, "+a+a-a");
    scripted_finish(&test);
}
END_TEST

/* A key set again has not expired. */
START_TEST(expiries_are_told)
{
    fb_test *test = start(&watching);
    fb_worker *worker = fb_test_worker(test);
    fb_item item = { .value = NULL };

    ck_assert_int_eq(fb_map_watch(worker, map, 1), 0);
    fb_map_set(worker, map, bytes("a"), bytes("v"), 1000);
    fb_map_set(worker, map, bytes("b"), bytes("v"), 1000);
    fb_map_set(worker, map, bytes("b"), bytes("w"), 0);
    fb_test_pass(test, 900);
    ck_assert_uint_eq(strlen(told), strlen("+a+b+b")); /* in whatever order */
    fb_test_pass(test, 1100);
    ck_assert_str_eq(told + strlen("+a+b+b"), "xa");
    ck_assert_int_eq(fb_map_get(worker, map, bytes("a"), &item), FB_MAP_ABSENT);
    ck_assert_uint_eq(fb_map_count(map), 1);
    fb_map_set(worker, map, bytes("a"), bytes("v"), 500);
    fb_map_delete(worker, map, bytes("a"));
    fb_test_pass(test, 2000);
    ck_assert_str_eq(told + strlen("+a+b+b"), "xa+a-a");
    scripted_finish(&test);
}
END_TEST

START_TEST(it_may_end_within_the_callback)
{
    fb_test *test = start(&watching);
    fb_worker *worker = fb_test_worker(test);

    ends_itself = true;
    fb_map_watch(worker, map, 1);
    fb_map_set(worker, map, bytes("a"), bytes("v"), 0);
    fb_map_set(worker, map, bytes("b"), bytes("v"), 0);
    fb_test_run(test);
    ck_assert_uint_eq(strlen(told), 2);
    scripted_finish(&test);
}
END_TEST

/* A worker of an older generation does not ring: a look finds the changes. */
START_TEST(others_are_heard_without_a_bell)
{
    fb_test *test = start(&watching);
    fb_worker *worker = fb_test_worker(test);
    struct shm_map other;

    fb_map_watch(worker, map, 1);
    shm_map_open(&other, map->handle->header, &map->shape, (struct slot_id) { 9, 9 });
    shm_map_log_open(&other, map->handle->log);
    shm_map_set(&other, "b", 1, 1, "v", 1, 0, NULL);
    fb_test_pass(test, 1000);
    ck_assert_str_eq(told, "+b");
    shm_map_log_open(&other, NULL); /* another that knows of no log */
    shm_map_set(&other, "b", 1, 1, "v", 1, 0, NULL);
    fb_test_pass(test, 1000);
    ck_assert_str_eq(told, "+b!");
    scripted_finish(&test);
}
END_TEST

START_TEST(many_changes_are_told_in_parts_or_as_lost)
{
    fb_test *test = start(&watching);
    fb_worker *worker = fb_test_worker(test);

    fb_map_watch(worker, map, 1);
    for (int i = 0; i < 5000; i++)
        fb_map_set(worker, map, bytes("a"), bytes("v"), 0);
    fb_test_run(test);
    ck_assert_str_eq(told, "!");
    scripted_finish(&test);
}
END_TEST

START_TEST(nobody_watches_without_the_callback)
{
    fb_test *test = start(&plain);

    ck_assert_int_eq(fb_map_watch(fb_test_worker(test), map, 1), -1);
    ck_assert_int_eq(fb_map_set(fb_test_worker(test), map, bytes("a"), bytes("v"), 0), FB_MAP_OK);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, changes_are_told_on_the_loop);
    tcase_add_test(tcase, expiries_are_told);
    tcase_add_test(tcase, it_may_end_within_the_callback);
    tcase_add_test(tcase, others_are_heard_without_a_bell);
    tcase_add_test(tcase, many_changes_are_told_in_parts_or_as_lost);
    tcase_add_test(tcase, nobody_watches_without_the_callback);
}

TEST_MAIN("sdk_map_watch", add_tests)
