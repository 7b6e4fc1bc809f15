/* SPDX-License-Identifier: BSD-2-Clause */
/* Input of a connection with TLS. */
#include "tls/sealing.h"

#include <errno.h>
#include <string.h>

START_TEST(records_of_a_receive_are_one_piece)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealing_add_text(&sealed.peer, "one, ");
    sealing_add_text(&sealed.peer, "two, ");
    sealing_add_text(&sealed.peer, "three");
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.owner->datas, 1);
    ck_assert_str_eq(sealed.owner->last, "one, two, three");
    ck_assert_uint_eq(sealed.owner->conn->received, 15); /* plaintext is counted */
    sealed_close(&sealed);
}
END_TEST

START_TEST(a_record_may_come_byte_by_byte)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    for (unsigned i = 1; i <= 2; i++) {
        sealing_add_text(&sealed.peer, "hello");
        for (size_t at = 0, n = sealed.peer.sealed.n; at < n; at++) {
            ck_assert_uint_eq(sealed.owner->datas, i - 1);
            sim_say(sealed.owner->socket, sealed.peer.sealed.p + at, 1);
            fixture_run(sealed.fixture);
        }
        sealed.peer.sealed.n = 0;
        ck_assert_uint_eq(sealed.owner->datas, i);
        ck_assert_str_eq(sealed.owner->last, "hello");
        ck_assert_uint_eq(fixture_blocks_held(sealed.fixture), sealed.fixture->net->chunks.own.n);
    }
    sealed_close(&sealed);
}
END_TEST

START_TEST(split_records_are_put_together)
{
    static const size_t pieces[] = { 1, 4, 5, 6, 1000, 16389, 40000, 65536, 65537, 200000 };
    static const size_t records[] = { 1, 100, 16000, 16384 };

    for (unsigned i = 0; i < countof(pieces); i++)
        for (unsigned j = 0; j < countof(records); j++) {
            size_t n = records[j] == 1 ? 1000 : pieces[i] < 10 ? 20000 : 300000;
            struct sealed sealed;

            sealed_open(&sealed, _i);
            sealed.owner->socket->lends = (i + j) % 2 == 1;
            sealing_add_data(&sealed.peer, sealing_pattern(), n, records[j]);
            sealing_say_pieces(&sealed.peer, pieces[i]);
            fixture_run(sealed.fixture);
            ck_assert(sealed_got_pattern(&sealed, n));
            ck_assert_uint_eq(sealed.owner->conn->received, n);
            sealed_close(&sealed);
        }
}
END_TEST

/* The whole is an edge, or the kernel's buffer has more than one receive takes. */
START_TEST(more_than_a_receive_takes_is_received)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealing_add_data(&sealed.peer, sealing_pattern(), SEALING_PATTERN, TLS_PLAIN_MOST);
    sealing_say(&sealed.peer);
    fixture_turn(sealed.fixture);
    ck_assert_uint_lt(sealed.got.n, SEALING_PATTERN); /* others have their turn */
    ck_assert_uint_gt(sealed.got.n, 0);
    fixture_run(sealed.fixture);
    ck_assert(sealed_got_pattern(&sealed, SEALING_PATTERN));
    sealed_close(&sealed);
}
END_TEST

/* A layer gives less, or more, than there was room for: that does not mean that there is more. */
START_TEST(nothing_is_received_in_vain)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealed.owner->data = owner_leave_input;
    for (unsigned i = 1; i <= 5; i++) {
        sealing_add_data(&sealed.peer, sealing_pattern(), 9000, 9000);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.owner->datas, i);
        ck_assert_uint_eq(sealed.owner->socket->recvs, i);
    }
    sealed_close(&sealed);
}
END_TEST

static size_t take_three(struct owner *owner, fb_bytes in)
{
    if (in.n < 3)
        return 0;
    return sealed_collect(owner, (fb_bytes) { in.p, in.n / 3 * 3 });
}

START_TEST(input_left_by_the_owner_is_offered_with_more)
{
    struct sealed sealed;
    const uint8_t *pattern = sealing_pattern();

    sealed_open(&sealed, _i);
    sealed.owner->data = take_three;
    for (size_t at = 0; at < 3000; at += 50) {
        sealing_add_data(&sealed.peer, pattern + at, 50, 7);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
        ck_assert(sealed_got_pattern(&sealed, (at + 50) / 3 * 3));
    }
    sealing_add_data(&sealed.peer, pattern + 3000, 150000, TLS_PLAIN_MOST);
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    ck_assert(sealed_got_pattern(&sealed, 153000));
    sealed_close(&sealed);
}
END_TEST

