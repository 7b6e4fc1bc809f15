/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics and maps, which workers share. */
#include "sdk/scripted_conn.h"

#include "settings/calls.h"
#include "shm/metrics.h"

#include <inttypes.h>
#include <string.h>

struct conf {
    fb_map *map;
};

enum { HITS, USERS, METRICS };

static fb_conn *session;

static int proto_opened(fb_conn *conn, void *state)
{
    (void)state;
    session = conn;
    return 0;
}

static void proto_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)state;
    (void)reason;
    fb_metric_add(conn, HITS, 1); /* valid until this returns */
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = proto_opened,
    .closed = proto_closed,
};

static int conf_done(fb_conf *conf, void *own, const void *parent)
{
    static const fb_map_options options = {
        .size = sizeof(options),
        .name = "things",
        .version = 1,
        .capacity = 4,
        .key_max = 16,
        .value_max = 64,
    };

    (void)parent;
    ((struct conf *)own)->map = fb_conf_map(conf, &options);
    return ((struct conf *)own)->map != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "proto", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_metric metrics[] = {
    [HITS] = { .name = "hits", .kind = FB_COUNTER },
    [USERS] = { .name = "users", .kind = FB_GAUGE },
};

static const fb_protocol proto = {
    FB_PROTOCOL_HEADER,
    .name = "proto",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_METRICS(metrics),
    .conf_state = sizeof(struct conf),
    .ops = &ops,
    .conf_done = conf_done,
};

static fb_test *start_proto(void)
{
    fb_test *test = fb_test_start(&proto, "proto; first_byte_timeout off;");

    ck_assert_ptr_nonnull(test);
    fb_test_connect(test);
    fb_test_run(test);
    ck_assert_ptr_nonnull(session);
    return test;
}

/* ---- Metrics ---- */

START_TEST(metrics_are_summed_over_the_workers)
{
    fb_test *test = start_proto();
    const struct zone *zone = STAILQ_FIRST(&test->cycle->stream.servers)->metrics;
    shm_row *others;
    struct slot_id other;

    ck_assert_int_eq(fb_metric_total(session, HITS), 0);
    fb_metric_add(session, HITS, 3);
    fb_metric_add(session, HITS, 4);
    fb_metric_add(session, USERS, 2);
    fb_metric_add(session, USERS, -1);
    ck_assert(slot_acquire(test->shared, &other));
    zones_slot_acquired(&test->cycle->zones, other);
    others = shm_metrics_row(zone_memory(zone), zone->shape, other.slot);
    shm_metric_add(&others[HITS], 100);
    shm_metric_add(&others[USERS], 10);
    ck_assert_int_eq(fb_metric_total(session, HITS), 107);
    ck_assert_int_eq(fb_metric_total(session, USERS), 11);

    zones_slot_released(&test->cycle->zones, other); /* the worker has died */
    slot_release(test->shared, other);
    ck_assert_int_eq(fb_metric_total(session, HITS), 107);
    ck_assert_int_eq(fb_metric_total(session, USERS), 1);
    scripted_finish(&test);
}
END_TEST

START_TEST(what_is_no_metric_is_not_counted)
{
    fb_test *test = start_proto();

    fb_metric_add(session, METRICS, 5);
    fb_metric_add(session, UINT32_MAX, 5);
    ck_assert_int_eq(fb_metric_total(session, METRICS), 0);
    ck_assert_int_eq(fb_metric_total(session, HITS), 0);
    ck_assert_int_eq(fb_metric_total(session, USERS), 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_protocol_without_metrics)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 };

    scripted_conn_open(test, &a);
    fb_metric_add(a.conn, 0, 5);
    ck_assert_int_eq(fb_metric_total(a.conn, 0), 0);
    scripted_finish(&test);
}
END_TEST

/* ---- Maps ---- */

static fb_worker *worker;
static fb_map *map;

static fb_test *start_map(void)
{
    fb_test *test = start_proto();

    worker = fb_test_worker(test);
    map = ((const struct conf *)fb_conf_of(session))->map;
    return test;
}

static fb_bytes bytes(const char *text)
{
    return (fb_bytes) { (const uint8_t *)text, strlen(text) };
}

static char value[64];
static fb_item item;

static fb_map_status get(const char *key)
{
    memset(value, 0, sizeof(value));
    item = (fb_item) { .value = value, .room = sizeof(value) - 1, .ttl = 12345, .n = 12345 };
    return fb_map_get(worker, map, bytes(key), &item);
}

static fb_map_status set(const char *key, const char *text, uint64_t ttl)
{
    return fb_map_set(worker, map, bytes(key), bytes(text), ttl);
}

