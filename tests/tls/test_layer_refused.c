/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that a peer may not send: the session ends with an alert, and the data before is
 * delivered. */
#include "tls/sealing.h"

/* The debt that a peer may have, in records without data: tls/layer_input.c. */
#define EMPTY_MOST 32

static const struct {
    uint8_t bytes[8];
    size_t n;
    int alert;
} garbage[] = {
    { { 23, 3, 3, 255, 255 }, 5, TLS_RECORD_OVERFLOW },
    { { 23, 3, 3, 0, 0 }, 5, TLS_BAD_RECORD_MAC },
    { { 23, 3, 3, 0, 3, 1, 2, 3 }, 8, TLS_BAD_RECORD_MAC },
    { { 23, 3, 0, 0, 3, 1, 2, 3 }, 8, TLS_PROTOCOL_VERSION },
    { { 'G', 'E', 'T', ' ', '/' }, 5, TLS_UNEXPECTED_MESSAGE },
    { { 21, 3, 3, 0, 2, 1, 0 }, 7, TLS_UNEXPECTED_MESSAGE },
    { { 20, 3, 3, 0, 1, 1 }, 6, TLS_UNEXPECTED_MESSAGE },
};

START_TEST(what_is_no_record_is_answered_with_an_alert)
{
    for (unsigned i = 0; i < countof(garbage); i++)
        for (int behind = 0; behind < 2; behind++) {
            struct sealed sealed;

            sealed_open(&sealed, _i);
            if (behind)
                sealing_says(&sealed.peer, "before");
            sim_say(sealed.owner->socket, garbage[i].bytes, garbage[i].n);
            fixture_run(sealed.fixture);
            ck_assert_uint_eq(sealed.got.n, behind ? 6 : 0);
            sealed_check_alert(&sealed, garbage[i].alert, "TLS: a record cannot be opened");
            sealed_close(&sealed);
        }
}
END_TEST

/* Every byte of a record is authenticated. */
START_TEST(a_changed_record_is_refused_behind_whole_ones)
{
    for (size_t at = 5; at < 5 + 3 + 1 + CIPHER_TAG; at++) {
        struct sealed sealed;
        size_t first;

        sealed_open(&sealed, _i);
        sealing_add_text(&sealed.peer, "whole");
        first = sealed.peer.sealed.n;
        sealing_add_text(&sealed.peer, "bad");
        sealed.peer.sealed.p[first + at] ^= 1;
        sealing_add_text(&sealed.peer, "never");
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.owner->datas, 1);
        ck_assert_str_eq(sealed.owner->last, "whole");
        sealed_check_alert(
            &sealed, TLS_BAD_RECORD_MAC, "TLS: a record cannot be opened; alert 20 is sent");
        sealed_close(&sealed);
    }
}
END_TEST

static const struct {
    unsigned type;
    uint8_t bytes[8];
    size_t n;
    int alert;
    const char *text;
} messages[] = {
    { TLS_ALERT, { 1 }, 1, TLS_DECODE_ERROR, "an alert has not two bytes" },
    { TLS_ALERT, { 1, 0, 1, 0 }, 4, TLS_DECODE_ERROR, "an alert has not two bytes" },
    { TLS_HANDSHAKE, { 1, 0, 0, 0 }, 4, TLS_UNEXPECTED_MESSAGE, "a handshake" },
    { TLS_HANDSHAKE, { 4, 0, 0, 0 }, 4, TLS_UNEXPECTED_MESSAGE, "a handshake" },
    { TLS_HANDSHAKE, { 24 }, 1, TLS_UNEXPECTED_MESSAGE, "a handshake" },
    { TLS_HANDSHAKE, { 24, 0, 0, 1 }, 4, TLS_DECODE_ERROR, "a KeyUpdate" },
    { TLS_HANDSHAKE, { 24, 0, 0, 1, 2 }, 5, TLS_DECODE_ERROR, "a KeyUpdate" },
    { TLS_HANDSHAKE, { 24, 0, 0, 2, 0, 0 }, 6, TLS_DECODE_ERROR, "a KeyUpdate" },
    { TLS_HANDSHAKE, { 24, 0, 0, 1, 0, 0 }, 6, TLS_DECODE_ERROR, "a KeyUpdate" },
    { TLS_ALERT, { 0 }, 0, TLS_UNEXPECTED_MESSAGE, "cannot be opened" },
    { TLS_HANDSHAKE, { 0 }, 0, TLS_UNEXPECTED_MESSAGE, "cannot be opened" },
    { TLS_CHANGE_CIPHER_SPEC, { 1 }, 1, TLS_UNEXPECTED_MESSAGE, "cannot be opened" },
    { 99, { 1 }, 1, TLS_UNEXPECTED_MESSAGE, "cannot be opened" },
    { 0, { 0 }, 1, TLS_UNEXPECTED_MESSAGE, "cannot be opened" },
};

