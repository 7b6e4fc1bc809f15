/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine of OpenSSL against clients of libssl: handshakes of each version and suite, input in
 * any pieces, what is handed over, resumption, and peers that fail. */
#include "talk.h"

#include <openssl/err.h>
#include <string.h>

enum { TLS_1_2_LOOP, TLS_1_3_LOOP, VERSIONS };

static int version_of(int i)
{
    return i == TLS_1_2_LOOP ? TLS1_2_VERSION : TLS1_3_VERSION;
}

START_TEST(each_version_with_each_key)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i % 2), version_of(_i % 2));

    talk_open(&server);
    if (_i / 2 == 0)
        talk_pair(&server, "rsa.pem", "rsa.key");
    talk_start(&server);
    talk_through(&talk, &server, client);
    ck_assert_uint_eq(talk.reply.session.version, (unsigned)version_of(_i % 2));
    ck_assert(talk.reply.session.group == 29 ||  /* X25519 */
              talk.reply.session.group == 4588); /* X25519MLKEM768, from OpenSSL 3.5 on */
    ck_assert_uint_eq(talk.reply.session.resumed, 0);
    ck_assert_uint_eq(talk.reply.session.verify, TLS_VERIFIED_NONE);
    ck_assert_uint_eq(talk.reply.session.plain_most, TLS_PLAIN_MOST);
    ck_assert_uint_eq(talk.reply.session.alpn_n, 0);
    ck_assert_uint_eq(talk.reply.session.name_n, 0);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(each_suite)
{
    const struct tls_suite *suite = tls_suite_at((unsigned)_i);
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client;

    if (suite == NULL || suite->cipher == CIPHER_PLAIN)
        return;
    client = talk_client((int)suite->version, (int)suite->version);
    if (suite->version == TLS_1_3)
        ck_assert_int_eq(SSL_CTX_set_ciphersuites(client, suite->name), 1);
    else
        ck_assert_int_eq(SSL_CTX_set_cipher_list(client, suite->name), 1);
    talk_open(&server);
    talk_pair(&server, "ec.pem", "ec.key");
    talk_pair(&server, "rsa.pem", "rsa.key");
    if (strncmp(suite->name, "DHE-", 4) == 0) {
        certificates_write_dhparam("dh.pem");
        server.profile.dhparam = talk_file(&server, "dh.pem");
    }
    talk_start(&server);
    talk_through(&talk, &server, client);
    ck_assert_uint_eq(talk.reply.session.suite, suite->id);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

/* The last piece may hold the beginning of what is no handshake: pieces of 1, 2, 3, 7 and 1000. */
START_TEST(input_may_come_in_pieces)
{
    static const size_t pieces[] = { 1, 2, 3, 7, 1000 };
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    talk_open(&server);
    talk_start(&server);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        talk_begin(&talk, &server, client);
        talk.piece = pieces[i];
        talk.early = _i == TLS_1_3_LOOP;
        talk_run(&talk);
        ck_assert_int_eq(talk.step, TLS_DONE);
        talk_prove(&talk);
        talk_end(&talk);
    }
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

/* With TLS 1.2 a client sends data behind its Finished when it resumes a session. */
START_TEST(data_behind_the_handshake_is_left)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));
    SSL_SESSION *session;

    talk_open(&server);
    talk_start(&server);
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    talk_prove(&talk);
    session = SSL_get1_session(talk.client);
    talk_end(&talk);
    talk_begin(&talk, &server, client);
    SSL_set_session(talk.client, session);
    talk.early = true;
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    ck_assert_uint_eq(talk.reply.session.resumed, 1);
    ck_assert_int_gt(BIO_pending(talk.to_server), TLS_HEADER);
    talk_prove(&talk);
    talk_end(&talk);
    SSL_SESSION_free(session);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

