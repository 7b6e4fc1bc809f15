/* SPDX-License-Identifier: BSD-2-Clause */
/* The ends of the phase of the TLS handshake: by the engine, by the client, and by time. */
#include "features/handshakes.h"

#include "base/compiler.h"
#include "tls/link_private.h"

#include <errno.h>

/* ---- Handshakes that fail ---- */

START_TEST(an_alert_is_sent)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    client = connect_client();
    sim_says(client->socket, "GET / HTTP/1.0\r\n\r\n and more than that");
    fixture_run(test.fixture);
    ck_assert_uint_ge(client->socket->sent_n, 7);
    ck_assert_uint_eq((uint8_t)client->socket->sent[0], TLS_ALERT);
    ck_assert(!client->socket->reset);
    sim_end(client->socket);
    fixture_run(test.fixture);
    expect_end(client, "500;tls_failed;0;0;0", CONTEXT);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

START_TEST(handshakes_are_rejected)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    tls_profiles[0].reject = true;
    client = connect_client();
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    tls_client_look(client);
    ck_assert_str_eq(client->text, "the peer sent alert 112");
    expect_end(client, "500;tls_failed;0;0;0", "handshake rejected" CONTEXT);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

START_TEST(certificates_are_verified)
{
    static const struct {
        enum tls_verify wanted;
        enum tls_verified found;
        int code;
        const char *line; /* NULL: the client is served */
    } rows[] = {
        { TLS_VERIFY_ON, TLS_VERIFIED, 0, NULL },
        { TLS_VERIFY_ON, TLS_VERIFIED_NONE, 0, "client sent no required SSL certificate" CONTEXT },
        { TLS_VERIFY_ON, TLS_VERIFY_FAILED, 18,
            "client SSL certificate verify error: (18:self-signed certificate)" CONTEXT },
        { TLS_VERIFY_OPTIONAL, TLS_VERIFIED_NONE, 0, NULL },
        { TLS_VERIFY_OPTIONAL, TLS_VERIFY_FAILED, 4711,
            "client SSL certificate verify error: (4711:unknown)" CONTEXT },
        { TLS_VERIFY_OPTIONAL_NO_CA, TLS_VERIFIED_NONE, 0, NULL },
        { TLS_VERIFY_OPTIONAL_NO_CA, TLS_VERIFY_FAILED, 18, NULL },
        { TLS_VERIFY_OPTIONAL_NO_CA, TLS_VERIFY_FAILED, 21, NULL },
        { TLS_VERIFY_OPTIONAL_NO_CA, TLS_VERIFY_FAILED, 27, NULL },
        { TLS_VERIFY_OPTIONAL_NO_CA, TLS_VERIFY_FAILED, 10,
            "client SSL certificate verify error: (10:certificate has expired)" CONTEXT },
        { TLS_VERIFY_OFF, TLS_VERIFY_FAILED, 18, NULL },
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct tls_reply reply = { .session = { .version = TLS_1_3, .plain_most = 1000 } };
        struct tls_client *client;

        begin_tls(TLS_LINK_HELD);
        tls_profiles[0].verify = rows[i].wanted;
        client = connect_client();
        sim_says(client->socket, "x");
        fixture_run(test.fixture);
        reply.used = 1;
        reply.session.verify = (uint8_t)rows[i].found;
        reply.session.verify_code = rows[i].code;
        tls_reply_held_by(TLS_DONE, &reply);
        fixture_run(test.fixture);
        ck_assert_uint_eq(openings(), rows[i].line == NULL);
        if (rows[i].line != NULL) {
            ck_assert_uint_gt(client->socket->sent_n, 5); /* close_notify */
            expect_end(client, "500;tls_failed;0;0;304", rows[i].line);
        }
        tls_client_destroy(&client);
        end_tls();
    }
}
END_TEST

/* A refused client that takes no byte is closed after the time of the handshake. */
START_TEST(who_is_refused_cannot_stay)
{
    struct tls_reply reply = { .session = { .version = TLS_1_3, .plain_most = 1000 } };
    uint8_t flight[] = "ticket";
    struct tls_client *client;

    begin_tls(TLS_LINK_HELD);
    tls_profiles[0].verify = TLS_VERIFY_ON;
    client = connect_client();
    sim_set_room(client->socket, 3);
    sim_says(client->socket, "x");
    fixture_run(test.fixture);
    reply.used = 1;
    reply.out = flight;
    reply.out_n = sizeof(flight);
    tls_reply_held_by(_i == 0 ? TLS_DONE : TLS_FAILED, &reply);
    fixture_pass(test.fixture, TIMEOUT - 1);
    ck_assert(!client->socket->closed);
    fixture_pass(test.fixture, 1);
    ck_assert(client->socket->closed);
    tls_client_destroy(&client);
    log_so_far();
    end_tls();
}
END_TEST

