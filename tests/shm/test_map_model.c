/* SPDX-License-Identifier: BSD-2-Clause */
/* Random calls, and after each call the map equals a simple model. */
#include "shm/map_private.h"
#include "shm/memory.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define KEYS 40
#define CALLS 3000
#define VALUE_MAX 16

struct state {
    bool there;
    char value[VALUE_MAX];
    size_t n;
    uint64_t version;
    uint64_t expires_ms;
};

struct model {
    uint32_t capacity;
    uint32_t key_n; /* keys 0 to key_n - 1 */
    uint64_t now_ms;
    uint64_t random;
    uint64_t versions[KEYS]; /* the latest of a key, also of a deleted key */
    struct state keys[KEYS];
    struct shm_map *map;
};

static const struct {
    uint32_t capacity, keys;
} sizes[] = { { 1, 3 }, { 3, 5 }, { 8, 12 }, { 20, 25 }, { 32, 40 }, { 40, 30 } };

static bool present(const struct model *m, const struct state *state)
{
    return state->there && (state->expires_ms == 0 || state->expires_ms > m->now_ms);
}

static uint32_t live(const struct model *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->key_n; i++)
        n += present(m, &m->keys[i]);
    return n;
}

static size_t name_of(char name[16], uint32_t key)
{
    return (size_t)snprintf(name, 16, "%.*s%u", (int)(key % 7), "abcdefg", key);
}

/* The required answer of a write, before any further check. */
static enum shm_map_status room_for(const struct model *m, const struct state *state)
{
    return present(m, state) || live(m) < m->capacity ? SHM_MAP_OK : SHM_MAP_FULL;
}

static void take_over(struct model *m, uint32_t key, const void *value, size_t n,
    uint64_t expires_ms, uint64_t version)
{
    struct state *state = &m->keys[key];

    test_require(version > m->versions[key]);
    m->versions[key] = version;
    if (expires_ms == SHM_MAP_KEEP_EXPIRY)
        expires_ms = present(m, state) ? state->expires_ms : 0;
    *state = (struct state) {
        .there = true,
        .n = n,
        .version = version,
        .expires_ms = expires_ms,
    };
    memcpy(state->value, value, n);
}

static uint64_t random_expiry(struct model *m)
{
    switch (random_below(&m->random, 4)) {
    case 0:
        return SHM_MAP_KEEP_EXPIRY;
    case 1:
        return m->now_ms + random_below(&m->random, 30);
    default:
        return 0;
    }
}

static void call_set(struct model *m, uint32_t key, bool replace)
{
    struct state *state = &m->keys[key];
    uint64_t value[2] = { next_random(&m->random), next_random(&m->random) };
    size_t n = random_below(&m->random, 3) == 0 ? 8 : random_below(&m->random, VALUE_MAX + 1);
    uint64_t expires_ms = random_expiry(m), version = 0, expected = 0;
    enum shm_map_status status, wanted = room_for(m, state);
    char name[16];
    size_t name_n = name_of(name, key);

    if (replace) {
        expected = random_below(&m->random, 3) != 0 ? state->version : m->versions[key] + 1;
        if (random_below(&m->random, 4) == 0)
            expected = 0;
        if (expected != (present(m, state) ? state->version : 0))
            wanted = SHM_MAP_CHANGED;
        status = shm_map_replace(
            m->map, name, name_n, m->now_ms, expected, value, n, expires_ms, &version);
    } else {
        status = shm_map_set(m->map, name, name_n, m->now_ms, value, n, expires_ms, &version);
    }
    test_require(status == wanted);
    if (status == SHM_MAP_OK)
        take_over(m, key, value, n, expires_ms, version);
}

static void call_add(struct model *m, uint32_t key)
{
    struct state *state = &m->keys[key];
    int64_t by = (int64_t)random_below(&m->random, 1000) - 500, before = 0, sum = 0;
    enum shm_map_status status, wanted = room_for(m, state);
    struct shm_map_item item = { .room = 0 };
    char name[16];
    size_t name_n = name_of(name, key);

    if (present(m, state)) {
        memcpy(&before, state->value, sizeof(before));
        if (state->n != 8 || __builtin_add_overflow(before, by, &sum))
            wanted = SHM_MAP_NOT_A_NUMBER;
    }
    status = shm_map_add(m->map, name, name_n, m->now_ms, by, &sum);
    test_require(status == wanted);
    if (status != SHM_MAP_OK)
        return;
    test_require(sum == before + by);
    test_require(shm_map_get(m->map, name, name_n, m->now_ms, &item) == SHM_MAP_TOO_LARGE);
    take_over(m, key, &sum, sizeof(sum), SHM_MAP_KEEP_EXPIRY, item.version);
}

static void call_delete(struct model *m, uint32_t key)
{
    struct state *state = &m->keys[key];
    char name[16];
    enum shm_map_status status = shm_map_delete(m->map, name, name_of(name, key), m->now_ms);

    test_require(status == (present(m, state) ? SHM_MAP_OK : SHM_MAP_ABSENT));
    state->there = false;
}