START_TEST(a_record_that_is_not_allowed_ends_the_session)
{
    for (unsigned i = 0; i < countof(messages); i++)
        for (int behind = 0; behind < 2; behind++) {
            struct sealed sealed;

            sealed_open(&sealed, _i);
            if (behind)
                sealing_add_text(&sealed.peer, "before");
            sealing_add(&sealed.peer, messages[i].type, messages[i].bytes, messages[i].n);
            sealing_add_text(&sealed.peer, "behind");
            sealing_say(&sealed.peer);
            fixture_run(sealed.fixture);
            ck_assert_uint_eq(sealed.got.n, behind ? 6 : 0);
            sealed_check_alert(&sealed, messages[i].alert, messages[i].text);
            sealed_close(&sealed);
        }
}
END_TEST

START_TEST(a_fatal_alert_ends_the_session_without_an_answer)
{
    for (unsigned level = 1; level <= 2; level++) {
        struct sealed sealed;

        sealed_open(&sealed, _i);
        sealing_add_text(&sealed.peer, "before");
        sealing_add_alert(&sealed.peer, level, TLS_INTERNAL_ERROR);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.got.n, 6);
        sealed_check_alert(&sealed, -1, "TLS: the peer has ended the session with alert 80");
        ck_assert_uint_eq(sealed.peer.taken, 0);
        sealed_close(&sealed);
    }
}
END_TEST

static void add_empty(struct sealing *peer, int kind)
{
    switch (kind) {
    case 0:
        sealing_add(peer, TLS_DATA, "", 0);
        break;
    case 1:
        sealing_add_alert(peer, 1, TLS_USER_CANCELED);
        break;
    default:
        sealing_add_update(peer, kind == 3);
    }
}

START_TEST(some_records_without_data_are_allowed)
{
    for (int kind = 0; kind < 4; kind++)
        for (int once = 0; once < 2; once++) {
            struct sealed sealed;

            sealed_open(&sealed, _i);
            for (unsigned i = 0; i < EMPTY_MOST; i++) {
                add_empty(&sealed.peer, kind);
                if (!once) {
                    sealing_say(&sealed.peer);
                    fixture_run(sealed.fixture);
                }
            }
            sealing_says(&sealed.peer, "data");
            fixture_run(sealed.fixture);
            ck_assert_uint_eq(sealed.owner->datas, 1);
            ck_assert_uint_eq(sealed.got.n, 4);
            add_empty(&sealed.peer, kind);
            sealing_says(&sealed.peer, "more"); /* which pays little */
            add_empty(&sealed.peer, kind);
            sealing_says(&sealed.peer, "late");
            fixture_run(sealed.fixture);
            ck_assert_uint_eq(sealed.got.n, 8);
            sealed_check_alert(&sealed, TLS_UNEXPECTED_MESSAGE, "too many records without data");
            sealed_close(&sealed);
        }
}
END_TEST

START_TEST(data_pay_for_records_without)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    for (unsigned i = 0; i < 4 * EMPTY_MOST; i++) {
        sealing_add_update(&sealed.peer, i % 3 == 0);
        sealing_add_data(&sealed.peer, sealing_pattern(), 32768, TLS_PLAIN_MOST);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
    }
    ck_assert_uint_eq(sealed.got.n, 4 * EMPTY_MOST * 32768);
    sealed_close(&sealed);
}
END_TEST

static size_t echo_and_collect(struct owner *owner, fb_bytes in)
{
    owner_echo(owner, in);
    return sealed_collect(owner, in);
}

START_TEST(output_behind_a_failure_is_none)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealed.owner->data = echo_and_collect;
    sealing_add_text(&sealed.peer, "question");
    sealing_add(&sealed.peer, 99, "?", 1);
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.got.n, 8);
    sealed_check_alert(&sealed, TLS_UNEXPECTED_MESSAGE, "cannot be opened");
    ck_assert_uint_eq(sealed.peer.plain.n, 0);
    sealed_close(&sealed);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, what_is_no_record_is_answered_with_an_alert, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_changed_record_is_refused_behind_whole_ones, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_record_that_is_not_allowed_ends_the_session, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_fatal_alert_ends_the_session_without_an_answer, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, some_records_without_data_are_allowed, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, data_pay_for_records_without, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, output_behind_a_failure_is_none, 0, FIXTURE_EVENTS);
}

TEST_MAIN("layer_refused", add_tests)
