/* SPDX-License-Identifier: BSD-2-Clause */
/* An operator's states of servers, heeded by all workers; and the master's view. */
#include "upstream/zone.h"
#include "upstream/zone_private.h"
#include "upstream/zoned.h"

#include <errno.h>
#include <string.h>

/* Says something of a server of the group, as the master does for an operator. */
static void say_by_name(struct zoned_worker *worker, const char *server, enum upstream_operator to)
{
    struct upstream upstream = worker->group->upstream;

    upstream.zone = worker->zoned->zone;
    upstream.peers = NULL;
    ck_assert_int_eq(
        upstream_operator_set(&upstream, server, to, worker->group->loop.clock.mono_ms), 0);
}

static void say(struct zoned_worker *worker, unsigned server, enum upstream_operator to)
{
    say_by_name(worker, worker->group->servers[server].name, to);
}

START_TEST(operator_is_heeded_by_all)
{
    struct zoned zoned, after;
    struct zoned_worker a, b;
    struct choice choice;

    zoned_start(&zoned, 8, NULL);
    zoned_worker(&a, &zoned, 1, 3);
    zoned_begin(&b, &zoned, 2, 1);
    for (int i = 0; i < 3; i++)
        group_add(b.group, 1)->down = i == 2;
    group_open(b.group);
    say(&a, 0, UPSTREAM_DRAIN);
    say(&a, 2, UPSTREAM_DOWN);
    group_expect(a.group, "bb");
    group_begin(a.group, &choice);
    group_expect(b.group, "bb");
    say(&a, 0, UPSTREAM_DOWN);
    say(&a, 0, UPSTREAM_AUTO);
    say(&a, 1, UPSTREAM_DRAIN);
    group_expect(b.group, "aa");
    say(&a, 2, UPSTREAM_UP);
    group_expect(b.group, "acacac");
    ck_assert_int_eq(group_next(a.group, &choice), 'a');
    ck_assert_uint_eq(choice.left, 1);
    choice_end(&choice, FB_TRY_SERVED);
    zoned_start(&after, 8, &zoned);
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
    zoned_worker(&a, &after, 1, 3);
    group_expect(a.group, "caca");
    zoned_end(&a);
    zoned_stop(&after);
}
END_TEST