static void call_remove(struct model *m, uint32_t key)
{
    struct state *state = &m->keys[key];
    bool is_there = present(m, state), equal = random_below(&m->random, 3) != 0;
    uint64_t expected = equal ? state->version : random_below(&m->random, 2) * m->versions[key] + 1;
    char name[16];
    enum shm_map_status status =
        shm_map_remove(m->map, name, name_of(name, key), m->now_ms, expected);

    if (!is_there)
        test_require(status == SHM_MAP_ABSENT);
    else
        test_require(status == (expected == state->version ? SHM_MAP_OK : SHM_MAP_CHANGED));
    if (status != SHM_MAP_CHANGED)
        state->there = false;
}

static void call_append(struct model *m, uint32_t key)
{
    struct state *state = &m->keys[key];
    uint64_t expires_ms = random_expiry(m), bytes = next_random(&m->random);
    size_t n = random_below(&m->random, 9), before = present(m, state) ? state->n : 0;
    enum shm_map_status status, wanted = room_for(m, state);
    struct shm_map_item item = { .room = 0 };
    char value[VALUE_MAX], name[16];
    size_t name_n = name_of(name, key);

    if (before + n > VALUE_MAX)
        wanted = SHM_MAP_TOO_LARGE;
    status = shm_map_append(m->map, name, name_n, m->now_ms, &bytes, n, expires_ms);
    test_require(status == wanted);
    if (status != SHM_MAP_OK)
        return;
    memcpy(value, state->value, before);
    memcpy(value + before, &bytes, n);
    status = shm_map_get(m->map, name, name_n, m->now_ms, &item);
    if (status == SHM_MAP_ABSENT) { /* expired at once: the version is not told */
        state->there = false;
        return;
    }
    take_over(m, key, value, before + n, expires_ms, item.version);
}

/* A walk meets the existing keys, all once. */
static void call_next(struct model *m)
{
    struct shm_map_cursor cursor = { 0 };
    bool met[KEYS] = { false };
    uint32_t n = 0;

    for (;;) {
        char name[16], value[VALUE_MAX];
        struct shm_map_item key = { .value = name, .room = sizeof(name) - 1 };
        struct shm_map_item item = { .value = value, .room = sizeof(value) };
        const struct state *state;
        uint32_t number;

        if (shm_map_next(m->map, &cursor, m->now_ms, &key, &item) != SHM_MAP_OK)
            break;
        name[key.n] = '\0';
        number = (uint32_t)strtoul(name + strspn(name, "abcdefg"), NULL, 10);
        test_require(number < m->key_n && !met[number]);
        met[number] = true;
        state = &m->keys[number];
        test_require(present(m, state) && item.version == state->version && item.n == state->n);
        test_require(memcmp(value, state->value, item.n) == 0);
        n++;
    }
    test_require(n == live(m) && cursor.order == 0 && cursor.tie == 0);
}

static void call_get(struct model *m, uint32_t key)
{
    struct state *state = &m->keys[key];
    char name[16], value[VALUE_MAX];
    struct shm_map_item item = { .value = value, .room = random_below(&m->random, VALUE_MAX + 1) };
    enum shm_map_status status = shm_map_get(m->map, name, name_of(name, key), m->now_ms, &item);

    if (!present(m, state)) {
        test_require(status == SHM_MAP_ABSENT);
        return;
    }
    test_require(status == (state->n > item.room ? SHM_MAP_TOO_LARGE : SHM_MAP_OK));
    test_require(item.n == state->n && item.version == state->version);
    test_require(item.expires_ms == state->expires_ms);
    test_require(memcmp(value, state->value, item.n < item.room ? item.n : item.room) == 0);
}

static void call_any(struct model *m)
{
    uint32_t key = random_below(&m->random, m->key_n);

    switch (random_below(&m->random, 14)) {
    case 10:
        call_remove(m, key);
        break;
    case 11:
    case 12:
        call_append(m, key);
        break;
    case 13:
        call_next(m);
        break;
    case 0:
        call_delete(m, key);
        break;
    case 1:
        call_add(m, key);
        break;
    case 2:
    case 3:
        call_set(m, key, false);
        break;
    case 4:
    case 5:
        call_set(m, key, true);
        break;
    case 6:
        m->now_ms += random_below(&m->random, 8);
        break;
    default:
        call_get(m, key);
    }
}

START_TEST(it_is_as_its_model)
{
    struct model m = { .capacity = sizes[_i / 10].capacity,
        .key_n = sizes[_i / 10].keys,
        .now_ms = 1000,
        .random = (uint64_t)_i };
    const struct shm_map_shape shape = { m.capacity, 16, VALUE_MAX, _i % 2 * (m.capacity + 1) };

    m.map = map_create(&shape);
    for (int call = 0; call < CALLS; call++) {
        call_any(&m);
        test_require(shm_map_count(m.map) >= live(&m));
        test_require(shm_map_count(m.map) <= m.capacity);
        if (call % 500 == 0)
            map_check(m.map);
        if (call % 500 == 0)
            for (uint32_t key = 0; key < m.key_n; key++)
                call_get(&m, key);
    }
    shm_map_sweep(m.map, m.now_ms);
    ck_assert_uint_eq(shm_map_count(m.map), live(&m));
    for (uint32_t key = 0; key < m.key_n; key++)
        call_delete(&m, key);
    ck_assert_uint_eq(shm_map_count(m.map), 0);
    check_room(m.map, m.capacity);
    map_destroy(&m.map);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, it_is_as_its_model, 0, (int)countof(sizes) * 10);
}

TEST_MAIN("map_model", add_tests)
