/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps with foreign writes: locks of holders that never move, impossible links, lengths and owners.
 * Calls end soon, within the map, and it becomes whole again. */
#include "shm/map_private.h"
#include "shm/memory.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CAPACITY 200
#define KEYS 90
#define BOUND_MS 200 /* naps of a process for stopped holders */
#define OTHER 7      /* slot of a process that lives */
#define WRITERS 3
#define WRITES 200000

static const struct shm_map_shape shape = { CAPACITY, 16, 32, 0 };

static int64_t napped_ns;

/* Replaces the C library's: adds up what was asked for, however late the machine is. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    napped_ns += (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
    return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left) == 0 ? 0 : -1;
}

static void check_naps(void)
{
    ck_assert_int_le(napped_ns / 1000000, BOUND_MS);
}

#include "shm/filled_map.h"

/* Makes each call, for each key; any result is allowed. */
static void call_all(struct shm_map *map)
{
    for (uint32_t key = 0; key < KEYS; key++) {
        get_key(map, key);
        set_key(map, key);
        shm_map_add(map, &key, sizeof(key), 1, 1, NULL);
        shm_map_delete(map, &key, sizeof(key), 1);
        set_key(map, key + KEYS);
        shm_map_delete(map, &key, sizeof(key), 1);
    }
    shm_map_sweep(map, 2);
    test_require(shm_map_count(map) <= map->table.entry_n);
}

/* Fills the map as far as possible, and empties the map. */
static void fill_and_empty(struct shm_map *map, uint64_t now)
{
    for (uint32_t key = 1000; key < 1000 + CAPACITY; key++)
        shm_map_set(map, &key, sizeof(key), now, "", 0, 0, NULL);
    for (uint32_t key = 1000; key < 1000 + CAPACITY; key++)
        shm_map_delete(map, &key, sizeof(key), now);
    for (uint32_t key = 0; key < 2 * KEYS; key++)
        shm_map_delete(map, &key, sizeof(key), now);
}

/* Fails the test unless the map serves as a new one does, after being found full, and full again
 * later. */
static void check_mended(struct shm_map *map)
{
    fill_and_empty(map, 20000);
    fill_and_empty(map, 40000);
    ck_assert_uint_eq(shm_map_count(map), 0);
    shm_map_pool_suspect(map, SHM_MAP_SUSPECT);
    shm_map_sweep(map, 40000);
    map_check(map);
    check_room(map, CAPACITY);
}

/* ---- Holders ---- */

static const struct {
    uint64_t word; /* 0: what a living process would write there */
    bool waits;
} forgeries[] = {
    { 0, true }, { UINT64_MAX, true }, { 1, false }, /* no serial: nobody */
    { UINT64_C(1) << 32, false },                    /* the caller, which knows better */
};

START_TEST(a_forged_holder_is_not_waited_for_long)
{
    struct shm_map *map = filled_map();
    uint64_t word = UINT64_C(5) << 32 | OTHER;

    napped_ns = 0;
    if (forgeries[_i].word != 0)
        word = forgeries[_i].word;
    map->pool->lock.word = word;
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++)
        map->shards[shard].lock.word = word;
    for (uint32_t key = 0; key < KEYS; key++)
        test_require(set_key(map, key) == SHM_MAP_OK && set_key(map, key + KEYS) != SHM_MAP_ABSENT);
    check_naps();
    ck_assert_uint_eq(map->mended.taken, forgeries[_i].waits ? map->table.shard_n + 1 : 0);
    ck_assert_uint_eq(map->mended.emptied, 0);
    ck_assert_uint_eq(map->mended.rebuilt, 0);
    for (uint32_t key = 0; key < KEYS; key++)
        test_require(get_key(map, key) == SHM_MAP_OK);
    map_bury(map, OTHER, 5);
    check_mended(map);
    map_destroy(&map);
}
END_TEST