START_TEST(set_get_delete)
{
    fb_test *test = start_map();

    ck_assert_int_eq(get("k"), FB_MAP_ABSENT);
    ck_assert_uint_eq(item.n + item.ttl, 0);
    ck_assert_int_eq(set("k", "first", 0), FB_MAP_OK);
    ck_assert_int_eq(get("k"), FB_MAP_OK);
    ck_assert_str_eq(value, "first");
    ck_assert_uint_eq(item.n, 5);
    ck_assert_uint_eq(item.ttl, 0);
    ck_assert_int_eq(set("k", "", 0), FB_MAP_OK);
    ck_assert_int_eq(get("k"), FB_MAP_OK);
    ck_assert_uint_eq(item.n, 0);
    ck_assert_int_eq(fb_map_delete(worker, map, bytes("k")), FB_MAP_OK);
    ck_assert_int_eq(fb_map_delete(worker, map, bytes("k")), FB_MAP_ABSENT);
    ck_assert_int_eq(get("k"), FB_MAP_ABSENT);
    scripted_finish(&test);
}
END_TEST

START_TEST(what_is_too_large_or_too_much)
{
    fb_test *test = start_map();
    char large[66] = "";

    memset(large, 'x', 65);
    ck_assert_int_eq(set("k", large, 0), FB_MAP_TOO_LARGE);
    ck_assert_int_eq(set("a key of 17 bytes", "v", 0), FB_MAP_TOO_LARGE);
    ck_assert_int_eq(get("a key of 17 bytes"), FB_MAP_ABSENT);
    large[64] = '\0';
    ck_assert_int_eq(set("k", large, 0), FB_MAP_OK);
    ck_assert_int_eq(get("k"), FB_MAP_OK); /* the first 63, for which there is room */
    ck_assert_uint_eq(item.n, 64);
    item = (fb_item) { .value = NULL, .room = 0 };
    ck_assert_int_eq(fb_map_get(worker, map, bytes("k"), &item), FB_MAP_OK);
    ck_assert_uint_eq(item.n, 64);

    ck_assert_int_eq(set("k2", "", 0), FB_MAP_OK);
    ck_assert_int_eq(set("k3", "", 0), FB_MAP_OK);
    ck_assert_int_eq(set("k4", "", 500), FB_MAP_OK);
    ck_assert_uint_eq(fb_map_count(map), 4);
    ck_assert_int_eq(set("k5", "", 0), FB_MAP_FULL);
    ck_assert_int_eq(set("k3", "again", 0), FB_MAP_OK);
    fb_test_pass(test, 500);
    ck_assert_int_eq(set("k5", "", 0), FB_MAP_OK); /* in the place of what has vanished */
    scripted_finish(&test);
}
END_TEST

START_TEST(what_has_a_ttl_vanishes)
{
    fb_test *test = start_map();

    set("short", "s", 1000);
    set("long", "l", 5000);
    set("ever", "e", 0);
    fb_test_pass(test, 999);
    ck_assert_int_eq(get("short"), FB_MAP_OK);
    ck_assert_uint_eq(item.ttl, 1);
    ck_assert_int_eq(get("long"), FB_MAP_OK);
    ck_assert_uint_eq(item.ttl, 4001);
    fb_test_pass(test, 1);
    ck_assert_int_eq(get("short"), FB_MAP_ABSENT);
    fb_test_pass(test, 1000000);
    ck_assert_int_eq(get("long"), FB_MAP_ABSENT);
    ck_assert_int_eq(get("ever"), FB_MAP_OK);
    scripted_finish(&test);
}
END_TEST

/* The time is the wall clock's: workers of every generation have the same. */
START_TEST(a_ttl_goes_by_the_wall_clock)
{
    fb_test *test = start_map();
    int64_t wall = fb_wall_ms(worker);

    set("k", "v", 1000);
    test->sim->clock.wall_ms = wall + 999;
    fb_test_run(test);
    ck_assert_int_eq(get("k"), FB_MAP_OK);
    test->sim->clock.wall_ms = wall + 1000;
    fb_test_run(test);
    ck_assert_int_eq(get("k"), FB_MAP_ABSENT);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_ttl_is_kept)
{
    fb_test *test = start_map();
    int64_t n = 5, sum;
    const fb_bytes number = { (const uint8_t *)&n, sizeof(n) };

    set("k", "v", 1000);
    fb_map_set(worker, map, bytes("n"), number, 1000);
    fb_test_pass(test, 400);
    ck_assert_int_eq(set("k", "other", FB_MAP_KEEP_TTL), FB_MAP_OK);
    ck_assert_int_eq(fb_map_add(worker, map, bytes("n"), 1, &sum), FB_MAP_OK);
    get("k");
    ck_assert_str_eq(value, "other");
    ck_assert_uint_eq(item.ttl, 600);
    get("n");
    ck_assert_uint_eq(item.ttl, 600);
    ck_assert_int_eq(set("new", "v", FB_MAP_KEEP_TTL), FB_MAP_OK);
    get("new");
    ck_assert_uint_eq(item.ttl, 0); /* no value to keep */
    fb_test_pass(test, 600);
    ck_assert_int_eq(get("k"), FB_MAP_ABSENT);
    ck_assert_int_eq(get("n"), FB_MAP_ABSENT);
    scripted_finish(&test);
}
END_TEST

