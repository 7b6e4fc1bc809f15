/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that test a name by TLS (tls-alpn-01 of ACME): ALPN, settings of the server, the end, and
 * a protocol that hears of no such client. The engine's part is in keeper/test_challenge.c. */
#include "features/handshakes.h"

#define ALPN(text) { text, sizeof(text) - 1 }

struct alpn {
    const char *p;
    unsigned n;
};

static const struct alpn challenge = ALPN(SSL_CHALLENGE_ALPN);

static void set_alpn(unsigned profile, struct alpn alpn)
{
    tls_profiles[profile].alpn = (const uint8_t *)alpn.p;
    tls_profiles[profile].alpn_n = alpn.n;
}

/* Begins a test of a server with challenges, by the second profile. */
static void begin_challenges(enum tls_link_kind kind)
{
    begin_tls(kind);
    set_alpn(1, challenge);
    test.servers[0]->server.challenges = &tls_profiles[1];
}

/* Makes a client with a list of protocols. */
static struct tls_client *connect_with(struct alpn alpn)
{
    struct alpn own = { (const char *)tls_profiles[0].alpn, tls_profiles[0].alpn_n };
    struct tls_client *client;

    set_alpn(0, alpn);
    client = connect_client();
    set_alpn(0, own);
    return client;
}

static void add_obstacle(int i)
{
    if (i == 1)
        tls_profiles[0].verify = TLS_VERIFY_ON;
    else if (i == 2)
        tls_profiles[0].reject = true;
    else if (i == 3)
        set_alpn(0, (struct alpn)ALPN("\2h2"));
}

/* `_i` is a setting of the server, by which clients without a challenge fail. */
START_TEST(a_challenge_is_all_that_a_client_gets)
{
    struct tls_client *client;

    begin_challenges(TLS_LINK_LOCAL);
    add_obstacle(_i);
    client = connect_with(challenge);
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    tls_client_look(client);
    ck_assert_int_eq(client->step, TLS_DONE);
    tls_client_add(client, "hello");
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    tls_client_look(client);
    ck_assert(client->peer.closed); /* by close_notify */
    sim_says(client->socket, "more");
    fixture_run(test.fixture);
    sim_end(client->socket);
    fixture_run(test.fixture);
    ck_assert_uint_eq(openings(), 0);
    ck_assert_uint_eq(test.servers[0]->record.closings, 0);
    ck_assert_uint_eq(accesses, 1);
    expect_end(client, "200;challenge;0;0;304", "");
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

START_TEST(other_clients_are_served)
{
    static const struct alpn others[] = { ALPN(""), ALPN("\2h2"), ALPN(SSL_CHALLENGE_ALPN "\2h2"),
        ALPN("\2h2" SSL_CHALLENGE_ALPN), ALPN("\012acme-tls/2"), ALPN("\013acme-tls/1."),
        ALPN("\012ACME-TLS/1"), ALPN(SSL_CHALLENGE_ALPN SSL_CHALLENGE_ALPN) };

    for (size_t i = 0; i < countof(others); i++) {
        struct tls_client *client;

        begin_challenges(TLS_LINK_LOCAL);
        client = connect_with(others[i]);
        tls_client_shake(client, test.fixture);
        ck_assert_int_eq(client->step, TLS_DONE);
        ck_assert_uint_eq(openings(), 1);
        tls_client_destroy(&client);
        log_so_far();
        end_tls();
    }
}
END_TEST

START_TEST(without_a_directory_the_protocol_is_like_any)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    set_alpn(0, challenge);
    client = connect_with(challenge);
    tls_client_shake(client, test.fixture);
    ck_assert_uint_eq(openings(), 1);
    tls_client_destroy(&client);
    log_so_far();
    end_tls();
}
END_TEST

START_TEST(a_hello_may_come_in_pieces)
{
    struct tls_client *client;
    bool whole = false;

    for (size_t n = 1; !whole; n++) {
        begin_challenges(TLS_LINK_HELD);
        client = connect_with(challenge);
        whole = n == client->waiting.n;
        tls_client_say(client, n);
        fixture_run(test.fixture);
        ck_assert_uint_eq(tls_held_n(), whole);
        tls_client_say(client, SIZE_MAX);
        fixture_run(test.fixture);
        ck_assert_uint_eq(tls_held_profile(), 1);
        tls_client_destroy(&client);
        end_tls();
    }
}
END_TEST

/* The engine has no certificate for the name. */
START_TEST(a_refusal_is_a_line_and_an_alert)
{
    static uint8_t alert[] = { TLS_ALERT, 3, 3, 0, 2, 2, TLS_UNRECOGNIZED_NAME };
    struct tls_reply reply = { .out = alert, .out_n = sizeof(alert), .text = "no challenge" };
    struct tls_client *client;

    begin_challenges(TLS_LINK_HELD);
    client = connect_with(challenge);
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    tls_reply_held_by(TLS_FAILED, &reply);
    fixture_run(test.fixture);
    tls_client_look(client);
    ck_assert_str_eq(client->text, "the peer sent alert 112");
    sim_end(client->socket);
    fixture_run(test.fixture);
    expect_end(client, "500;tls_failed;0;0;0", "[info] *1 no challenge" CONTEXT);
    ck_assert_uint_eq(openings(), 0);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* The server's time is the client's, before the handshake, and behind it, where the client takes no
 * byte. */
START_TEST(a_challenge_cannot_stay)
{
    struct tls_reply reply = { .session = { .version = TLS_1_3, .plain_most = 1000 } };
    struct tls_client *client;

    begin_challenges(TLS_LINK_HELD);
    tls_profiles[1].handshake_timeout = 0; /* is no server's */
    client = connect_with(challenge);
    reply.used = client->waiting.n;
    sim_set_room(client->socket, 3);
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    if (_i == 1)
        tls_reply_held_by(TLS_DONE, &reply);
    fixture_pass(test.fixture, TIMEOUT - 1);
    ck_assert(!client->socket->closed);
    fixture_pass(test.fixture, 1);
    ck_assert(client->socket->closed);
    ck_assert_uint_eq(openings(), 0);
    ck_assert_uint_eq(logged, 1);
    tls_client_destroy(&client);
    log_so_far();
    end_tls();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_challenge_is_all_that_a_client_gets, 0, 4);
    tcase_add_test(tcase, other_clients_are_served);
    tcase_add_test(tcase, without_a_directory_the_protocol_is_like_any);
    tcase_add_test(tcase, a_hello_may_come_in_pieces);
    tcase_add_test(tcase, a_refusal_is_a_line_and_an_alert);
    tcase_add_loop_test(tcase, a_challenge_cannot_stay, 0, 2);
}

TEST_MAIN("ssl_challenge", add_tests)