START_TEST(input_may_be_left_for_long)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealed.owner->data = owner_leave_input;
    sealing_add_data(&sealed.peer, sealing_pattern(), 400000, TLS_PLAIN_MOST);
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.owner->last_n, 400000);
    ck_assert_mem_eq(sealed.owner->last, sealing_pattern(), sizeof(sealed.owner->last) - 1);
    sealed.owner->data = sealed_collect;
    conn_offer_again(sealed.owner->conn);
    fixture_run(sealed.fixture);
    ck_assert(sealed_got_pattern(&sealed, 400000));
    sealed_close(&sealed);
}
END_TEST

static size_t collect_and_stop(struct owner *owner, fb_bytes in)
{
    conn_stop(owner->conn);
    return sealed_collect(owner, in);
}

START_TEST(a_stopped_connection_is_given_no_more)
{
    struct sealed sealed;
    unsigned datas = 0;

    sealed_open(&sealed, _i);
    sealed.owner->data = collect_and_stop;
    sealing_add_data(&sealed.peer, sealing_pattern(), 300000, 10000);
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    while (sealed.got.n < 300000) {
        ck_assert_uint_eq(sealed.owner->datas, ++datas);
        fixture_pass(sealed.fixture, 1000); /* looks at the stopped ones, too */
        ck_assert_uint_eq(sealed.owner->datas, datas);
        conn_resume(sealed.owner->conn);
        fixture_run(sealed.fixture);
    }
    ck_assert(sealed_got_pattern(&sealed, 300000));
    sealed_close(&sealed);
}
END_TEST

/* Records that have come before the layer. */
static void open_with_early(
    struct sealed *sealed, enum fixture_events events, size_t n, size_t record, size_t less)
{
    struct tls_session session;

    *sealed = (struct sealed) { .fixture = sealing_start(events, 1) };
    sealed->fixture->test = sealed;
    sealed->owner = owner_open(sealed->fixture);
    sealed->owner->data = owner_leave_input;
    sealing_init(&sealed->peer, &session);
    sealed->peer.socket = sealed->owner->socket;
    sealing_add_data(&sealed->peer, sealing_pattern(), n, record);
    sim_say(sealed->owner->socket, sealed->peer.sealed.p, sealed->peer.sealed.n - less);
    fixture_run(sealed->fixture);
    ck_assert_uint_gt(sealed->owner->datas, 0);
    memmove(sealed->peer.sealed.p, sealed->peer.sealed.p + sealed->peer.sealed.n - less, less);
    sealed->peer.sealed.n = less;
    sealed->owner->data = sealed_collect;
    ck_assert_int_eq(layer_begin(sealed->owner->conn, &session, (fb_bytes) { NULL, 0 }), 0);
    fixture_run(sealed->fixture);
}

START_TEST(records_behind_the_handshake_are_opened)
{
    static const struct {
        size_t n, record, less;
    } cases[] = { { 5, 5, 0 }, { 5, 5, 1 }, { 5, 5, 22 }, { 100, 10, 0 }, { 100, 10, 30 },
        { 40000, 16384, 20 }, { 60000, 16384, 0 } };

    for (unsigned i = 0; i < countof(cases); i++) {
        struct sealed sealed;

        open_with_early(&sealed, _i, cases[i].n, cases[i].record, cases[i].less);
        ck_assert((cases[i].less == 0) == sealed_got_pattern(&sealed, cases[i].n));
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
        ck_assert(sealed_got_pattern(&sealed, cases[i].n));
        sealed_close(&sealed);
    }
}
END_TEST

/* Adds a record with n bytes of data and as much padding as there may be. */
static void add_padded(struct sealing *peer, const uint8_t *p, size_t n)
{
    uint8_t inner[TLS_PLAIN_MOST] = { 0 };

    if (n > 0)
        memcpy(inner, p, n);
    inner[n] = TLS_DATA;
    sealing_add(peer, 0, inner, sizeof(inner)); /* whose type is padding, too */
}

