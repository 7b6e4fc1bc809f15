/* SPDX-License-Identifier: BSD-2-Clause */
/* The log of a map's changes: readers get all in order, or a notice of loss, after any death of a
 * writer and any damage. */
#include "shm/map_log.h"
#include "shm/map_private.h"
#include "shm/memory.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOW 5
#define KEYS 32
#define KILLS 60
#define RECORD_BYTES 24 /* bytes of a record in the log, for an empty key */
#define MAPS 8

static const struct shm_map_shape shape = { 64, 8, 16, 0 };

struct logged {
    struct shm_map *map;
    void *memory;
    struct shm_map_reader reader;
    char key[16];
};

static void begin(struct logged *logged)
{
    memset(logged, 0, sizeof(*logged));
    logged->map = map_create(&shape);
    logged->memory = shared_memory(shm_map_log_kind.size(&shape));
    ck_assert_int_eq(shm_map_log_kind.init(logged->memory, &shape), 0);
    ck_assert(shm_map_log_kind.is(logged->memory, &shape));
    shm_map_log_open(logged->map, logged->memory);
    shm_map_log_begin(logged->map, &logged->reader);
}

static void end(struct logged *logged)
{
    map_destroy(&logged->map);
}

static void set(struct logged *logged, const char *key, uint64_t expires_ms)
{
    test_require(
        shm_map_set(logged->map, key, strlen(key), NOW, "v", 1, expires_ms, NULL) == SHM_MAP_OK);
}

/* The next change: "+key", "-key", "xkey" for an expiry, "!" for a loss, or "" for none. */
static const char *next(struct logged *logged)
{
    static char text[20];
    char room[8];
    struct shm_map_changed changed;

    if (!shm_map_log_next(logged->map, &logged->reader, room, &changed))
        return "";
    snprintf(text, sizeof(text), "%c%.*s", " +-!x"[changed.what], (int)changed.key_n,
        changed.key != NULL ? (const char *)changed.key : "");
    return text;
}

START_TEST(changes_are_told)
{
    struct logged a;

    begin(&a);
    ck_assert_str_eq(next(&a), "");
    set(&a, "k", 0);
    set(&a, "k", 0);
    ck_assert_int_eq(shm_map_add(a.map, "k", 1, NOW, 1, NULL), SHM_MAP_NOT_A_NUMBER);
    shm_map_append(a.map, "k", 1, NOW, "more", 4, 0);
    shm_map_remove(a.map, "k", 1, NOW, 77);
    shm_map_delete(a.map, "k", 1, NOW);
    shm_map_delete(a.map, "k", 1, NOW);
    ck_assert_str_eq(next(&a), "+k");
    ck_assert_str_eq(next(&a), "+k");
    ck_assert_str_eq(next(&a), "+k");
    ck_assert_str_eq(next(&a), "-k");
    ck_assert_str_eq(next(&a), "");
    shm_map_log_audit(a.map, &a.reader);
    ck_assert_str_eq(next(&a), "");
    end(&a);
}
END_TEST

/* A key removed by a sweep has expired; a key only seen to have expired still exists. */
START_TEST(an_expired_key_is_told_once)
{
    struct logged a;
    const char *change;
    int set_n = 0, expired_n = 0;

    begin(&a);
    set(&a, "old", NOW + 1);
    shm_map_sweep(a.map, NOW + 1);
    ck_assert_uint_eq(shm_map_count(a.map), 0);
    set(&a, "new", NOW + 1);
    ck_assert_int_eq(shm_map_delete(a.map, "new", 3, NOW + 2), SHM_MAP_ABSENT);
    shm_map_log_audit(a.map, &a.reader);
    for (int i = 0; i < 3; i++) { /* the keys' shards may be read in either order */
        change = next(&a);
        set_n += change[0] == '+';
        expired_n += strcmp(change, "xold") == 0;
    }
    ck_assert_int_eq(set_n, 2);
    ck_assert_int_eq(expired_n, 1);
    ck_assert_str_eq(next(&a), "");
    end(&a);
}
END_TEST

START_TEST(who_is_slow_is_told_of_a_loss)
{
    struct logged a;

    begin(&a);
    for (int i = 0; i < 3000; i++)
        set(&a, "k", 0);
    ck_assert_str_eq(next(&a), "!");
    ck_assert_str_eq(next(&a), "");
    set(&a, "k", 0);
    ck_assert_str_eq(next(&a), "+k");
    ck_assert_str_eq(next(&a), "");
    end(&a);
}
END_TEST

/* The record of an empty key is shorter than the rest, so a record goes round the end of a ring.
 * The record is out of reach of the first records of other shards, with the rings beside. */
START_TEST(a_record_goes_round)
{
    unsigned records = (1u << _i) / RECORD_BYTES; /* before the record, in a ring of the size */

    for (int i = 0; i < MAPS; i++) { /* the seed of a map decides the shard of a key */
        struct logged a;
        unsigned told = 0;

        begin(&a);
        for (unsigned j = 0; j < records; j++) {
            set(&a, "", 0);
            test_require(strcmp(next(&a), "+") == 0);
        }
        set(&a, "", 0);
        for (char key[] = "a"; key[0] <= 'z'; key[0]++)
            set(&a, key, 0);
        for (const char *change = next(&a); change[0] != 0; change = next(&a)) {
            test_require(change[0] == '+');
            told++;
        }
        ck_assert_uint_eq(told, 1 + 26);
        end(&a);
    }
}
END_TEST

