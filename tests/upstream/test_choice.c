/* SPDX-License-Identifier: BSD-2-Clause */
/* The choice of a peer: the orders that nginx's round robin has, failures and recovery, backups,
 * limits of connections, a single peer, and slow_start. */
#include "upstream/groups.h"

START_TEST(equal_servers_take_turns)
{
    struct group *group = group_create();

    for (int i = 0; i < 3; i++)
        group_add(group, 1);
    group_open(group);
    group_expect(group, "abcabcabc");
    group_close(&group);
}
END_TEST

START_TEST(weights_are_mixed_smoothly)
{
    struct group *group = group_create();

    group_add(group, 5);
    group_add(group, 1);
    group_add(group, 1);
    group_open(group);
    group_expect(group, "aabacaa"
                        "aabacaa");
    group_close(&group);
}
END_TEST

START_TEST(unequal_weights_are_mixed_smoothly)
{
    struct group *group = group_create();

    group_add(group, 3);
    group_add(group, 2);
    group_add(group, 1);
    group_open(group);
    group_expect(group, "abacba"
                        "abacba");
    group_close(&group);
}
END_TEST

START_TEST(session_tries_each_server_once)
{
    struct group *group = group_create();
    struct choice choice;

    for (int i = 0; i < 3; i++)
        group_add(group, 1)->max_fails = 0;
    group_open(group);
    group_begin(group, &choice);
    ck_assert_uint_eq(choice.left, 3);
    for (char letter = 'a'; letter <= 'c'; letter++) {
        ck_assert_int_eq(group_next(group, &choice), letter);
        ck_assert_uint_eq(choice.left, (uint32_t)('c' - letter));
        choice_end(&choice, FB_TRY_FAILED);
    }
    ck_assert_int_eq(group_next(group, &choice), '-');
    choice_report_none(&choice);
    ck_assert_str_eq(group->reported, "error group: no live upstreams");
    group_close(&group);
}
END_TEST

START_TEST(unused_server_can_be_tried_again)
{
    struct group *group = group_create();
    struct choice choice;

    group_add(group, 1);
    group_open(group);
    group_begin(group, &choice);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    choice_end(&choice, FB_TRY_UNUSED);
    ck_assert_uint_eq(choice.left, 1);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    choice_end(&choice, FB_TRY_SERVED);
    ck_assert_int_eq(group_next(group, &choice), '-');
    group_close(&group);
}
END_TEST

/* Neither a session nor a failure is counted, and others may choose the server. */
START_TEST(skipped_server_is_not_tried_again)
{
    struct group *group = group_create();
    struct choice choice;

    group_add(group, 1);
    group_add(group, 1);
    group_open(group);
    group_begin(group, &choice);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    choice_end(&choice, FB_TRY_SKIPPED);
    ck_assert_uint_eq(choice.left, 1);
    ck_assert_uint_eq(group_peer(group, 0)->state->sessions, 0);
    ck_assert_uint_eq(group_peer(group, 0)->state->failures, 0);
    ck_assert_int_eq(group_next(group, &choice), 'b');
    choice_end(&choice, FB_TRY_SKIPPED);
    ck_assert_int_eq(group_next(group, &choice), '-');
    choice_done(&choice);
    group_expect(group, "ba");
    group_close(&group);
}
END_TEST

START_TEST(failed_server_is_left_out_for_a_while)
{
    struct group *group = group_create();

    group_add(group, 1)->max_fails = 2;
    group_add(group, 1);
    group_open(group);
    ck_assert_int_eq(group_session(group, FB_TRY_FAILED), 'a');
    ck_assert_uint_eq(group->reports, 0);
    group_expect(group, "b");
    ck_assert_int_eq(group_session(group, FB_TRY_FAILED), 'a');
    ck_assert_str_eq(group->reported, "warn 127.0.0.1:9000: upstream server temporarily disabled");
    group_expect(group, "bbb");
    group_wait(group, 10000);
    group_expect(group, "bb");
    group_wait(group, 1);
    group_expect(group, "baba");
    ck_assert_uint_eq(group->reports, 1);
    group_close(&group);
}
END_TEST

START_TEST(one_session_at_a_time_tries_a_server_that_had_failed)
{
    struct group *group = group_create();
    struct choice choice;

    group_add(group, 1);
    group_add(group, 1);
    group_open(group);
    ck_assert_int_eq(group_session(group, FB_TRY_FAILED), 'a');
    group_wait(group, 10001);
    group_expect(group, "bb"); /* meanwhile its weight comes back */
    group_begin(group, &choice);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    group_expect(group, "bbbb");
    group_wait(group, 5);
    choice_connected(&choice);
    ck_assert_uint_eq(choice.connected_ms, 5);
    group_expect(group, "baba");
    choice_end(&choice, FB_TRY_SERVED);
    ck_assert_uint_eq(group_peer(group, 0)->state->sessions, 4);
    ck_assert_uint_eq(peer_conns(group_peer(group, 0)), 0);
    group_close(&group);
}
END_TEST