START_TEST(operator_begins_a_slow_start)
{
    struct zoned zoned;
    struct zoned_worker a;
    unsigned n = 0;

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    group_add(a.group, 1)->slow_start = 1000;
    group_add(a.group, 1);
    group_open(a.group);
    group_expect(a.group, "abab");
    say(&a, 0, UPSTREAM_DOWN);
    group_expect(a.group, "bbb");
    group_wait(a.group, 5000);
    say(&a, 0, UPSTREAM_AUTO);
    group_wait(a.group, 500); /* half the weight: a third of the sessions */
    for (int i = 0; i < 300; i++)
        n += group_session(a.group, FB_TRY_SERVED) == 'a';
    ck_assert_uint_ge(n, 99);
    ck_assert_uint_le(n, 101);
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(operator_can_speak_of_as_many_servers_as_fit)
{
    struct zoned zoned;
    struct zoned_worker a;
    struct upstream upstream;

    zoned_start(&zoned, 2, NULL);
    zoned_worker(&a, &zoned, 1, 3);
    memory_log_take(&zoned.declared.log);
    say(&a, 0, UPSTREAM_DOWN);
    say(&a, 2, UPSTREAM_DOWN);
    upstream = a.group->upstream;
    upstream.zone = zoned.zone;
    ck_assert_int_eq(
        upstream_operator_set(&upstream, a.group->servers[1].name, UPSTREAM_DOWN, 1), -1);
    ck_assert_int_eq(errno, ENOSPC);
    group_expect(a.group, "bb");
    say(&a, 0, UPSTREAM_AUTO);
    say(&a, 1, UPSTREAM_DOWN);
    group_expect(a.group, "aa");
    upstream.zone = NULL;
    ck_assert_int_eq(
        upstream_operator_set(&upstream, a.group->servers[1].name, UPSTREAM_DOWN, 1), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(master_reads_the_numbers)
{
    struct zoned zoned;
    struct zoned_worker a, b;
    struct upstream upstream;
    struct choice choice;
    struct seen seen = { .n = 0 };

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    group_add(a.group, 1);
    group_add(a.group, 1);
    upstream = a.group->upstream;
    upstream.zone = zoned.zone;
    say(&a, 1, UPSTREAM_UP);
    ck_assert_int_eq(zoned_read(&upstream, 0, &seen), 0);
    ck_assert_uint_eq(seen.n, 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_ptr_eq(seen.numbers[i].server, &a.group->servers[i]);
        ck_assert_int_eq(seen.numbers[i].said, i == 0 ? UPSTREAM_AUTO : UPSTREAM_UP);
        ck_assert_str_eq(seen.numbers[i].address, i == 0 ? "127.0.0.1:9000" : "127.0.0.1:9001");
        ck_assert(!seen.numbers[i].is_used);
    }
    seen.n = 0;
    group_open(a.group);
    zoned_worker(&b, &zoned, 2, 1);
    group_begin(b.group, &choice);
    ck_assert_int_eq(group_next(b.group, &choice), 'a');
    group_expect(a.group, "a");
    ck_assert_int_eq(group_session(a.group, FB_TRY_FAILED), 'b');
    say(&a, 0, UPSTREAM_DRAIN);
    ck_assert_int_eq(zoned_read(&upstream, a.group->loop.clock.mono_ms, &seen), 0);
    ck_assert_uint_eq(seen.n, 2);
    ck_assert(seen.numbers[0].is_used);
    ck_assert_ptr_eq(seen.numbers[0].server, &a.group->servers[0]);
    ck_assert_str_eq(seen.numbers[0].address, "127.0.0.1:9000");
    ck_assert_uint_eq(seen.numbers[0].conns, 1);
    ck_assert_int_eq(seen.numbers[0].said, UPSTREAM_DRAIN);
    ck_assert(!seen.numbers[0].failed);
    ck_assert_uint_eq(seen.numbers[1].failures, 1);
    ck_assert(seen.numbers[1].failed);
    choice_end(&choice, FB_TRY_SERVED);
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(master_reads_a_zone_once_for_all_its_groups)
{
    struct zoned zoned;
    struct zoned_worker a, b;
    struct upstream groups[2];
    struct seen seen = { .n = 0 };

    zoned_start(&zoned, 8, NULL);
    zoned_worker(&a, &zoned, 1, 2);
    zoned_begin(&b, &zoned, 2, 1);
    b.group->upstream.name = "other";
    for (int i = 0; i < 3; i++)
        group_add(b.group, 1)->name = "same";
    group_open(b.group);
    for (int i = 0; i < 2; i++) {
        groups[i] = i == 0 ? a.group->upstream : b.group->upstream;
        groups[i].zone = zoned.zone;
        ck_assert_int_eq(upstream_status_read(&groups[i], 0, see, &seen), 0);
    }
    ck_assert_uint_eq(seen.n, 5);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert(seen.numbers[i].is_used);
        ck_assert_ptr_eq(
            seen.numbers[i].server, i < 2 ? &a.group->servers[i] : &b.group->servers[0]);
    }
    ck_assert_uint_eq(zoned.zone->looked_at, 8);
    upstream_status_forget(zoned.zone);
    ck_assert_int_eq(zoned_read(&groups[1], 0, &seen), 0);
    ck_assert_uint_eq(zoned.zone->looked_at, 16);
    zoned_end(&a);
    zoned_end(&b);
    zoned_stop(&zoned);
}
END_TEST

/* Sets the state of a server, and asserts the peers, of three, without sessions. */
static void say_off(
    struct zoned_worker *worker, const char *server, enum upstream_operator to, const char *off)
{
    say_by_name(worker, server, to);
    group_session(worker->group, FB_TRY_SERVED);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(group_peer(worker->group, i)->is_off, off[i] == '1');
}

START_TEST(operator_can_speak_of_an_address)
{
    struct resolve_found addresses[2] = { { .weight = 0 } };
    struct fb_target target;
    struct seen seen = { .n = 0 };
    struct upstream upstream;
    struct zoned_worker a;
    struct zoned zoned;
    const char *name;

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    name = group_add(a.group, 1)->name;
    a.group->servers[0].target = NULL;
    group_add(a.group, 1);
    group_open(a.group);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_ptr_null(target_parse(i == 0 ? "127.0.1.1:80" : "127.0.1.2:80", false, &target));
        addresses[i].address = target.address;
    }
    ck_assert_int_eq(peers_replace(a.group->upstream.peers, a.group->servers, addresses, 2), 0);
    say_off(&a, "127.0.1.1:80", UPSTREAM_DRAIN, "100");
    say_off(&a, "127.0.1.1:80", UPSTREAM_AUTO, "000");
    say_off(&a, name, UPSTREAM_DOWN, "110");
    say_off(&a, "127.0.1.2:80", UPSTREAM_UP, "100");
    upstream = a.group->upstream;
    upstream.zone = zoned.zone;
    ck_assert_int_eq(zoned_read(&upstream, 0, &seen), 0);
    ck_assert_uint_eq(seen.n, 3);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(seen.numbers[i].said,
            strcmp(seen.numbers[i].address, "127.0.1.1:80") == 0 ? UPSTREAM_DOWN : UPSTREAM_UP);
    say_off(&a, "127.0.1.2:80", UPSTREAM_AUTO, "110");
    say_off(&a, name, UPSTREAM_AUTO, "000");
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(master_shows_no_address_that_is_none)
{
    struct resolve_found address = { .weight = 0 };
    struct seen seen = { .n = 0 };
    struct upstream upstream;
    struct zoned_worker a;
    struct zoned zoned;

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    address.address = group_add(a.group, 1)->target->address;
    a.group->servers[0].target = NULL;
    group_open(a.group);
    ck_assert_int_eq(peers_replace(a.group->upstream.peers, a.group->servers, &address, 1), 0);
    memset(a.zone.entries[group_peer(a.group, 0)->entry].address, '\033', ADDRESS_TEXT);
    upstream = a.group->upstream;
    upstream.zone = zoned.zone;
    ck_assert_int_eq(zoned_read(&upstream, 0, &seen), 0);
    ck_assert_uint_eq(seen.n, 1);
    ck_assert_str_eq(seen.numbers[0].address, "");
    ck_assert(!seen.numbers[0].is_used);
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

START_TEST(operator_overrules_health_checks)
{
    struct zoned zoned;
    struct zoned_worker a;

    zoned_start(&zoned, 8, NULL);
    zoned_begin(&a, &zoned, 1, 1);
    group_add(a.group, 1);
    group_add(a.group, 1)->is_checked = true;
    group_open(a.group);
    peers_set_health(a.group->upstream.peers, group_peer(a.group, 1), PEER_HEALTH_BAD);
    group_expect(a.group, "aa");
    say(&a, 1, UPSTREAM_UP);
    group_expect(a.group, "aba");
    say(&a, 1, UPSTREAM_DRAIN);
    group_expect(a.group, "aa");
    say(&a, 1, UPSTREAM_AUTO);
    group_expect(a.group, "aa");
    zoned_end(&a);
    zoned_stop(&zoned);
}
END_TEST

static void operators_tests(TCase *tcase)
{
    tcase_add_test(tcase, operator_is_heeded_by_all);
    tcase_add_test(tcase, operator_begins_a_slow_start);
    tcase_add_test(tcase, operator_can_speak_of_as_many_servers_as_fit);
    tcase_add_test(tcase, master_reads_the_numbers);
    tcase_add_test(tcase, master_reads_a_zone_once_for_all_its_groups);
    tcase_add_test(tcase, operator_can_speak_of_an_address);
    tcase_add_test(tcase, master_shows_no_address_that_is_none);
    tcase_add_test(tcase, operator_overrules_health_checks);
}

TEST_MAIN("operators", operators_tests)