/* A time beyond the representable range does not come at once. */
START_TEST(a_ttl_beyond_all_bounds)
{
    static const uint64_t ttls[] = { UINT64_MAX - 1, UINT64_MAX - 1795253400000, INT64_MAX };
    fb_test *test = start_map();

    ck_assert_int_eq(set("k", "v", ttls[_i]), FB_MAP_OK);
    fb_test_pass(test, 1000000);
    ck_assert_int_eq(get("k"), FB_MAP_OK);
    ck_assert_uint_gt(item.ttl, 1000000000);
    scripted_finish(&test);
}
END_TEST

START_TEST(replace_is_for_who_knows_what_is_there)
{
    fb_test *test = start_map();
    fb_bytes key = bytes("k");
    uint64_t old;

    ck_assert_int_eq(fb_map_replace(worker, map, key, 77, bytes("v"), 0), FB_MAP_CHANGED);
    ck_assert_int_eq(fb_map_replace(worker, map, key, 0, bytes("one"), 0), FB_MAP_OK);
    ck_assert_int_eq(fb_map_replace(worker, map, key, 0, bytes("v"), 0), FB_MAP_CHANGED);
    get("k");
    old = item.version;
    ck_assert_int_eq(fb_map_replace(worker, map, key, old, bytes("two"), 1000), FB_MAP_OK);
    ck_assert_int_eq(fb_map_replace(worker, map, key, old, bytes("v"), 0), FB_MAP_CHANGED);
    get("k");
    ck_assert_str_eq(value, "two");
    ck_assert_uint_eq(item.ttl, 1000);
    old = item.version;
    fb_map_delete(worker, map, key);
    set("k", "two", 0);
    ck_assert_int_eq(fb_map_replace(worker, map, key, old, bytes("v"), 0), FB_MAP_CHANGED);
    set("k", "two", 1000);
    fb_test_pass(test, 1000);
    ck_assert_int_eq(fb_map_replace(worker, map, key, 0, bytes("three"), 0), FB_MAP_OK);
    get("k");
    ck_assert_str_eq(value, "three");
    scripted_finish(&test);
}
END_TEST

START_TEST(numbers)
{
    fb_test *test = start_map();
    int64_t sum = 0, most = INT64_MAX;

    ck_assert_int_eq(fb_map_add(worker, map, bytes("n"), 5, &sum), FB_MAP_OK);
    ck_assert_int_eq(sum, 5);
    ck_assert_int_eq(fb_map_add(worker, map, bytes("n"), -8, &sum), FB_MAP_OK);
    ck_assert_int_eq(sum, -3);
    ck_assert_int_eq(fb_map_add(worker, map, bytes("n"), 3, NULL), FB_MAP_OK);
    get("n");
    ck_assert_uint_eq(item.n, sizeof(int64_t));
    set("text", "nine", 0);
    ck_assert_int_eq(fb_map_add(worker, map, bytes("text"), 1, &sum), FB_MAP_NOT_A_NUMBER);
    fb_map_set(worker, map, bytes("n"), (fb_bytes) { (void *)&most, sizeof(most) }, 0);
    ck_assert_int_eq(fb_map_add(worker, map, bytes("n"), 1, &sum), FB_MAP_NOT_A_NUMBER);
    scripted_finish(&test);
}
END_TEST

START_TEST(remove_is_for_who_knows_what_is_there)
{
    fb_test *test = start_map();
    uint64_t old;

    ck_assert_int_eq(fb_map_remove(worker, map, bytes("k"), 0), FB_MAP_ABSENT);
    set("k", "one", 0);
    get("k");
    old = item.version;
    ck_assert_int_eq(fb_map_remove(worker, map, bytes("k"), 0), FB_MAP_CHANGED);
    set("k", "two", 0);
    ck_assert_int_eq(fb_map_remove(worker, map, bytes("k"), old), FB_MAP_CHANGED);
    ck_assert_int_eq(get("k"), FB_MAP_OK);
    ck_assert_int_eq(fb_map_remove(worker, map, bytes("k"), item.version), FB_MAP_OK);
    ck_assert_int_eq(get("k"), FB_MAP_ABSENT);
    scripted_finish(&test);
}
END_TEST