START_TEST(server_fails_again_after_its_pause)
{
    struct group *group = group_create();

    group_add(group, 1);
    group_add(group, 1);
    group_open(group);
    ck_assert_int_eq(group_session(group, FB_TRY_FAILED), 'a');
    group_wait(group, 10001);
    group_expect(group, "bb"); /* meanwhile its weight comes back */
    ck_assert_int_eq(group_session(group, FB_TRY_FAILED), 'a');
    ck_assert_uint_eq(group->reports, 2);
    ck_assert_uint_eq(group_peer(group, 0)->state->failures, 2);
    group_wait(group, 10000);
    group_expect(group, "bbb");
    group_close(&group);
}
END_TEST

START_TEST(failures_lessen_a_weight_for_some_choices)
{
    struct group *group = group_create();

    group_add(group, 4)->max_fails = 4;
    group_add(group, 4);
    group_open(group);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(group_session(group, FB_TRY_FAILED), i == 0 ? 'a' : 'b');
    ck_assert_uint_eq(group_peer(group, 0)->state->lost_weight, 0);
    ck_assert_uint_eq(group_peer(group, 1)->state->lost_weight, 4 * PEER_WEIGHT_UNIT);
    group_wait(group, 10001);
    group_expect(group, "a");
    ck_assert_uint_eq(group_peer(group, 1)->state->lost_weight, 3 * PEER_WEIGHT_UNIT);
    group_close(&group);
}
END_TEST

START_TEST(backups_serve_when_no_primary_can)
{
    struct group *group = group_create();
    struct choice choice;

    group_add(group, 1)->backup = true;
    group_add(group, 1);
    group_add(group, 1)->backup = true;
    group_open(group);
    group_expect(group, "bbb");
    group_begin(group, &choice);
    ck_assert_uint_eq(choice.left, 3);
    ck_assert_int_eq(group_next(group, &choice), 'b');
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), 'c');
    choice_end(&choice, FB_TRY_SERVED);
    ck_assert_int_eq(group_next(group, &choice), '-');
    group_expect(group, "ccc");
    group_wait(group, 10001);
    group_expect(group, "bbb");
    group_close(&group);
}
END_TEST

START_TEST(servers_that_are_down_or_drain_are_left_out)
{
    struct group *group = group_create();
    struct choice choice;

    group_add(group, 1)->down = true;
    group_add(group, 1);
    group_add(group, 1)->drain = true;
    group_open(group);
    group_begin(group, &choice);
    ck_assert_uint_eq(choice.left, 1);
    group_expect(group, "bb");
    group_close(&group);
}
END_TEST

START_TEST(full_server_is_left_out)
{
    struct group *group = group_create();
    struct choice choices[3];

    group_add(group, 1)->max_conns = 1;
    group_add(group, 1)->max_conns = 2;
    group_open(group);
    for (int i = 0; i < 3; i++) {
        group_begin(group, &choices[i]);
        ck_assert_int_eq(group_next(group, &choices[i]), "abb"[i]);
    }
    group_expect(group, "-");
    choice_end(&choices[0], FB_TRY_SERVED);
    group_expect(group, "aa");
    choice_end(&choices[2], FB_TRY_FAILED);
    choice_end(&choices[1], FB_TRY_UNUSED);
    ck_assert_uint_eq(peer_conns(group_peer(group, 1)), 0);
    group_close(&group);
}
END_TEST

START_TEST(single_server_never_fails)
{
    struct group *group = group_create();
    struct choice choice;

    group_add(group, 1)->max_conns = 2;
    group_open(group);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(group_session(group, FB_TRY_FAILED), 'a');
    ck_assert_uint_eq(group->reports, 0);
    group_begin(group, &choice);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    ck_assert_uint_eq(choice.left, 0);
    group_expect(group, "a");
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), '-');
    group_close(&group);
}
END_TEST

START_TEST(address_of_a_directive_is_tried_once_and_not_counted)
{
    struct group *group = group_create();
    struct choice choice;

    group_add(group, 1)->is_checked = false;
    group->upstream.is_single = true;
    group_open(group);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(group_session(group, FB_TRY_FAILED), 'a');
    group_begin(group, &choice);
    ck_assert_uint_eq(choice.left, 1);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    ck_assert_uint_eq(choice.left, 0);
    ck_assert_uint_eq(peer_conns(group_peer(group, 0)), 0);
    choice_end(&choice, FB_TRY_UNUSED);
    ck_assert_uint_eq(choice.left, 1);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), '-');
    choice_done(&choice);
    ck_assert_uint_eq(PEER_LOAD(group_peer(group, 0)->state->sessions), 0);
    group_close(&group);
}
END_TEST

START_TEST(single_server_can_be_full_or_down)
{
    struct group *group = group_create();
    struct upstream_server *server = group_add(group, 1);
    struct choice choice;

    server->max_conns = 1;
    group_open(group);
    group_begin(group, &choice);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    group_expect(group, "--");
    choice_end(&choice, FB_TRY_SERVED);
    group_expect(group, "a");
    upstreams_close(&group->upstreams);
    server->down = true;
    group_open(group);
    group_expect(group, "-");
    group_close(&group);
}
END_TEST