/* A stopped child that has locked the key's shard or the pool. */
static pid_t stopped_holder(struct shm_map *map, uint32_t shard, bool pool)
{
    pid_t pid = fork_child();
    int status;

    if (pid == 0) {
        map_join(map, OTHER, 5);
        shm_map_shard_lock(map, shard);
        if (pool)
            zone_lock(&map->table.locker, &map->pool->lock, &map->pool_hold);
        raise(SIGSTOP);
        if (pool)
            zone_lock_release(&map->pool_hold);
        zone_lock_release(&map->table.hold);
        for (uint32_t key = 0; key < KEYS; key++)
            if (set_key(map, key) != SHM_MAP_OK)
                _exit(1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    return pid;
}

START_TEST(a_stopped_holder_delays_nobody_for_long)
{
    struct shm_map *map = filled_map();
    pid_t pid = stopped_holder(map, 0, _i == 1);

    napped_ns = 0;
    call_all(map);
    check_naps();
    ck_assert_uint_ge(map->mended.taken, 1);
    ck_assert_uint_le(map->mended.taken, 2);
    ck_assert_uint_eq(map->mended.emptied + map->mended.rebuilt, 0);
    call_all(map); /* nobody waits again */
    ck_assert_uint_le(map->mended.taken, 2);
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    wait_for_child(pid);
    map_bury(map, OTHER, 5);
    ck_assert_uint_eq(map->mended.emptied + map->mended.rebuilt, 0);
    check_mended(map);
    map_destroy(&map);
}
END_TEST

START_TEST(a_dead_holder_delays_nobody)
{
    struct shm_map *map = filled_map();
    pid_t pid = stopped_holder(map, 0, true);

    kill_child(pid);
    map_bury(map, OTHER, 5);
    call_all(map);
    ck_assert_uint_eq(map->mended.taken, 0);
    ck_assert_uint_eq(map->mended.emptied + map->mended.rebuilt, 0);
    check_mended(map);
    map_destroy(&map);
}
END_TEST

/* ---- Damage ---- */

static void link_beyond(struct shm_map *map)
{
    for (uint32_t i = 0; i < map->table.shard_n * map->table.bucket_n; i++)
        shm_map_buckets(map, 0)[i] = map->table.entry_n + 1 + i * 0x1000000;
}

static void link_in_a_circle(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        shm_map_entry_at(map, i)->next = i;
}

static void link_to_others(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        shm_map_entry_at(map, i)->next = i % map->table.entry_n + 1;
}

static void entries_beyond(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        shm_map_entry_at(map, i)->next = 0x7fffffff;
}

static void values_too_long(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        shm_map_entry_at(map, i)->value_n = 0xffffff00;
}

static void keys_too_long(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        shm_map_entry_at(map, i)->key_n = 0xffffff00;
    shm_map_pool_suspect(map, SHM_MAP_SUSPECT);
}

static void other_hashes(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        shm_map_entry_at(map, i)->hash ^= UINT64_MAX;
}

/* A sweep is the first to find the damage. */
static void other_hashes_swept(struct shm_map *map)
{
    other_hashes(map);
    for (uint32_t i = 0; i < map->table.shard_n; i++)
        map->shards[i].soonest_ms = 1;
    shm_map_sweep(map, 2);
    ck_assert_uint_gt(map->mended.emptied, 0);
}

static void versions_beyond(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        shm_map_entry_at(map, i)->version = UINT64_MAX;
}

static void last_versions(struct shm_map *map)
{
    for (uint32_t i = 0; i < map->table.shard_n; i++)
        map->shards[i].version = UINT64_MAX;
}

static void spare_beyond(struct shm_map *map)
{
    for (uint32_t i = 0; i < map->table.shard_n; i++)
        map->shards[i].spare = map->table.entry_n + 1;
}

static void spare_of_others(struct shm_map *map)
{
    for (uint32_t i = 0; i < map->table.shard_n; i++)
        map->shards[i].spare = (i + 1) % map->table.shard_n + 1;
}

/* The next state would be written over the state in use. */
static void spare_in_use(struct shm_map *map)
{
    for (uint32_t i = 0; i < map->table.shard_n; i++)
        for (uint32_t bucket = 0; bucket < map->table.bucket_n; bucket++)
            if (shm_map_buckets(map, i)[bucket] != 0)
                map->shards[i].spare = shm_map_buckets(map, i)[bucket];
}

static void owned_by_nobody(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        *shm_map_owner(map, i) = 0;
}

static void owned_by_one(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        *shm_map_owner(map, i) = 1;
}

static void owned_by_what_is_not(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        *shm_map_owner(map, i) = (uint8_t)(200 + i);
}

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

static void used_too_few(struct shm_map *map)
{
    map->pool->used = 1;
}

static void kept_for_one_who_lives(struct shm_map *map)
{
    for (uint32_t i = 1; i <= map->table.entry_n; i++)
        shm_map_entry_at(map, i)->kept_for = OTHER;
    shm_map_pool_suspect(map, SHM_MAP_SUSPECT);
}

static void everything(struct shm_map *map)
{
    memset(map->pool, 0xff, shm_map_kind.size(&shape) - segment_pages(shm_map_kind.header));
}

/* Words of the pool before the entries that no key of the map uses. */
static size_t used_words(const struct shm_map *map)
{
    char *end = map->table.entries + map->touched_most * map->table.stride;

    return (size_t)(end - (char *)map->pool) / sizeof(uint32_t);
}

static void anything(struct shm_map *map)
{
    size_t n = used_words(map);
    uint32_t *words = (uint32_t *)map->pool;
    uint64_t random = random_seed();

    for (size_t i = 0; i < n; i++)
        words[random_below(&random, (uint32_t)n)] = random_below(&random, map->table.entry_n + 2);
}

static const struct {
    void (*damage)(struct shm_map *map);
    bool empties; /* shards are emptied; else nothing is lost */
} damages[] = {
    { link_beyond, true },
    { link_in_a_circle, true },
    { link_to_others, true },
    { entries_beyond, true },
    { values_too_long, true },
    { keys_too_long, true },
    { other_hashes, true },
    { other_hashes_swept, true },
    { versions_beyond, true },
    { last_versions, true },
    { spare_beyond, false },
    { spare_of_others, false },
    { spare_in_use, false },
    { owned_by_nobody, true },
    { owned_by_one, true },
    { owned_by_what_is_not, true },
    { free_beyond, false },
    { free_and_in_use, false },
    { used_beyond, false },
    { used_too_few, false },
    { kept_for_one_who_lives, false },
    { everything, true },
    { anything, true },
};

START_TEST(damage_is_found_and_mended)
{
    struct shm_map *map = filled_map();

    napped_ns = 0;
    damages[_i].damage(map);
    for (uint32_t key = 0; key < KEYS && !damages[_i].empties; key++) {
        test_require(get_key(map, key) == SHM_MAP_OK);
        test_require(set_key(map, key) == SHM_MAP_OK);
        test_require(get_key(map, key) == SHM_MAP_OK);
    }
    call_all(map);
    check_naps();
    if (damages[_i].empties)
        ck_assert_uint_gt(map->mended.emptied, 0);
    else
        ck_assert_uint_eq(map->mended.emptied, 0);
    check_mended(map);
    map_destroy(&map);
}
END_TEST

/* Finds an entry at the head of a chain, with a second behind. */
static uint32_t first_of_two(struct shm_map *map)
{
    for (uint32_t i = 0; i < map->table.shard_n * map->table.bucket_n; i++)
        if (shm_map_buckets(map, 0)[i] != 0 &&
            shm_map_entry_at(map, shm_map_buckets(map, 0)[i])->next != 0)
            return shm_map_buckets(map, 0)[i];
    ck_abort_msg(
        "%d keys in %u buckets, no two in one", KEYS, map->table.shard_n * map->table.bucket_n);
    return 0;
}

/* The list of free entries, made anew, has cut the chain behind it. */
START_TEST(an_entry_of_nobody_is_found_when_its_key_is_set)
{
    struct shm_map *map = filled_map();
    uint32_t index = first_of_two(map), key, found = 0;

    memcpy(&key, shm_map_entry_at(map, index)->bytes, sizeof(key));
    *shm_map_owner(map, index) = 0;
    shm_map_pool_audit(map);
    ck_assert_int_eq(set_key(map, key), SHM_MAP_OK);
    ck_assert_int_eq(get_key(map, key), SHM_MAP_OK);
    for (key = 0; key < KEYS; key++)
        found += get_key(map, key) == SHM_MAP_OK;
    ck_assert_uint_eq(shm_map_count(map), found);
    ck_assert_uint_eq(map->mended.emptied, 1);
    check_mended(map);
    map_destroy(&map);
}
END_TEST

/* A foreign process's header is not believed either about the map's size. */
START_TEST(nothing_in_memory_says_where_things_are)
{
    struct shm_map *map = filled_map();

    memset(map->header, 0xff, sizeof(*map->header));
    call_all(map);
    set_key(map, 1);
    ck_assert_int_eq(get_key(map, 1), SHM_MAP_OK);
    map_destroy(&map);
}
END_TEST

static void write_at_random(struct shm_map *map, uint64_t random)
{
    size_t n = used_words(map);
    _Atomic uint32_t *words = (_Atomic uint32_t *)map->pool;

    for (uint32_t i = 0; i < WRITES; i++) {
        uint32_t at = random_below(&random, (uint32_t)n);
        uint32_t bits = random_below(&random, 33);

        words[at] = bits == 32 ? UINT32_MAX : random_below(&random, UINT32_C(1) << (bits % 16));
    }
    _exit(0);
}

START_TEST(an_attacker_writes_while_others_work)
{
    struct shm_map *map = filled_map();
    pid_t attacker, pids[WRITERS];

    for (uint32_t i = 0; i < WRITERS; i++)
        if ((pids[i] = fork_child()) == 0) {
            map_join(map, 1 + i, 1);
            for (int round = 0; round < 20; round++)
                call_all(map);
            _exit(0);
        }
    if ((attacker = fork_child()) == 0)
        write_at_random(map, random_seed());
    wait_for_child(attacker);
    for (int i = 0; i < WRITERS; i++)
        wait_for_child(pids[i]);
    call_all(map);
    check_mended(map);
    map_destroy(&map);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_forged_holder_is_not_waited_for_long, 0, (int)countof(forgeries));
    tcase_add_loop_test(tcase, a_stopped_holder_delays_nobody_for_long, 0, 2);
    tcase_add_test(tcase, a_dead_holder_delays_nobody);
    tcase_add_loop_test(tcase, damage_is_found_and_mended, 0, (int)countof(damages));
    tcase_add_test(tcase, an_entry_of_nobody_is_found_when_its_key_is_set);
    tcase_add_test(tcase, nothing_in_memory_says_where_things_are);
    tcase_add_test(tcase, an_attacker_writes_while_others_work);
}

TEST_MAIN("map_damage", add_tests)