START_TEST(padding_is_no_data)
{
    for (int early = 0; early < 2; early++) {
        struct sealed sealed;
        struct tls_session session;

        sealed_open(&sealed, _i);
        if (early) {
            sealed_close(&sealed);
            sealed = (struct sealed) { .fixture = sealing_start(_i, 1) };
            sealed.fixture->test = &sealed;
            sealed.owner = owner_open(sealed.fixture);
            sealed.owner->data = owner_leave_input;
            sealing_init(&sealed.peer, &session);
            sealed.peer.socket = sealed.owner->socket;
        }
        for (int i = 0; i < 12; i++)
            add_padded(&sealed.peer, sealing_pattern() + i, i >= 9);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
        if (early) {
            sealed.owner->data = sealed_collect;
            ck_assert_int_eq(layer_begin(sealed.owner->conn, &session, (fb_bytes) { NULL, 0 }), 0);
        }
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.got.n, 3);
        ck_assert_mem_eq(sealed.got.p, sealing_pattern() + 9, 3);
        sealed_close(&sealed);
    }
}
END_TEST

/* More than the layer's buffer holds. */
START_TEST(many_records_behind_the_handshake_are_opened)
{
    static const size_t records[] = { 1000, 16384 };

    for (unsigned i = 0; i < countof(records); i++)
        for (size_t less = 0; less <= 20; less += 20) {
            struct sealed sealed;

            open_with_early(&sealed, _i, 65000, records[i], less);
            sealing_say(&sealed.peer);
            fixture_run(sealed.fixture);
            ck_assert(sealed_got_pattern(&sealed, 65000));
            sealed_close(&sealed);
        }
}
END_TEST

START_TEST(early_records_of_a_stopped_connection_wait)
{
    struct sealed sealed;
    struct tls_session session;

    sealed = (struct sealed) { .fixture = sealing_start(_i, 1) };
    sealed.fixture->test = &sealed;
    sealed.owner = owner_open(sealed.fixture);
    sealed.owner->data = owner_leave_input;
    sealing_init(&sealed.peer, &session);
    sealed.peer.socket = sealed.owner->socket;
    sealing_says(&sealed.peer, "early");
    fixture_run(sealed.fixture);
    conn_stop(sealed.owner->conn);
    fixture_run(sealed.fixture);
    sealing_says(&sealed.peer, ", late");
    sealed.owner->data = sealed_collect;
    ck_assert_int_eq(layer_begin(sealed.owner->conn, &session, (fb_bytes) { NULL, 0 }), 0);
    fixture_run(sealed.fixture);
    fixture_pass(sealed.fixture, 1000);
    ck_assert_uint_eq(sealed.got.n, 0);
    conn_resume(sealed.owner->conn);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.got.n, 11);
    ck_assert_mem_eq(sealed.got.p, "early, late", 11);
    sealed_close(&sealed);
}
END_TEST

/* The end of the peer's half lies behind records that are not opened yet. */
START_TEST(early_records_come_before_the_end)
{
    struct sealed sealed = { .fixture = sealing_start(_i, 1) };
    struct tls_session session;

    sealed.fixture->test = &sealed;
    sealed.owner = owner_open(sealed.fixture);
    sealed.owner->data = owner_leave_input;
    sealing_init(&sealed.peer, &session);
    sealed.peer.socket = sealed.owner->socket;
    sealing_says(&sealed.peer, "early");
    fixture_run(sealed.fixture);
    conn_stop(sealed.owner->conn);
    conn_end_with_peer(sealed.owner->conn, true);
    sealed.owner->data = sealed_collect;
    ck_assert_int_eq(layer_begin(sealed.owner->conn, &session, (fb_bytes) { NULL, 0 }), 0);
    sim_end(sealed.owner->socket);
    fixture_run(sealed.fixture);
    fixture_pass(sealed.fixture, 1000);
    ck_assert_ptr_nonnull(sealed.owner->conn);
    conn_resume(sealed.owner->conn);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.got.n, 5);
    ck_assert_uint_eq(sealed.owner->eofs, 1);
    fixture_logged(sealed.fixture);
    sealed_close(&sealed);
}
END_TEST

START_TEST(close_notify_ends_the_peers_half)
{
    for (int tells = 0; tells < 2; tells++) {
        struct sealed sealed;

        sealed_open(&sealed, _i);
        sealed.owner->socket->tells_eof = tells == 1;
        sealed.owner->eof = owner_ignore_eof;
        sealing_add_text(&sealed.peer, "last words");
        sealing_add_close(&sealed.peer);
        sealing_say(&sealed.peer);
        if (tells)
            sim_end(sealed.owner->socket);
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.owner->datas, 1);
        ck_assert_uint_eq(sealed.owner->eofs, 1);
        ck_assert_uint_eq(sealed.got.n, 10);
        /* our half goes on */
        conn_write(sealed.owner->conn, "goodbye", 7);
        fixture_settle(sealed.fixture);
        fixture_run(sealed.fixture);
        ck_assert_str_eq(sealing_sent(&sealed.peer), "goodbye");
        ck_assert(!sealed.peer.closed);
        conn_close(sealed.owner->conn);
        fixture_settle(sealed.fixture);
        ck_assert_int_eq(sealed.owner->reason, FB_FINISHED);
        sealing_look(&sealed.peer);
        ck_assert_int_eq(sealed.peer.alert, TLS_CLOSE_NOTIFY);
        sealed_close(&sealed);
    }
}
END_TEST