START_TEST(server_with_a_backup_can_fail)
{
    struct group *group = group_create();

    group_add(group, 1);
    group_add(group, 1)->backup = true;
    group_open(group);
    ck_assert_int_eq(group_session(group, FB_TRY_FAILED), 'a');
    group_expect(group, "bb");
    group_close(&group);
}
END_TEST

START_TEST(unhealthy_server_is_left_out)
{
    struct group *group = group_create();
    struct peers *peers;

    group_add(group, 1);
    group_add(group, 1);
    group_open(group);
    peers = group->upstream.peers;
    peers_set_health(peers, group_peer(group, 0), PEER_HEALTH_BAD);
    group_expect(group, "bb");
    peers_set_health(peers, group_peer(group, 0), PEER_HEALTH_CHECKING);
    group_expect(group, "bb");
    peers_set_health(peers, group_peer(group, 0), PEER_HEALTH_GOOD);
    group_expect(group, "abab");
    group_close(&group);
}
END_TEST

/* How many of 100 sessions the first of two servers serves. */
static unsigned share_of_first(struct group *group)
{
    unsigned n = 0;

    for (int i = 0; i < 100; i++)
        n += group_session(group, FB_TRY_SERVED) == 'a';
    return n;
}

START_TEST(weight_grows_slowly_after_a_failure)
{
    struct group *group = group_create();

    group_add(group, 1)->slow_start = 60000;
    group_add(group, 1);
    group_open(group);
    ck_assert_uint_eq(share_of_first(group), 50);
    peers_set_health(group->upstream.peers, group_peer(group, 0), PEER_HEALTH_BAD);
    ck_assert_uint_eq(share_of_first(group), 0);
    peers_set_health(group->upstream.peers, group_peer(group, 0), PEER_HEALTH_GOOD);
    ck_assert_uint_le(share_of_first(group), 1);
    group_wait(group, 20000); /* a third of the weight: a quarter of the sessions */
    ck_assert_uint_ge(share_of_first(group), 24);
    ck_assert_uint_le(share_of_first(group), 26);
    group_wait(group, 40000);
    ck_assert_uint_ge(share_of_first(group), 49);
    ck_assert_uint_eq(share_of_first(group), 50);

    while (group_session(group, FB_TRY_FAILED) != 'a')
        group_wait(group, 10001);
    group_wait(group, 10001);
    ck_assert_uint_le(share_of_first(group), 2);
    group_wait(group, 60000);
    ck_assert_uint_ge(share_of_first(group), 49);
    group_close(&group);
}
END_TEST

START_TEST(times_are_averaged)
{
    struct group *group = group_create();
    const struct peer *peer;
    struct choice choice;

    group_add(group, 1);
    group_open(group);
    peer = group_peer(group, 0);
    ck_assert_uint_eq(peer->state->times[UPSTREAM_TIME_CONNECT], 0);
    for (int i = 0; i < 2; i++) {
        group_begin(group, &choice);
        group_next(group, &choice);
        group_wait(group, i == 0 ? 16 : 32);
        choice_connected(&choice);
        group_wait(group, 4);
        choice_first_byte(&choice);
        choice_end(&choice, FB_TRY_SERVED);
    }
    ck_assert_uint_eq(peer->state->times[UPSTREAM_TIME_CONNECT], 17 * PEER_TIME_UNIT);
    ck_assert_uint_eq(peer->state->times[UPSTREAM_TIME_FIRST_BYTE], 21 * PEER_TIME_UNIT);
    ck_assert_uint_eq(peer->state->times[UPSTREAM_TIME_LAST_BYTE], 21 * PEER_TIME_UNIT);
    group_close(&group);
}
END_TEST

static void choice_tests(TCase *tcase)
{
    tcase_add_test(tcase, equal_servers_take_turns);
    tcase_add_test(tcase, weights_are_mixed_smoothly);
    tcase_add_test(tcase, unequal_weights_are_mixed_smoothly);
    tcase_add_test(tcase, session_tries_each_server_once);
    tcase_add_test(tcase, unused_server_can_be_tried_again);
    tcase_add_test(tcase, skipped_server_is_not_tried_again);
    tcase_add_test(tcase, failed_server_is_left_out_for_a_while);
    tcase_add_test(tcase, one_session_at_a_time_tries_a_server_that_had_failed);
    tcase_add_test(tcase, server_fails_again_after_its_pause);
    tcase_add_test(tcase, failures_lessen_a_weight_for_some_choices);
    tcase_add_test(tcase, backups_serve_when_no_primary_can);
    tcase_add_test(tcase, servers_that_are_down_or_drain_are_left_out);
    tcase_add_test(tcase, full_server_is_left_out);
    tcase_add_test(tcase, single_server_never_fails);
    tcase_add_test(tcase, address_of_a_directive_is_tried_once_and_not_counted);
    tcase_add_test(tcase, single_server_can_be_full_or_down);
    tcase_add_test(tcase, server_with_a_backup_can_fail);
    tcase_add_test(tcase, unhealthy_server_is_left_out);
    tcase_add_test(tcase, weight_grows_slowly_after_a_failure);
    tcase_add_test(tcase, times_are_averaged);
}

TEST_MAIN("choice", choice_tests)
