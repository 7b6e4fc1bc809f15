/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits used by several workers in turn. */
#include "shm/limits.h"

#include "base/compiler.h"

#include <stdio.h>
#include <string.h>

#define WORKERS 40

static const struct shm_limit_shape small = { .size = UINT64_C(8) * SHM_LIMIT_UNIT };
static const struct shm_limit_shape great = { .size = 1 << 20 };

static enum shm_limit_status take(
    struct shm_limit *limit, const char *key, uint32_t most, struct shm_limit_count **count)
{
    return shm_limit_take(limit, key, strlen(key), SECOND, most, count);
}

START_TEST(a_limit_is_reached_and_never_passed)
{
    void *memory = limit_memory(&great);
    struct shm_limit *a = limit_open(memory, &great, 1, 1),
                     *b = limit_open(memory, &great, 1025, 9);
    struct shm_limit_count *counts[5], *other;

    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(take(i % 2 == 0 ? a : b, "k", 5, &counts[i]), SHM_LIMIT_OK);
    ck_assert_int_eq(take(a, "k", 5, &other), SHM_LIMIT_REACHED);
    ck_assert_int_eq(take(b, "k", 5, &other), SHM_LIMIT_REACHED);
    ck_assert_int_eq(take(b, "other", 1, &other), SHM_LIMIT_OK);
    ck_assert_uint_eq(limit_sum(a, "k", 1), 5);
    shm_limit_give(b, other, SECOND);
    shm_limit_give(b, counts[1], SECOND);
    ck_assert_int_eq(take(a, "k", 5, &other), SHM_LIMIT_OK);
    ck_assert_int_eq(take(b, "k", 5, &counts[1]), SHM_LIMIT_REACHED);
    ck_assert_int_eq(take(b, "k", 6, &counts[1]), SHM_LIMIT_OK);
    shm_limit_give(a, other, SECOND);
    for (int i = 0; i < 5; i++)
        shm_limit_give(i % 2 == 0 ? a : b, counts[i], SECOND);
    ck_assert_uint_eq(limit_sum(a, "k", 1), 0);
    ck_assert_uint_eq(limit_used(a), 0);
    limit_check(a);
    ck_assert_uint_eq(a->mended.rebuilt + a->mended.recounted + a->mended.taken, 0);
    ck_assert_uint_eq(b->mended.rebuilt + b->mended.recounted + b->mended.taken, 0);
    limit_close(&a);
    limit_close(&b);
    limit_unmap(memory, &great);
}
END_TEST

START_TEST(the_counts_of_the_dead_are_none_at_once)
{
    void *memory = limit_memory(&great);
    struct shm_limit *a = limit_open(memory, &great, 1, 1), *b = limit_open(memory, &great, 2, 1);
    struct shm_limit_count *count;

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(take(b, "k", 3, &count), SHM_LIMIT_OK);
    ck_assert_int_eq(take(a, "k", 3, &count), SHM_LIMIT_REACHED);
    limit_died(memory, &great, b->table.locker.id);
    limit_died(memory, &great, b->table.locker.id); /* for another zone with the same memory */
    limit_close(&b);
    ck_assert_int_eq(take(a, "k", 1, &count), SHM_LIMIT_OK);
    b = limit_open(memory, &great, 2, 2);
    ck_assert_uint_eq(limit_sum(b, "k", 1), 1);
    ck_assert_uint_eq(limit_used(a), 1);
    limit_died(memory, &great, a->table.locker.id);
    limit_sweep(b, SECOND);
    ck_assert_uint_eq(limit_used(b), 0);
    ck_assert_uint_eq(b->mended.rebuilt + b->mended.recounted, 0);
    limit_close(&a);
    limit_close(&b);
    limit_unmap(memory, &great);
}
END_TEST

