/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups with shared state: by two workers, beyond a death, over a reload; and a damaged zone. */
#include "upstream/zoned.h"

#include <errno.h>

START_TEST(workers_choose_as_one)
{
    struct zoned zoned;
    struct zoned_worker a, b;

    zoned_start(&zoned, 8, NULL);
    zoned_worker(&a, &zoned, 1, 3);
    zoned_worker(&b, &zoned, 2, 3);
    group_expect(a.group, "a");
    group_expect(b.group, "b");
    group_expect(a.group, "ca");
    group_expect(b.group, "bca");
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(workers_share_failures)
{
    struct zoned zoned;
    struct zoned_worker a, b;

    zoned_start(&zoned, 8, NULL);
    zoned_worker(&a, &zoned, 1, 2);
    zoned_worker(&b, &zoned, 2, 2);
    ck_assert_int_eq(group_session(a.group, FB_TRY_FAILED), 'a');
    group_expect(b.group, "bbb");
    group_expect(a.group, "bbb");
    group_wait(a.group, 10001);
    group_wait(b.group, 10001);
    group_expect(b.group, "bba");
    group_expect(a.group, "baba");
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(limit_of_connections_is_that_of_all_workers)
{
    struct zoned zoned;
    struct zoned_worker a, b;
    struct choice choices[3];

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    zoned_begin(&b, &zoned, 2, 1);
    group_add(a.group, 1)->max_conns = 3;
    group_add(b.group, 1)->max_conns = 3;
    group_open(a.group);
    group_open(b.group);
    for (int i = 0; i < 3; i++) {
        struct group *group = i == 1 ? a.group : b.group;

        group_begin(group, &choices[i]);
        ck_assert_int_eq(group_next(group, &choices[i]), 'a');
    }
    group_expect(a.group, "-");
    ck_assert_uint_eq(peer_conns(group_peer(a.group, 0)), 3);

    zoned_bury(&b); /* with two tries, both removed */
    ck_assert_uint_eq(peer_conns(group_peer(a.group, 0)), 1);
    group_expect(a.group, "aa");
    choice_end(&choices[1], FB_TRY_SERVED);
    ck_assert_uint_eq(peer_conns(group_peer(a.group, 0)), 0);
    b.zone.row = calloc(b.zone.n, sizeof(*b.zone.row)); /* a ghost's rows from here on */
    for (unsigned i = 0; i < b.group->upstream.peers->n; i++)
        group_peer(b.group, i)->conns = &b.zone.row[0];
    choice_end(&choices[0], FB_TRY_SERVED);
    choice_end(&choices[2], FB_TRY_SERVED);
    group_close(&b.group);
    free(b.zone.row);
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(lock_of_a_dead_worker_is_free)
{
    struct zoned zoned;
    struct zoned_worker a, b;
    struct zone_hold hold = { .lock = NULL };

    zoned_start(&zoned, 8, NULL);
    zoned_worker(&a, &zoned, 1, 2);
    zoned_worker(&b, &zoned, 2, 2);
    upstream_zone_lock(&b.zone, b.group->upstream.peers->lock, &hold);
    zoned_bury(&b);
    group_expect(a.group, "abab");
    ck_assert_uint_eq(a.zone.table.locker.taken, 0);
    group_close(&b.group);
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(lock_is_taken_from_a_worker_that_stands_still)
{
    struct zoned zoned;
    struct zoned_worker a, b;
    struct zone_hold hold = { .lock = NULL };

    zoned_start(&zoned, 8, NULL);
    zoned_worker(&a, &zoned, 1, 2);
    zoned_worker(&b, &zoned, 2, 2);
    upstream_zone_lock(&b.zone, b.group->upstream.peers->lock, &hold);
    group_expect(a.group, "abab");
    ck_assert_uint_eq(a.zone.table.locker.taken, 1);
    ck_assert(!zone_lock_release(&hold));
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
}
END_TEST

/* Chooses in turn, while a second worker takes the lock and a place of the peer. */
static struct peer *choose_and_lose_lock(struct choice *choice)
{
    struct upstream_zone *zone = choice->upstream->zone;
    shm_row *other = shm_metrics_row(zone->metrics, &zone->rows_shape, 2);
    struct peer *peer = round_robin_choose(choice);

    ZONE_STORE(table_lock_of(&zone->table, choice->upstream->peers->lock)->word, 0);
    if (peer != NULL)
        PEER_STORE(other[peer->entry], PEER_LOAD(other[peer->entry]) + 1);
    return peer;
}

static const struct balancer losing = { .name = "losing", .choose = choose_and_lose_lock };

START_TEST(limit_holds_when_the_lock_is_lost)
{
    struct zoned zoned;
    struct zoned_worker a, b;
    struct choice choice;

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    zoned_worker(&b, &zoned, 2, 2);
    a.group->upstream.balance.balancer = &losing;
    group_add(a.group, 1)->max_conns = 1;
    group_add(a.group, 1)->max_conns = _i == 0 ? 1 : 2;
    group_open(a.group);
    group_begin(a.group, &choice);
    ck_assert_int_eq(group_next(a.group, &choice), _i == 0 ? '-' : 'b');
    ck_assert_uint_eq(peer_conns(group_peer(a.group, 0)), 1);
    ck_assert_uint_eq(peer_conns(group_peer(a.group, 1)), _i == 0 ? 1 : 2);
    choice_end(&choice, FB_TRY_SERVED);
    zoned_end(&b);
    ck_assert_uint_eq(peer_conns(group_peer(a.group, 0)), 0);
    ck_assert_uint_eq(peer_conns(group_peer(a.group, 1)), 0);
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(state_is_kept_over_a_reload)
{
    struct zoned before, after;
    struct zoned_worker a, b;

    zoned_start(&before, 8, NULL);
    zoned_worker(&a, &before, 1, 2);
    ck_assert_int_eq(group_session(a.group, FB_TRY_FAILED), 'a');
    zoned_start(&after, 8, &before);
    zoned_worker(&b, &after, 2, 3); /* another server is new */
    group_expect(b.group, "bcb");
    zoned_end(&a);
    zoned_stop(&before);
    ck_assert_uint_eq(group_peer(b.group, 0)->state->failures, 1);
    ck_assert_uint_eq(group_peer(b.group, 1)->state->sessions, 2);
    zoned_end(&b);
    zoned_stop(&after);
}
END_TEST

START_TEST(zone_of_another_size_begins_anew)
{
    struct zoned before, after;
    struct zoned_worker a, b;

    zoned_start(&before, 8, NULL);
    zoned_worker(&a, &before, 1, 1);
    group_expect(a.group, "a");
    zoned_start(&after, 9, &before);
    zoned_worker(&b, &after, 2, 1);
    ck_assert_uint_eq(group_peer(b.group, 0)->state->sessions, 0);
    zoned_end(&a);
    zoned_stop(&before);
    zoned_end(&b);
    zoned_stop(&after);
}
END_TEST

/* Writes random bytes anywhere into the memory writable by workers: entries and locks, and another
 * row. */
static void damage(struct zoned_worker *attacker, uint64_t *random)
{
    struct upstream_zone_layout l = upstream_zone_layout(&attacker->zone.shape);
    uint64_t *words = (void *)attacker->zone.table.shards, word = next_random(random);
    uint32_t n = (uint32_t)((l.size - l.locks) / sizeof(*words));

    if (random_below(random, 3) == 0)
        word = random_below(random, 3);
    else if (random_below(random, 3) == 0)
        word = UINT64_MAX - random_below(random, 3);
    if (random_below(random, 4) == 0)
        attacker->zone.row[random_below(random, attacker->zone.n)] = (int64_t)word;
    else
        words[random_below(random, n)] = word;
}

START_TEST(damage_is_survived)
{
    uint64_t random = 7000 + (uint64_t)_i;
    struct upstream upstream;
    struct zoned zoned;
    struct zoned_worker a, b, attacker;
    struct seen seen;
    unsigned served[3] = { 0 };

    zoned_start(&zoned, 4, NULL);
    zoned_worker(&a, &zoned, 1, 3);
    zoned_worker(&b, &zoned, 2, 3);
    zoned_begin(&attacker, &zoned, 3, 1);
    group_add(attacker.group, 1);
    group_open(attacker.group);
    for (unsigned i = 0; i < 400; i++) {
        struct zoned_worker *worker = i % 2 == 0 ? &a : &b;
        struct choice choice;

        damage(&attacker, &random);
        worker->zone.table.locker.patience = 1;
        worker->zone.table.locker.impatient_at = worker->zone.table.locker.acquired;
        group_begin(worker->group, &choice);
        while (choice_next(&choice) == FB_CHOICE_SERVER)
            choice_end(&choice, random_below(&random, 2) == 0 ? FB_TRY_FAILED : FB_TRY_SERVED);
        group_wait(worker->group, 1000);
        seen.n = 0;
        upstream = worker->group->upstream;
        upstream.zone = zoned.zone;
        ck_assert_int_eq(zoned_read(&upstream, 1, &seen), 0);
        if (i % 50 == 0) {
            zoned_end(worker);
            zoned_worker(worker, &zoned, i % 2 + 1, 3);
            memory_log_take(&zoned.declared.log);
        }
    }
    zones_slot_released(&zoned.declared.zones, attacker.group->upstreams.id);
    attacker.zone.row = calloc(attacker.zone.n, sizeof(*attacker.zone.row));

    /* the damage fades away: after some sessions all servers have their turns again */
    group_wait(a.group, 100 * 60000);
    for (unsigned i = 0; i < 3; i++)
        PEER_STORE(group_peer(a.group, i)->state->health, PEER_HEALTH_UNCHECKED);
    for (unsigned i = 0; i < 3000; i++) {
        char letter;

        a.zone.table.locker.patience = 1;
        a.zone.table.locker.impatient_at = a.zone.table.locker.acquired;
        group_wait(a.group, 11000);
        letter = group_session(a.group, FB_TRY_SERVED);
        ck_assert_int_ne(letter, '-');
        served[letter - 'a'] += i >= 2700;
    }
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(served[i], 100);
    group_close(&attacker.group);
    free(attacker.zone.row);
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(impossible_zones_are_refused)
{
    struct declared declared;
    char name[ZONE_NAME_MAX + 1];

    declared_start(&declared);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert_ptr_null(upstream_zone_declare(&declared.zones, declared.arena, name, 65536));
    ck_assert_int_eq(errno, ENAMETOOLONG);
    ck_assert_ptr_null(upstream_zone_declare(&declared.zones, declared.arena, "", 65536));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(upstream_zone_declare(&declared.zones, declared.arena, "a", 1));
    ck_assert_int_eq(errno, EOVERFLOW);
    ck_assert_ptr_nonnull(upstream_zone_declare(&declared.zones, declared.arena, "a", UINT64_MAX));
    ck_assert_ptr_null(upstream_zone_declare(&declared.zones, declared.arena, "a", 65536));
    ck_assert_int_eq(errno, EEXIST);
    declared_stop(&declared);
}
END_TEST

static void zone_tests(TCase *tcase)
{
    tcase_add_test(tcase, workers_choose_as_one);
    tcase_add_test(tcase, workers_share_failures);
    tcase_add_test(tcase, limit_of_connections_is_that_of_all_workers);
    tcase_add_test(tcase, lock_of_a_dead_worker_is_free);
    tcase_add_test(tcase, lock_is_taken_from_a_worker_that_stands_still);
    tcase_add_loop_test(tcase, limit_holds_when_the_lock_is_lost, 0, 2);
    tcase_add_test(tcase, state_is_kept_over_a_reload);
    tcase_add_test(tcase, zone_of_another_size_begins_anew);
    tcase_add_loop_test(tcase, damage_is_survived, 0, 20);
    tcase_add_test(tcase, impossible_zones_are_refused);
}

TEST_MAIN("upstream zone", zone_tests)