/* A process of an earlier binary writes to the map, and knows of no log. */
START_TEST(what_nobody_has_logged_is_a_loss)
{
    struct logged a;

    begin(&a);
    shm_map_log_open(a.map, NULL);
    set(&a, "k", 0);
    shm_map_log_open(a.map, a.memory);
    ck_assert_str_eq(next(&a), "");
    shm_map_log_audit(a.map, &a.reader);
    ck_assert_str_eq(next(&a), "!");
    shm_map_log_audit(a.map, &a.reader);
    ck_assert_str_eq(next(&a), ""); /* once */
    set(&a, "k", 0);
    ck_assert_str_eq(next(&a), "!"); /* the gap before it */
    set(&a, "k", 0);
    ck_assert_str_eq(next(&a), "+k");
    end(&a);
}
END_TEST

START_TEST(wishes_are_taken_once)
{
    struct logged a;

    begin(&a);
    shm_map_log_wish(a.map, 3);
    shm_map_log_wish(a.map, 1029);
    ck_assert_uint_eq(shm_map_log_take_wishes(a.map, 0), 8);
    ck_assert_uint_eq(shm_map_log_take_wishes(a.map, 0), 0);
    ck_assert_uint_eq(shm_map_log_take_wishes(a.map, 16), 32);
    end(&a);
}
END_TEST

START_TEST(damage_misleads_nobody)
{
    size_t size = shm_map_log_kind.size(&shape);
    uint64_t random = 7;
    struct logged a;

    begin(&a);
    for (int i = 0; i < 2000; i++) {
        size_t at = 4096 + random_below(&random, (uint32_t)size - 4096 - 8);
        uint64_t word = next_random(&random);

        set(&a, i % 2 == 0 ? "even" : "odd", 0);
        memcpy((char *)a.memory + (i % 4 == 0 ? 4096 + at % 16384 : at), &word, 8);
        for (int n = 0; n < 100; n++) {
            const char *text = next(&a);

            if (text[0] == '\0')
                break;
            test_require(
                text[0] == '!' || strcmp(text + 1, "even") == 0 || strcmp(text + 1, "odd") == 0);
        }
        shm_map_log_audit(a.map, &a.reader);
    }
    end(&a);
}
END_TEST

/* Sets and deletes keys at random. */
static void write_for_ever(struct shm_map *map, uint64_t random)
{
    for (;;) {
        char key[8];
        size_t n = (size_t)snprintf(key, sizeof(key), "%u", random_below(&random, KEYS));

        if (random_below(&random, 3) == 0)
            shm_map_delete(map, key, n, NOW);
        else
            shm_map_set(map, key, n, NOW, key, n, 0, NULL);
    }
}

/* Tracks the existing keys in a reader's view, by all records. */
static void follow(struct logged *a, bool there[KEYS])
{
    const char *text;

    while ((text = next(a))[0] != '\0') {
        if (text[0] == '!')
            for (uint32_t i = 0; i < KEYS; i++) {
                char key[8];
                size_t n = (size_t)snprintf(key, sizeof(key), "%u", i);
                struct shm_map_item item = { .room = 0 };

                there[i] = shm_map_get(a->map, key, n, NOW, &item) != SHM_MAP_ABSENT;
            }
        else
            there[strtoul(text + 1, NULL, 10)] = text[0] == '+';
    }
}

/* A reader of the log knows the map, despite killed writers. */
START_TEST(a_killed_writer_leaves_no_reader_wrong)
{
    bool there[KEYS] = { false };
    struct logged a;

    begin(&a);
    for (uint32_t kill = 0; kill < KILLS; kill++) {
        pid_t pids[2];

        for (uint32_t i = 0; i < 2; i++)
            if ((pids[i] = fork_child()) == 0) {
                map_join(a.map, 1 + i, 1 + kill);
                shm_map_log_open(a.map, a.memory);
                write_for_ever(a.map, 2 * kill + i);
            }
        for (uint32_t i = 0; i < 20 + kill % 7 * 20; i++)
            follow(&a, there);
        for (uint32_t i = 0; i < 2; i++) {
            kill_child(pids[i]);
            map_bury(a.map, 1 + i, 1 + kill);
        }
        follow(&a, there);
        shm_map_log_audit(a.map, &a.reader);
        follow(&a, there);
        for (uint32_t i = 0; i < KEYS; i++) {
            char key[8];
            size_t n = (size_t)snprintf(key, sizeof(key), "%u", i);
            struct shm_map_item item = { .room = 0 };
            bool is = shm_map_get(a.map, key, n, NOW, &item) != SHM_MAP_ABSENT;

            ck_assert_msg(
                there[i] == is, "after %u kills key %u is %sthere", kill, i, is ? "" : "not ");
        }
        map_check(a.map);
    }
    end(&a);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, changes_are_told);
    tcase_add_test(tcase, an_expired_key_is_told_once);
    tcase_add_test(tcase, who_is_slow_is_told_of_a_loss);
    tcase_add_loop_test(tcase, a_record_goes_round, 10, 17);
    tcase_add_test(tcase, what_nobody_has_logged_is_a_loss);
    tcase_add_test(tcase, wishes_are_taken_once);
    tcase_add_test(tcase, damage_misleads_nobody);
    tcase_add_test(tcase, a_killed_writer_leaves_no_reader_wrong);
}

TEST_MAIN("map_log", add_tests)