/* Sessions that an engine cannot have made. */
START_TEST(an_engine_is_not_trusted)
{
    static const struct tls_session sessions[] = {
        { .version = TLS_1_2, .plain_most = 1 },
        { .version = TLS_1_2, .suite = 0x1301, .plain_most = 1 },
        { .version = TLS_1_3, .suite = 0x1304, .plain_most = 1 },
        { .version = TLS_1_3, .plain_most = 1 }, /* no cryptography, of a keeper */
    };
    struct tls_reply reply = { .session = sessions[_i] };
    struct tls_client *client;

    begin_tls(TLS_LINK_HELD);
    test.fixture->stream->tls_link->plain = _i < 3;
    client = connect_client();
    sim_says(client->socket, "x");
    fixture_run(test.fixture);
    tls_reply_held_by(TLS_DONE, &reply);
    fixture_run(test.fixture);
    expect_end(
        client, "500;tls_failed;0;0;0", "the engine has made a handshake that cannot be" CONTEXT);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* ---- The client goes, or time passes ---- */

/* Ways of a client to go. */
enum leaving { LEAVE_END, LEAVE_RESET, LEAVE_SILENT, LEAVINGS };

static const struct {
    const char *seen, *line;
} leavings[] = {
    { "500;tls_failed;0;0;0", "peer closed connection in SSL handshake" CONTEXT },
    { "500;client_reset;0;0;0", "(104: Connection reset by peer)" CONTEXT },
    { "500;timeout;0;0;0", "client timed out (110: Connection timed out)" CONTEXT },
};

static void leave(struct tls_client *client, enum leaving how)
{
    if (how == LEAVE_END)
        sim_end(client->socket);
    else if (how == LEAVE_RESET)
        sim_reset(client->socket, ECONNRESET);
    else
        fixture_pass(test.fixture, TIMEOUT);
    fixture_run(test.fixture);
    fixture_pass(test.fixture, 500); /* a look at connections that are not read */
}

/* At each byte of the client, also with an awaited reply. */
START_TEST(a_client_may_go)
{
    bool in_second = false;

    for (size_t n = 0; n < 100; n++) {
        struct tls_client *client;

        begin_tls(TLS_LINK_LOCAL);
        client = connect_client();
        in_second = n > client->waiting.n;
        tls_client_say(client, n);
        fixture_run(test.fixture);
        if (in_second) {
            tls_client_look(client);
            tls_client_say(client, 30);
            fixture_run(test.fixture);
        }
        leave(client, (enum leaving)_i);
        expect_end(client, leavings[_i].seen, leavings[_i].line);
        ck_assert_uint_eq(openings(), 0);
        tls_client_destroy(&client);
        end_tls();
    }
    ck_assert(in_second);
}
END_TEST

/* The client goes while a reply is awaited, and the reply comes, perhaps to the slot's next. */
START_TEST(a_reply_comes_too_late)
{
    struct tls_client *client, *next = NULL;

    begin_tls(TLS_LINK_HELD);
    client = connect_client();
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_n(), 1);
    leave(client, (enum leaving)(_i % LEAVINGS));
    ck_assert(client->socket->closed == (_i % LEAVINGS != LEAVE_END));
    if (_i >= LEAVINGS) {
        next = connect_client();
        tls_client_say(next, SIZE_MAX);
        fixture_run(test.fixture);
    }
    tls_reply_held();
    fixture_run(test.fixture);
    if (_i % LEAVINGS == LEAVE_END)
        tls_client_look(client); /* has ended its half alone, and hears the hello */
    ck_assert(client->socket->closed);
    ck_assert_str_eq(seen, leavings[_i % LEAVINGS].seen);
    if (next != NULL) {
        tls_reply_held();
        tls_client_shake(next, test.fixture);
        tls_reply_held();
        fixture_run(test.fixture);
        ck_assert_uint_eq(openings(), 1);
        tls_client_destroy(&next);
    }
    log_so_far();
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

START_TEST(the_time_is_over_all_bytes)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    test.servers[0]->server.settings.first_byte_timeout = 500;
    client = connect_client();
    for (int i = 0; i < 3; i++) {
        fixture_pass(test.fixture, TIMEOUT / 3 - 1);
        ck_assert(!client->socket->closed);
        tls_client_say(client, 1);
        fixture_run(test.fixture);
    }
    fixture_pass(test.fixture, 2);
    ck_assert(!client->socket->closed);
    fixture_pass(test.fixture, 1);
    expect_end(client, leavings[LEAVE_SILENT].seen, leavings[LEAVE_SILENT].line);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

START_TEST(a_longer_time_than_a_deadline_can_be)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    tls_profiles[0].handshake_timeout = (uint64_t)CONN_DEADLINE_MOST + 1000;
    client = connect_client();
    fixture_pass(test.fixture, CONN_DEADLINE_MOST);
    ck_assert(!client->socket->closed);
    fixture_pass(test.fixture, 1000);
    ck_assert(client->socket->closed);
    tls_client_destroy(&client);
    log_so_far();
    end_tls();

    begin_tls(TLS_LINK_LOCAL);
    tls_profiles[0].handshake_timeout = UINT64_MAX / 2;
    client = connect_client();
    fixture_pass(test.fixture, 2 * (uint64_t)CONN_DEADLINE_MOST);
    ck_assert(!client->socket->closed);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* The time ends with the handshake; the server's own times begin. */
START_TEST(the_time_ends_with_the_handshake)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    test.servers[0]->server.settings.first_byte_timeout = _i == 1 ? 5 * TIMEOUT : 0;
    if (_i == 2)
        test.servers[0]->server.settings.idle_timeout = 5 * TIMEOUT;
    client = connect_client();
    fixture_pass(test.fixture, TIMEOUT - 1);
    tls_client_shake(client, test.fixture);
    fixture_pass(test.fixture, 2 * TIMEOUT);
    ck_assert(!client->socket->closed);
    fixture_pass(test.fixture, 10 * TIMEOUT);
    ck_assert_uint_eq(client->socket->closed, _i > 0);
    tls_client_destroy(&client);
    log_so_far();
    end_tls();
}
END_TEST