START_TEST(a_key_has_counts_of_many_workers)
{
    void *memory = limit_memory(&great);
    struct shm_limit *workers[WORKERS];
    struct shm_limit_count *counts[WORKERS][2], *none;

    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i] = limit_open(memory, &great, i * 50, 1 + i);
        for (int j = 0; j < 2; j++)
            ck_assert_int_eq(take(workers[i], "k", 2 * WORKERS, &counts[i][j]), SHM_LIMIT_OK);
    }
    ck_assert_int_eq(take(workers[3], "k", 2 * WORKERS, &none), SHM_LIMIT_REACHED);
    ck_assert_uint_eq(limit_sum(workers[0], "k", 1), 2 * WORKERS);
    limit_check(workers[0]);
    limit_died(memory, &great, workers[20]->table.locker.id);
    ck_assert_uint_eq(limit_sum(workers[0], "k", 1), 2 * WORKERS - 2);
    for (uint32_t i = 0; i < WORKERS; i++)
        for (int j = 0; j < 2 && i != 20; j++)
            shm_limit_give(workers[i], counts[i][j], SECOND);
    ck_assert_uint_eq(limit_used(workers[0]), 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        ck_assert_uint_eq(workers[i]->mended.rebuilt + workers[i]->mended.recounted, 0);
        limit_close(&workers[i]);
    }
    limit_unmap(memory, &great);
}
END_TEST

START_TEST(many_dead_workers_leave_nothing)
{
    void *memory = limit_memory(&great);
    struct shm_limit *workers[WORKERS], *later = limit_open(memory, &great, 3000 % SLOT_MAX, 77);
    struct shm_limit_count *count;

    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i] = limit_open(memory, &great, i, 1);
        ck_assert_int_eq(take(workers[i], "k", WORKERS, &count), SHM_LIMIT_OK);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        limit_died(memory, &great, workers[i]->table.locker.id);
        limit_close(&workers[i]);
    }
    ck_assert_uint_eq(limit_sum(later, "k", 1), 0);
    ck_assert_uint_eq(limit_used(later), 0);
    ck_assert_uint_eq(later->mended.rebuilt + later->mended.recounted, 0);
    limit_close(&later);
    limit_unmap(memory, &great);
}
END_TEST

START_TEST(a_full_zone_refuses_and_recovers)
{
    void *memory = limit_memory(&small);
    struct shm_limit *limit = limit_open(memory, &small, 1, 1);
    struct shm_limit_count *counts[9];
    char key[8];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 9; i++) {
            snprintf(key, sizeof(key), "%d", i);
            ck_assert_int_eq(
                take(limit, key, 1, &counts[i]), i < 8 ? SHM_LIMIT_OK : SHM_LIMIT_FULL);
        }
        ck_assert_int_eq(take(limit, "0", 2, &counts[8]), SHM_LIMIT_OK);
        for (int i = 8; i >= 0; i--)
            shm_limit_give(limit, counts[i], SECOND);
        ck_assert_uint_eq(limit_used(limit), 0);
        limit_check(limit);
    }
    ck_assert_uint_eq(limit->mended.rebuilt + limit->mended.recounted, 0);
    limit_close(&limit);
    limit_unmap(memory, &small);
}
END_TEST

static enum shm_limit_status pass(
    struct shm_limit *limit, const char *key, uint64_t now_ns, unsigned burst)
{
    struct shm_limit_rate rate = { .interval_ns = SECOND / 10, .burst_ns = burst * SECOND / 10 };

    return shm_limit_pass(limit, key, strlen(key), now_ns, &rate);
}

START_TEST(sessions_come_as_fast_as_their_rate)
{
    void *memory = limit_memory(&great);
    struct shm_limit *a = limit_open(memory, &great, 1, 1), *b = limit_open(memory, &great, 2, 1);
    uint64_t now = 5 * SECOND;
    int passed = 0;

    for (int i = 0; i < 10; i++)
        passed += pass(i % 2 == 0 ? a : b, "k", now, 4) == SHM_LIMIT_OK;
    ck_assert_int_eq(passed, 5); /* the first, and a burst of four */
    ck_assert_int_eq(pass(a, "k", now + SECOND / 10 - 1, 4), SHM_LIMIT_REACHED);
    ck_assert_int_eq(pass(a, "k", now + SECOND / 10, 4), SHM_LIMIT_OK);
    ck_assert_int_eq(pass(b, "k", now + SECOND / 10, 4), SHM_LIMIT_REACHED);
    ck_assert_int_eq(pass(b, "other", now, 0), SHM_LIMIT_OK);
    ck_assert_int_eq(pass(a, "other", now, 0), SHM_LIMIT_REACHED);
    passed = 0;
    for (uint64_t ms = 0; ms < 20000; ms += 3) /* attempts that fail cost nothing */
        passed += pass(ms % 2 == 0 ? a : b, "k", 20 * SECOND + ms * 1000000, 4) == SHM_LIMIT_OK;
    ck_assert_int_eq(passed, 5 + 199);
    limit_died(memory, &great, a->table.locker.id); /* sessions of the dead have come, too */
    ck_assert_int_eq(pass(b, "k", 40 * SECOND, 0), SHM_LIMIT_REACHED);
    limit_close(&a);
    limit_close(&b);
    limit_unmap(memory, &great);
}
END_TEST