START_TEST(append_makes_longer)
{
    fb_test *test = start_map();
    char text[61] = "";

    ck_assert_int_eq(fb_map_append(worker, map, bytes("k"), bytes("one"), 1000), FB_MAP_OK);
    ck_assert_int_eq(
        fb_map_append(worker, map, bytes("k"), bytes(" two"), FB_MAP_KEEP_TTL), FB_MAP_OK);
    get("k");
    ck_assert_str_eq(value, "one two");
    ck_assert_uint_eq(item.ttl, 1000);
    ck_assert_int_eq(fb_map_append(worker, map, bytes("k"), bytes(""), 0), FB_MAP_OK);
    memset(text, 'x', 58);
    ck_assert_int_eq(fb_map_append(worker, map, bytes("k"), bytes(text), 0), FB_MAP_TOO_LARGE);
    get("k");
    ck_assert_str_eq(value, "one two");
    ck_assert_uint_eq(item.ttl, 0);
    ck_assert_int_eq(fb_map_append(worker, map, bytes("k"), bytes(text + 1), 0), FB_MAP_OK);
    get("k");
    ck_assert_uint_eq(item.n, 64);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_walk_meets_all_that_is_there)
{
    fb_test *test = start_map();
    fb_map_cursor cursor = { { 0 } };
    char name[2] = "", met[5] = "";
    fb_item key = { .value = name, .room = 1 };
    fb_map_status status;

    ck_assert_int_eq(fb_map_next(worker, map, &cursor, &key, &item), FB_MAP_ABSENT);
    set("a", "1", 0);
    set("b", "2", 500);
    set("c", "3", 100);
    fb_test_pass(test, 100);
    item = (fb_item) { .value = value, .room = 1 };
    while ((status = fb_map_next(worker, map, &cursor, &key, &item)) != FB_MAP_ABSENT) {
        ck_assert_int_eq(status, FB_MAP_OK);
        ck_assert_uint_eq(key.n, 1);
        ck_assert_uint_eq(item.n, 1);
        ck_assert_int_eq(value[0] - '1', name[0] - 'a');
        ck_assert_uint_eq(item.ttl, name[0] == 'b' ? 400 : 0);
        strcat(met, name);
    }
    ck_assert(strcmp(met, "ab") == 0 || strcmp(met, "ba") == 0);
    scripted_finish(&test);
}
END_TEST

static unsigned lines_with(fb_test *test, const char *what)
{
    unsigned n = 0;

    for (const char *p = fb_test_logged(test); (p = strstr(p, what)) != NULL; p++)
        n++;
    return n;
}

/* Another worker has written impossible values into the map. */
static void damage_map(void)
{
    const struct table *table = &map->handle->table;

    memset(table->buckets, 0xff, sizeof(uint32_t) * table->shard_n * table->bucket_n);
}

START_TEST(damage_is_mended_and_said)
{
    static const char line[] =
        "[alert] zone \"proto.things\": the map was damaged, and 1 shards of the map were emptied";
    fb_test *test = start_map();

    ck_assert_int_eq(set("k", "v", 0), FB_MAP_OK);
    damage_map();
    ck_assert_int_eq(get("k"), FB_MAP_ABSENT);
    ck_assert_int_eq(set("k", "v", 0), FB_MAP_OK);
    ck_assert_int_eq(get("k"), FB_MAP_OK);
    ck_assert_uint_eq(lines_with(test, line), 1);
    for (int i = 0; i < 5; i++) { /* once a second */
        damage_map();
        ck_assert_int_eq(get("k"), FB_MAP_ABSENT);
    }
    ck_assert_uint_eq(lines_with(test, line), 1);
    fb_test_pass(test, 1000);
    ck_assert_int_eq(get("k"), FB_MAP_ABSENT);
    ck_assert_uint_eq(lines_with(test, "and 5 shards of the map"), 1);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, metrics_are_summed_over_the_workers);
    tcase_add_test(tcase, what_is_no_metric_is_not_counted);
    tcase_add_test(tcase, a_protocol_without_metrics);
    tcase_add_test(tcase, set_get_delete);
    tcase_add_test(tcase, what_is_too_large_or_too_much);
    tcase_add_test(tcase, what_has_a_ttl_vanishes);
    tcase_add_test(tcase, a_ttl_goes_by_the_wall_clock);
    tcase_add_test(tcase, a_ttl_is_kept);
    tcase_add_loop_test(tcase, a_ttl_beyond_all_bounds, 0, 3);
    tcase_add_test(tcase, replace_is_for_who_knows_what_is_there);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, remove_is_for_who_knows_what_is_there);
    tcase_add_test(tcase, append_makes_longer);
    tcase_add_test(tcase, a_walk_meets_all_that_is_there);
    tcase_add_test(tcase, damage_is_mended_and_said);
}

TEST_MAIN("sdk_shared", add_tests)
