/* SPDX-License-Identifier: BSD-2-Clause */
/* The entries of a zone: the servers with an entry, and the lookups. */
#include "upstream/zoned.h"

START_TEST(full_zone_leaves_the_rest_to_each_worker)
{
    struct zoned zoned;
    struct zoned_worker a, b;

    zoned_start(&zoned, 2, NULL);
    zoned_worker(&a, &zoned, 1, 3);
    ck_assert_str_eq(memory_log_take(&zoned.declared.log),
        "t: [error] zone \"shared\" is full: each worker has its own state of server "
        "\"127.0.0.1:9002\", 127.0.0.1:9002, of upstream \"group\"\n");
    zoned_worker(&b, &zoned, 2, 3);
    memory_log_take(&zoned.declared.log);
    ck_assert_ptr_null(group_peer(b.group, 2)->zone);
    group_expect(a.group, "abcabc");
    group_expect(b.group, "abcabc");
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(entries_that_nobody_uses_give_way)
{
    struct zoned zoned;
    struct zoned_worker a, b;

    zoned_start(&zoned, 4, NULL);
    zoned_worker(&a, &zoned, 1, 4);
    group_expect(a.group, "abcd");
    for (unsigned round = 0; round < 5; round++) {
        zoned_begin(&b, &zoned, 2, 1 + round);
        b.group->upstream.name = "other";
        group_add(b.group, 1);
        group_open(b.group);
        ck_assert_int_eq(group_peer(b.group, 0)->zone == NULL, round == 0);
        if (round == 0) {
            memory_log_take(&zoned.declared.log);
            zoned_end(&b);
            zoned_end(&a);
            zoned_begin(&a, &zoned, 1, 2);
            for (int i = 0; i < 3; i++)
                group_add(a.group, 1);
            group_wait(a.group, 10);
            group_open(a.group);
            ck_assert_uint_eq(group_peer(a.group, 2)->state->sessions, 1);
            continue;
        }
        group_session(b.group, FB_TRY_SERVED);
        ck_assert_uint_eq(group_peer(b.group, 0)->state->sessions, round);
        zoned_end(&b);
    }
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(room_for_many_is_made_in_one_pass)
{
    struct zoned zoned;
    struct zoned_worker a;
    unsigned n = GROUP_SERVERS;

    zoned_start(&zoned, n, NULL);
    zoned_worker(&a, &zoned, 1, n);
    zoned_end(&a);
    zoned_begin(&a, &zoned, 1, 2);
    a.group->upstream.name = "other";
    for (unsigned i = 0; i < n; i++)
        group_add(a.group, 1);
    group_open(a.group);
    /* the zone is full, so all names are searched everywhere; a single pass finds unused entries */
    ck_assert_uint_le(a.zone.looked_at, n * n + n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_ptr_nonnull(group_peer(a.group, i)->zone);
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(servers_that_are_alike_have_a_state_each)
{
    struct zoned zoned;
    struct zoned_worker a, b;

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    zoned_begin(&b, &zoned, 2, 1);
    for (int i = 0; i < 2; i++) {
        group_add(a.group, 1)->name = "same";
        group_add(b.group, 1)->name = "same";
        a.group->targets[i] = b.group->targets[i] = a.group->targets[0];
    }
    group_open(a.group);
    group_open(b.group);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(group_peer(a.group, i)->entry, group_peer(b.group, i)->entry);
    ck_assert_uint_ne(group_peer(a.group, 0)->entry, group_peer(a.group, 1)->entry);
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(servers_that_are_alike_are_found_without_looking_at_all)
{
    struct zoned zoned;
    struct zoned_worker a, b;

    zoned_start(&zoned, 2 * GROUP_SERVERS, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    zoned_begin(&b, &zoned, 2, 1);
    for (int i = 0; i < GROUP_SERVERS; i++) {
        group_add(a.group, 1)->name = "same";
        group_add(b.group, 1)->name = "same";
        a.group->targets[i] = b.group->targets[i] = a.group->targets[0];
    }
    group_open(a.group);
    group_open(b.group);
    ck_assert_uint_lt(a.zone.looked_at, 10 * GROUP_SERVERS);
    ck_assert_uint_lt(b.zone.looked_at, 10 * GROUP_SERVERS);
    for (unsigned i = 0; i < GROUP_SERVERS; i++)
        ck_assert_uint_eq(group_peer(a.group, i)->entry, group_peer(b.group, i)->entry);
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
}
END_TEST

/* Gives the only server n equal peers, and notes the entries. */
static void make_alike(
    struct zoned_worker *worker, const struct resolve_found *address, unsigned n, uint32_t *entries)
{
    struct resolve_found addresses[8] = { 0 };

    ck_assert_uint_le(n, countof(addresses));
    for (unsigned i = 0; i < n; i++)
        addresses[i] = *address;
    ck_assert_int_eq(
        peers_replace(worker->group->upstream.peers, worker->group->servers, addresses, n), 0);
    for (unsigned i = 0; i < n; i++)
        entries[i] = group_peer(worker->group, i)->entry;
}

START_TEST(servers_that_are_alike_come_and_go)
{
    struct zoned zoned;
    struct zoned_worker a;
    struct resolve_found address = { .weight = 0 };
    uint32_t all[8], some[8];

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    address.address = group_add(a.group, 1)->target->address;
    a.group->servers[0].target = NULL;
    group_open(a.group);
    make_alike(&a, &address, 8, all);
    for (unsigned n = 0; n <= 8; n++) { /* in a zone without other entries */
        make_alike(&a, &address, n, some);
        ck_assert_mem_eq(some, all, n * sizeof(*all));
        make_alike(&a, &address, 8, some);
        ck_assert_mem_eq(some, all, sizeof(all));
    }
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(address_that_comes_back_finds_its_state)
{
    struct zoned zoned;
    struct zoned_worker a;
    struct resolve_found address = { .weight = 0 };
    struct choice choice;
    uint32_t entry;

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    address.address = group_add(a.group, 1)->target->address;
    a.group->servers[0].target = NULL;
    group_open(a.group);
    ck_assert_int_eq(peers_replace(a.group->upstream.peers, a.group->servers, &address, 1), 0);
    entry = group_peer(a.group, 0)->entry;
    group_begin(a.group, &choice);
    ck_assert_int_eq(group_next(a.group, &choice), 'a');
    ck_assert_int_eq(peers_replace(a.group->upstream.peers, a.group->servers, NULL, 0), 0);
    group_expect(a.group, "-");
    ck_assert_int_eq(peers_replace(a.group->upstream.peers, a.group->servers, &address, 1), 0);
    ck_assert_uint_eq(group_peer(a.group, 0)->entry, entry);
    ck_assert_uint_eq(peer_conns(group_peer(a.group, 0)), 1);
    choice_end(&choice, FB_TRY_SERVED);
    ck_assert_uint_eq(peer_conns(group_peer(a.group, 0)), 0);
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

static void zone_entry_tests(TCase *tcase)
{
    tcase_add_test(tcase, full_zone_leaves_the_rest_to_each_worker);
    tcase_add_test(tcase, entries_that_nobody_uses_give_way);
    tcase_add_test(tcase, room_for_many_is_made_in_one_pass);
    tcase_add_test(tcase, servers_that_are_alike_have_a_state_each);
    tcase_add_test(tcase, servers_that_are_alike_are_found_without_looking_at_all);
    tcase_add_test(tcase, servers_that_are_alike_come_and_go);
    tcase_add_test(tcase, address_that_comes_back_finds_its_state);
}

TEST_MAIN("upstream zone_entry", zone_entry_tests)