START_TEST(a_changed_rate_holds_soon)
{
    const struct shm_limit_rate slow = { .interval_ns = 60 * SECOND, .burst_ns = 600 * SECOND };
    const struct shm_limit_rate fast = { .interval_ns = SECOND / 100 };
    void *memory = limit_memory(&great);
    struct shm_limit *before = limit_open(memory, &great, 1, 1);
    struct shm_limit *after = limit_open(memory, &great, 2, 1);
    uint64_t now = 5 * SECOND;

    for (int i = 0; i < 11; i++)
        ck_assert_int_eq(shm_limit_pass(before, "k", 1, now, &slow), SHM_LIMIT_OK);
    ck_assert_int_eq(shm_limit_pass(before, "k", 1, now, &slow), SHM_LIMIT_REACHED);
    ck_assert_int_eq(shm_limit_pass(after, "k", 1, now, &fast), SHM_LIMIT_OK);
    ck_assert_int_eq(shm_limit_pass(after, "k", 1, now, &fast), SHM_LIMIT_REACHED);
    ck_assert_int_eq(shm_limit_pass(after, "k", 1, now + SECOND / 100, &fast), SHM_LIMIT_OK);
    /* servers of the same configuration share an account, at any rate */
    after->rate_most_ns = slow.burst_ns + slow.interval_ns;
    ck_assert_int_eq(shm_limit_pass(after, "l", 1, now, &slow), SHM_LIMIT_OK);
    ck_assert_int_eq(shm_limit_pass(after, "l", 1, now, &fast), SHM_LIMIT_REACHED);
    limit_close(&before);
    limit_close(&after);
    limit_unmap(memory, &great);
}
END_TEST

START_TEST(accounts_are_given_up_when_they_are_settled)
{
    void *memory = limit_memory(&small);
    struct shm_limit *limit = limit_open(memory, &small, 1, 1);
    struct shm_limit_count *count;
    char key[8];

    ck_assert_int_eq(take(limit, "k", 1, &count), SHM_LIMIT_OK);
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof(key), "%d", i);
        ck_assert_int_eq(pass(limit, key, 5 * SECOND, 0), i < 7 ? SHM_LIMIT_OK : SHM_LIMIT_FULL);
    }
    for (int i = 40; i < 47; i++) {
        snprintf(key, sizeof(key), "%d", i);
        ck_assert_int_eq(pass(limit, key, 6 * SECOND, 0), SHM_LIMIT_OK);
    }
    ck_assert_int_eq(pass(limit, "last", 6 * SECOND, 0), SHM_LIMIT_FULL);
    ck_assert_uint_eq(limit_sum(limit, "k", 1), 1);
    /* a key with a relevant account stays after the last session */
    ck_assert_int_eq(pass(limit, "k", 6 * SECOND, 0), SHM_LIMIT_OK);
    shm_limit_give(limit, count, 6 * SECOND);
    ck_assert_uint_eq(limit_used(limit), 8);
    ck_assert_int_eq(pass(limit, "k", 6 * SECOND, 0), SHM_LIMIT_REACHED);
    limit_sweep(limit, 7 * SECOND);
    ck_assert_uint_eq(limit_used(limit), 0);
    limit_close(&limit);
    limit_unmap(memory, &small);
}
END_TEST