/* Returns the session of a handshake, for the next. */
static SSL_SESSION *get_session(struct talk_server *server, SSL_CTX *client)
{
    struct talk talk;
    SSL_SESSION *session;

    talk_begin(&talk, server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    talk_prove(&talk);
    session = SSL_get1_session(talk.client);
    talk_end(&talk);
    return session;
}

/* Returns how many of three handshakes are resumed, with a new ticket each. */
static unsigned resume(struct talk_server *server, SSL_CTX *client)
{
    SSL_SESSION *session = get_session(server, client);
    unsigned resumed = 0;

    for (int i = 0; i < 3; i++) {
        struct talk talk;

        talk_begin(&talk, server, client);
        SSL_set_session(talk.client, session);
        talk_run(&talk);
        ck_assert_int_eq(talk.step, TLS_DONE);
        talk_prove(&talk);
        resumed += talk.reply.session.resumed;
        SSL_SESSION_free(session);
        session = SSL_get1_session(talk.client);
        talk_end(&talk);
    }
    SSL_SESSION_free(session);
    return resumed;
}

START_TEST(sessions_are_resumed_by_tickets)
{
    struct talk_server server;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    talk_open(&server);
    talk_start(&server);
    ck_assert_uint_eq(resume(&server, client), 3);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(without_tickets_nothing_is_resumed)
{
    struct talk_server server;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    talk_open(&server);
    server.profile.tickets = false;
    talk_start(&server);
    ck_assert_uint_eq(resume(&server, client), 0);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(name_and_protocol_are_handed_over)
{
    static const uint8_t offered[] = "\4nope\3two", known[] = "\3one\3two";
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    talk_open(&server);
    server.profile.alpn = known;
    server.profile.alpn_n = sizeof(known) - 1;
    talk_start(&server);
    SSL_CTX_set_alpn_protos(client, offered, sizeof(offered) - 1);
    talk_begin(&talk, &server, client);
    SSL_set_tlsext_host_name(talk.client, "www.example");
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    talk_prove(&talk);
    ck_assert_uint_eq(talk.reply.session.alpn_n, 3);
    ck_assert_mem_eq(talk.reply.session.alpn, "two", 3);
    ck_assert_uint_eq(talk.reply.session.name_n, 11);
    ck_assert_mem_eq(talk.reply.session.name, "www.example", 11);
    talk_end(&talk);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

/* Runs a handshake that has to fail, with an alert that the client understands. */
static void refused(struct talk *talk, struct talk_server *server, SSL_CTX *client, int reason)
{
    talk_begin(talk, server, client);
    talk_run(talk);
    ck_assert_int_eq(talk->step, TLS_FAILED);
    ck_assert_uint_gt(talk->reply.out_n, 0);
    ck_assert_int_eq(ERR_GET_REASON(ERR_peek_last_error()), reason);
    ERR_clear_error();
    talk_end(talk);
}

START_TEST(no_common_protocol_is_an_alert)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    talk_open(&server);
    server.profile.alpn = (const uint8_t *)"\3one";
    server.profile.alpn_n = 4;
    talk_start(&server);
    SSL_CTX_set_alpn_protos(client, (const uint8_t *)"\3two", 4);
    refused(&talk, &server, client, SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
    ck_assert_str_eq(talk.reply.text, "SSL_do_handshake() failed (SSL: error:0A0000EB:SSL "
                                      "routines::no application protocol)");
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(an_alert_of_the_client_is_told)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    talk_open(&server);
    talk_start(&server);
    SSL_CTX_set_verify(client, SSL_VERIFY_PEER, NULL);
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_FAILED);
    ck_assert_str_eq(talk.reply.text, "SSL_do_handshake() failed (SSL: error:0A000418:SSL "
                                      "routines::tlsv1 alert unknown ca:SSL alert number 48)");
    ERR_clear_error();
    talk_end(&talk);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(a_server_may_reject_all)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    talk_open(&server);
    server.profile.reject = true;
    talk_start(&server);
    refused(&talk, &server, client, SSL_R_TLSV1_UNRECOGNIZED_NAME);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(versions_are_the_profiles)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    talk_open(&server);
    server.profile.versions = _i == TLS_1_2_LOOP ? TLS_VERSION_1_3 : TLS_VERSION_1_2;
    talk_start(&server);
    refused(&talk, &server, client, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(a_client_is_asked_for_another_group)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(TLS1_3_VERSION, TLS1_3_VERSION);

    talk_open(&server);
    server.profile.groups = "P-384";
    talk_start(&server);
    SSL_CTX_set1_groups_list(client, "P-256:P-384");
    talk_through(&talk, &server, client);
    ck_assert_uint_eq(talk.reply.session.group, 24);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(the_servers_order_counts_if_so_configured)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_2_VERSION);

    SSL_CTX_set_cipher_list(client, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384");
    talk_open(&server);
    server.profile.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256";
    server.profile.prefer_server_ciphers = _i == 1;
    talk_start(&server);
    talk_through(&talk, &server, client);
    ck_assert_uint_eq(talk.reply.session.suite, _i == 1 ? 0xc02c : 0xc02b);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(a_client_may_limit_records)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    SSL_CTX_set_tlsext_max_fragment_length(client, TLSEXT_max_fragment_length_1024);
    talk_open(&server);
    talk_start(&server);
    talk_through(&talk, &server, client);
    ck_assert_uint_eq(talk.reply.session.plain_most, 1024);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

/* Feeds bytes that are no client's; returns the step. */
static enum tls_step feed_bytes(
    struct talk_server *server, struct tls_reply *reply, const void *p, size_t n)
{
    const struct tls_start start = { .role = TLS_SERVER, .profile = 0 };
    struct tls_handshake *handshake = engine_openssl.begin(server->engine, &start);
    enum tls_step step = engine_openssl.feed(handshake, (fb_bytes) { .p = p, .n = n }, reply);

    engine_openssl.end(handshake);
    return step;
}

START_TEST(garbage_fails)
{
    static uint8_t out[TLS_FLIGHT_MOST], garbage[4096];
    struct tls_reply reply = { .out = out, .out_most = sizeof(out) };
    struct talk_server server;

    talk_open(&server);
    talk_start(&server);
    ck_assert_int_eq(feed_bytes(&server, &reply, "GET / HTTP/1.0\r\n\r\n", 18), TLS_FAILED);
    ck_assert_str_eq(
        reply.text, "SSL_do_handshake() failed (SSL: error:0A00009C:SSL routines::http request)");
    memset(garbage, 0xff, sizeof(garbage));
    ck_assert_int_eq(feed_bytes(&server, &reply, garbage, sizeof(garbage)), TLS_FAILED);
    ck_assert_int_eq(feed_bytes(&server, &reply, "\x16\3\1\0", 4), TLS_MORE);
    ck_assert_uint_eq(reply.used, 4);
    ck_assert_int_eq(feed_bytes(&server, &reply, "", 0), TLS_MORE);
    talk_close(&server);
}
END_TEST

START_TEST(output_is_limited)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_3_VERSION);

    talk_open(&server);
    talk_start(&server);
    talk_begin(&talk, &server, client);
    talk.reply.out_most = 100;
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_FAILED);
    ck_assert_str_eq(talk.reply.text, "the handshake has too much to send");
    talk_end(&talk);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(a_client_may_go_away)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version_of(_i), version_of(_i));

    talk_open(&server);
    talk_start(&server);
    for (unsigned feeds = 1; feeds < 40; feeds++) {
        talk_begin(&talk, &server, client);
        talk.piece = 50;
        talk.feeds = feeds;
        talk_run(&talk);
        talk_end(&talk);
        if (talk.step == TLS_DONE)
            break;
        ck_assert_int_eq(talk.step, TLS_MORE);
    }
    ck_assert_int_eq(talk.step, TLS_DONE);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(a_wrong_start_fails)
{
    static const struct tls_start starts[] = { { .role = TLS_CLIENT }, { .profile = 1 } };
    struct tls_reply reply;
    struct tls_handshake *handshake;
    struct talk_server server;

    talk_open(&server);
    talk_start(&server);
    handshake = engine_openssl.begin(server.engine, &starts[_i]);
    ck_assert_ptr_nonnull(handshake);
    ck_assert_int_eq(engine_openssl.feed(handshake, (fb_bytes) { 0 }, &reply), TLS_FAILED);
    ck_assert_str_eq(reply.text, "the handshake is for a server that is not configured");
    engine_openssl.end(handshake);
    talk_close(&server);
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_loop_test(tcase, each_version_with_each_key, 0, 4);
    tcase_add_loop_test(tcase, each_suite, 0, 16);
    tcase_add_loop_test(tcase, input_may_come_in_pieces, 0, VERSIONS);
    tcase_add_loop_test(tcase, data_behind_the_handshake_is_left, 0, VERSIONS);
    tcase_add_loop_test(tcase, sessions_are_resumed_by_tickets, 0, VERSIONS);
    tcase_add_loop_test(tcase, without_tickets_nothing_is_resumed, 0, VERSIONS);
    tcase_add_loop_test(tcase, name_and_protocol_are_handed_over, 0, VERSIONS);
    tcase_add_loop_test(tcase, no_common_protocol_is_an_alert, 0, VERSIONS);
    tcase_add_loop_test(tcase, an_alert_of_the_client_is_told, 0, VERSIONS);
    tcase_add_loop_test(tcase, a_server_may_reject_all, 0, VERSIONS);
    tcase_add_loop_test(tcase, versions_are_the_profiles, 0, VERSIONS);
    tcase_add_test(tcase, a_client_is_asked_for_another_group);
    tcase_add_loop_test(tcase, the_servers_order_counts_if_so_configured, 0, 2);
    tcase_add_loop_test(tcase, a_client_may_limit_records, 0, VERSIONS);
    tcase_add_test(tcase, garbage_fails);
    tcase_add_test(tcase, output_is_limited);
    tcase_add_loop_test(tcase, a_client_may_go_away, 0, VERSIONS);
    tcase_add_loop_test(tcase, a_wrong_start_fails, 0, 2);
}

TEST_MAIN("engine_openssl", add_tests)