START_TEST(the_rest_is_delivered_with_the_end)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealed.owner->data = owner_leave_input;
    sealing_add_text(&sealed.peer, "rest");
    sealing_add_close(&sealed.peer);
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.owner->eofs, 1);
    ck_assert_str_eq(sealed.owner->last, "rest");
    ck_assert_int_eq(sealed.owner->reason, FB_FINISHED);
    sealed_close(&sealed);
}
END_TEST

/* Bytes behind close_notify are nobody's. */
START_TEST(nothing_follows_close_notify)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealed.owner->eof = owner_ignore_eof;
    sealing_add_close(&sealed.peer);
    sealing_add_text(&sealed.peer, "late");
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    sealing_says(&sealed.peer, "later");
    sim_says(sealed.owner->socket, "no record");
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.owner->datas, 0);
    ck_assert_uint_eq(sealed.owner->eofs, 1);
    ck_assert_ptr_nonnull(sealed.owner->conn);
    sealed_close(&sealed);
}
END_TEST

START_TEST(an_end_without_close_notify_is_told)
{
    for (int partial = 0; partial < 3; partial++) {
        struct sealed sealed;

        sealed_open(&sealed, _i);
        sealed.owner->socket->tells_eof = partial == 1;
        sealing_says(&sealed.peer, "all");
        sealing_add_text(&sealed.peer, "part");
        sim_say(
            sealed.owner->socket, sealed.peer.sealed.p, partial > 0 ? 10 : sealed.peer.sealed.n);
        if (partial == 2)
            fixture_run(sealed.fixture);
        sim_end(sealed.owner->socket);
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.owner->eofs, 1);
        ck_assert_uint_eq(sealed.owner->last_n, 0);
        ck_assert_uint_eq(sealed.got.n, partial > 0 ? 3 : 7);
        ck_assert_int_eq(sealed.owner->reason, FB_FINISHED);
        ck_assert_ptr_nonnull(
            strstr(fixture_logged(sealed.fixture), "TLS: the peer has ended without close_notify"));
        sealed_close(&sealed);
    }
}
END_TEST

START_TEST(a_broken_socket_is_told)
{
    for (int partial = 0; partial < 2; partial++) {
        struct sealed sealed;

        sealed_open(&sealed, _i);
        sealing_says(&sealed.peer, "whole");
        sealing_add_text(&sealed.peer, "part");
        if (partial)
            sim_say(sealed.owner->socket, sealed.peer.sealed.p, 10);
        sim_reset(sealed.owner->socket, ECONNRESET);
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.got.n, 5);
        ck_assert_int_eq(sealed.owner->reason, FB_RESET);
        fixture_logged(sealed.fixture);
        sealed_close(&sealed);
    }
}
END_TEST

/* Leaves a stopped connection in which the end of the peer's half has been received. */
START_TEST(a_stopped_connection_ends_with_its_peer)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealed.owner->data = collect_and_stop;
    conn_end_with_peer(sealed.owner->conn, true);
    sealing_add_text(&sealed.peer, "last");
    sealing_add_close(&sealed.peer);
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.got.n, 4);
    fixture_pass(sealed.fixture, 1000);
    ck_assert_int_eq(sealed.owner->reason, FB_PEER_GONE);
    sealed_close(&sealed);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, records_of_a_receive_are_one_piece, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_record_may_come_byte_by_byte, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, split_records_are_put_together, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, more_than_a_receive_takes_is_received, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, nothing_is_received_in_vain, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, input_left_by_the_owner_is_offered_with_more, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, input_may_be_left_for_long, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_stopped_connection_is_given_no_more, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, records_behind_the_handshake_are_opened, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, padding_is_no_data, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, many_records_behind_the_handshake_are_opened, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, early_records_of_a_stopped_connection_wait, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, early_records_come_before_the_end, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, close_notify_ends_the_peers_half, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_rest_is_delivered_with_the_end, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, nothing_follows_close_notify, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_end_without_close_notify_is_told, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_broken_socket_is_told, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_stopped_connection_ends_with_its_peer, 0, FIXTURE_EVENTS);
}

TEST_MAIN("layer_input", add_tests)
