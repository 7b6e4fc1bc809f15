/* SPDX-License-Identifier: BSD-2-Clause */
/* New keys of a session: at the peer's request, and in time. */
#include "tls/sealing.h"

#include <string.h>

START_TEST(a_request_for_new_keys_is_answered)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealed.owner->data = owner_echo;
    for (unsigned i = 1; i <= 3; i++) {
        sealing_add_update(&sealed.peer, true);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
        sealing_look(&sealed.peer);
        ck_assert_uint_eq(sealed.peer.updates, i); /* without output, too */
        ck_assert_uint_eq(sealed.peer.requests, 0);
        sealing_says(&sealed.peer, "x");
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(strlen(sealing_sent(&sealed.peer)), i);
    }
    sealing_add_text(&sealed.peer, "before, ");
    sealing_add_update(&sealed.peer, false);
    sealing_add_text(&sealed.peer, "behind");
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    ck_assert_str_eq(sealing_sent(&sealed.peer), "xxxbefore, behind");
    ck_assert_uint_eq(sealed.peer.updates, 3);
    sealed_close(&sealed);
}
END_TEST

START_TEST(new_keys_in_the_middle_of_held_output)
{
    for (size_t room = 0; room < 40000; room += room < 30 ? 1 : 4999) {
        struct sealed sealed;

        sealed_open(&sealed, _i);
        sealed_write(&sealed, sealing_pattern(), 100000, room);
        sealing_add_update(&sealed.peer, true);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
        conn_write(sealed.owner->conn, sealing_pattern() + 100000, 1000);
        fixture_settle(sealed.fixture);
        fixture_run(sealed.fixture);
        sealed_let_all_leave(&sealed);
        ck_assert(sealing_sent_pattern(&sealed.peer, 101000));
        ck_assert_uint_eq(sealed.peer.updates, 1);
        sealed_close(&sealed);
    }
}
END_TEST

/* A peer that asks and does not read costs little. */
START_TEST(many_requests_are_answered_once)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sim_set_room(sealed.owner->socket, 0);
    for (unsigned i = 0; i < 300; i++) {
        sealing_add_update(&sealed.peer, true);
        sealing_add_data(&sealed.peer, sealing_pattern(), 32768, TLS_PLAIN_MOST);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
    }
    ck_assert_uint_eq(sealed.owner->conn->received, 300 * 32768);
    sealed_let_all_leave(&sealed);
    sealing_look(&sealed.peer);
    ck_assert_uint_eq(sealed.peer.updates, 1);
    sealed_write(&sealed, "on", 2, SIZE_MAX);
    ck_assert_str_eq(sealing_sent(&sealed.peer), "on");
    sealing_add_update(&sealed.peer, true);
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    sealing_look(&sealed.peer);
    ck_assert_uint_eq(sealed.peer.updates, 2);
    sealed_close(&sealed);
}
END_TEST

START_TEST(keys_are_renewed_in_time)
{
    const uint64_t most = (uint64_t)1 << 23;

    for (size_t room = 0; room <= 200; room += 10) {
        struct sealed sealed;

        sealed_open(&sealed, _i);
        layer_of(sealed.owner->conn)->out.sequence = sealed.peer.in.sequence = most - 1;
        sim_set_room(sealed.owner->socket, room);
        for (int i = 0; i < 4; i++) {
            conn_write(sealed.owner->conn, "abc", 3);
            fixture_settle(sealed.fixture);
            fixture_run(sealed.fixture);
        }
        sealed_let_all_leave(&sealed);
        ck_assert_str_eq(sealing_sent(&sealed.peer), "abcabcabcabc");
        ck_assert_uint_eq(sealed.peer.updates, 1);
        ck_assert_uint_eq(sealed.peer.requests, 0);
        sealed_close(&sealed);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_request_for_new_keys_is_answered, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, new_keys_in_the_middle_of_held_output, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, many_requests_are_answered_once, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, keys_are_renewed_in_time, 0, FIXTURE_EVENTS);
}

TEST_MAIN("layer_keys", add_tests)