START_TEST(another_shape_is_another_zone)
{
    struct shm_limit_shape shape = great, other = great;
    void *memory;

    shm_limit_set_text(&shape, "$remote_addr", 12);
    memory = limit_memory(&shape);
    ck_assert(shm_limit_kind.is(memory, &shape));
    shm_limit_set_text(&other, "$remote_addr", 12);
    ck_assert(shm_limit_kind.is(memory, &other));
    shm_limit_set_text(&other, "$remote_addrs", 13);
    ck_assert(!shm_limit_kind.is(memory, &other));
    other = shape;
    other.size *= 2;
    ck_assert(!shm_limit_kind.is(memory, &other));
    other.size = SHM_LIMIT_UNIT - 1;
    ck_assert_uint_eq(shm_limit_kind.size(&other), 0);
    other.size = UINT64_MAX;
    ck_assert_uint_eq(shm_limit_kind.size(&other), 0);
    limit_unmap(memory, &shape);
}
END_TEST

/* The next worker repairs the leftovers of a worker killed within a call. */
START_TEST(a_dead_holder_is_not_waited_for)
{
    void *memory = limit_memory(&small);
    struct shm_limit *a = limit_open(memory, &small, 1, 1), *b = limit_open(memory, &small, 2, 1);
    struct shm_limit_count *count, *other;

    ck_assert_int_eq(take(a, "k", 2, &count), SHM_LIMIT_OK);
    ck_assert_int_eq(take(b, "k", 2, &other), SHM_LIMIT_OK);
    zone_lock(&b->table.locker, &b->shards->lock, &b->table.hold);
    b->shards->free = 0; /* a unit that was just taken */
    b->shards->used = 3;
    limit_died(memory, &small, b->table.locker.id);
    ck_assert_int_eq(take(a, "k", 2, &other), SHM_LIMIT_OK);
    shm_limit_give(a, other, SECOND);
    shm_limit_give(a, count, SECOND);
    limit_check(a);
    ck_assert_uint_eq(limit_used(a), 0);
    ck_assert_uint_eq(a->mended.rebuilt + a->mended.recounted + a->mended.taken, 0);
    b->table.hold.lock = NULL;
    limit_close(&a);
    limit_close(&b);
    limit_unmap(memory, &small);
}
END_TEST

/* A unit with a foreign shard's key has no owner: a repair frees the unit. */
START_TEST(a_unit_of_another_shard_is_freed)
{
    void *memory = limit_memory(&great);
    struct shm_limit *a = limit_open(memory, &great, 1, 1), *b = limit_open(memory, &great, 2, 1);
    struct shm_limit_count *count, *other;
    struct shm_limit_unit *unit;
    uint32_t shard = 0;

    ck_assert_int_eq(take(a, "k", 2, &count), SHM_LIMIT_OK);
    ck_assert_uint_eq(limit_used(a), 1);
    while (shm_limit_touched(a, shard) == 0)
        shard++;
    unit = shm_limit_unit_at(a, shard, 1);
    unit->words[0] ^= UINT64_MAX;
    ck_assert_uint_ne(table_shard_of(&a->table, unit->words[0]), shard);
    zone_lock(&b->table.locker, &b->shards[shard].lock, &b->table.hold);
    limit_died(memory, &great, b->table.locker.id);
    ck_assert_int_eq(take(a, "k", 2, &other), SHM_LIMIT_OK);
    limit_check(a);
    ck_assert_uint_eq(limit_used(a), 1);
    b->table.hold.lock = NULL;
    limit_close(&a);
    limit_close(&b);
    limit_unmap(memory, &great);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_limit_is_reached_and_never_passed);
    tcase_add_test(tcase, the_counts_of_the_dead_are_none_at_once);
    tcase_add_test(tcase, a_key_has_counts_of_many_workers);
    tcase_add_test(tcase, many_dead_workers_leave_nothing);
    tcase_add_test(tcase, a_full_zone_refuses_and_recovers);
    tcase_add_test(tcase, sessions_come_as_fast_as_their_rate);
    tcase_add_test(tcase, a_changed_rate_holds_soon);
    tcase_add_test(tcase, accounts_are_given_up_when_they_are_settled);
    tcase_add_test(tcase, another_shape_is_another_zone);
    tcase_add_test(tcase, a_dead_holder_is_not_waited_for);
    tcase_add_test(tcase, a_unit_of_another_shard_is_freed);
}

TEST_MAIN("limit", add_tests)