/* The end of the client's half, behind its last message or data, with close_notify or not. */
START_TEST(a_half_may_end_behind)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    client = connect_client();
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    tls_client_look(client);
    if (_i & 1)
        tls_client_add(client, "hello");
    tls_client_say(client, SIZE_MAX);
    if (_i & 2)
        sealing_add_close(&client->peer);
    sealing_say(&client->peer);
    sim_end(client->socket);
    fixture_run(test.fixture);
    ck_assert_str_eq(sealing_sent(&client->peer), _i & 1 ? "hello" : "");
    ck_assert(client->peer.closed && !client->socket->reset);
    ck_assert_uint_eq(test.servers[0]->record.eofs, 1);
    expect_end(client, _i & 1 ? "200;finished;5;5;304" : "200;finished;0;0;304",
        _i & 2 ? "" : "ended without close_notify");
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* The first flight has no room, or little. */
START_TEST(a_flight_waits_for_room)
{
    struct tls_client *client;

    for (size_t room = 0; room < 60; room++) {
        begin_tls(TLS_LINK_LOCAL);
        client = connect_client();
        sim_set_room(client->socket, room);
        tls_client_say(client, SIZE_MAX);
        fixture_run(test.fixture);
        if (_i == 1) {
            leave(client, LEAVE_RESET);
            ck_assert(client->socket->closed);
            log_so_far();
        } else {
            sim_set_room(client->socket, SIZE_MAX);
            fixture_run(test.fixture);
            tls_client_shake(client, test.fixture);
            ck_assert_uint_eq(openings(), 1);
        }
        tls_client_destroy(&client);
        end_tls();
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, an_alert_is_sent);
    tcase_add_test(tcase, handshakes_are_rejected);
    tcase_add_test(tcase, certificates_are_verified);
    tcase_add_loop_test(tcase, who_is_refused_cannot_stay, 0, 2);
    tcase_add_loop_test(tcase, an_engine_is_not_trusted, 0, 4);
    tcase_add_loop_test(tcase, a_client_may_go, 0, LEAVINGS);
    tcase_add_loop_test(tcase, a_reply_comes_too_late, 0, 2 * LEAVINGS);
    tcase_add_test(tcase, the_time_is_over_all_bytes);
    tcase_add_test(tcase, a_longer_time_than_a_deadline_can_be);
    tcase_add_loop_test(tcase, the_time_ends_with_the_handshake, 0, 3);
    tcase_add_loop_test(tcase, a_half_may_end_behind, 0, 4);
    tcase_add_loop_test(tcase, a_flight_waits_for_room, 0, 2);
}

TEST_MAIN("ssl_handshake_ends", add_tests)
