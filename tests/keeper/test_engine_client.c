/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine of OpenSSL as a client of libssl's servers, and of its own: each version and suite,
 * input in any pieces, names, protocols, certificates of both ends, and servers that fail. */
#include "call.h"

#include "support/directory.h"

#include <openssl/x509v3.h>
#include <string.h>

#define LOOP_VERSION (_i % 2 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION)

START_TEST(each_suite)
{
    const struct tls_suite *suite = tls_suite_at((unsigned)_i);
    const struct tls_start start = call_start("");
    struct talk_server engine;
    struct call call;
    SSL_CTX *server;

    if (suite == NULL || suite->cipher == CIPHER_PLAIN)
        return;
    server = call_server((int)suite->version, (int)suite->version);
    SSL_CTX_use_certificate(server, identities.rsa.certificate);
    SSL_CTX_use_PrivateKey(server, identities.rsa.key);
    SSL_CTX_set_dh_auto(server, 1);
    if (suite->version == TLS_1_3)
        ck_assert_int_eq(SSL_CTX_set_ciphersuites(server, suite->name), 1);
    else
        ck_assert_int_eq(SSL_CTX_set_cipher_list(server, suite->name), 1);
    call_open(&engine);
    engine.profile.ciphers = "ALL";
    talk_start(&engine);
    call_through(&call, &engine, server, &start);
    call_prove(&call);
    ck_assert_uint_eq(call.reply.session.suite, suite->id);
    ck_assert_uint_eq(call.reply.session.version, suite->version);
    ck_assert_uint_eq(call.reply.session.resumed, 0);
    ck_assert_uint_eq(call.reply.session.plain_most, TLS_PLAIN_MOST);
    ck_assert_uint_eq(call.tickets, suite->version == TLS_1_3 ? 2 : 0);
    call_end(&call);
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

START_TEST(input_may_come_in_pieces)
{
    static const size_t pieces[] = { 1, 2, 3, 7, 1000 };
    const struct tls_start start = call_start("");
    SSL_CTX *server = call_server(LOOP_VERSION, LOOP_VERSION);
    struct talk_server engine;
    struct call call;

    call_open(&engine);
    talk_start(&engine);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        call_begin(&call, &engine, server, &start);
        call.piece = pieces[i];
        call_run(&call);
        ck_assert_int_eq(call.step, TLS_DONE);
        call_prove(&call);
        call_end(&call);
    }
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

/* A name of the certificate, or an address; the outcome for a start's name. */
static const struct {
    const char *alternative; /* NULL: the common name alone, "ec.example" */
    const char *name;
    int code;
} names[] = {
    { NULL, "ec.example", X509_V_OK },
    { NULL, "EC.Example", X509_V_OK },
    { NULL, "rsa.example", X509_V_ERR_HOSTNAME_MISMATCH },
    { NULL, "", X509_V_ERR_HOSTNAME_MISMATCH },
    { "DNS:*.a.test", "b.a.test", X509_V_OK },
    { "DNS:*.a.test", "c.b.a.test", X509_V_ERR_HOSTNAME_MISMATCH },
    { "DNS:*.a.test", "ec.example", X509_V_ERR_HOSTNAME_MISMATCH },
    { "IP:127.0.0.1", "127.0.0.1", X509_V_OK },
    { "IP:127.0.0.1", "127.0.0.2", X509_V_ERR_IP_ADDRESS_MISMATCH },
    { "DNS:127.0.0.1", "127.0.0.1", X509_V_ERR_IP_ADDRESS_MISMATCH },
    { "IP:::1", "::1", X509_V_OK },
    { "IP:::1", "[::1]", X509_V_OK },
};

START_TEST(the_certificate_is_for_the_name)
{
    const int i = _i / 2;
    const struct tls_start start = call_start(names[i].name);
    struct identity leaf = certificates_make("ec.example", IDENTITY_EC, &identities.ca, 0, 7200);
    SSL_CTX *server = call_server(LOOP_VERSION, LOOP_VERSION);
    struct talk_server engine;
    X509_EXTENSION *extension;
    unsigned char *der = NULL;
    struct call call;
    int n;

    if (names[i].alternative != NULL) {
        extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names[i].alternative);
        ck_assert_int_eq(X509_add_ext(leaf.certificate, extension, -1), 1);
        X509_EXTENSION_free(extension);
        ck_assert_int_gt(X509_sign(leaf.certificate, identities.ca.key, EVP_sha256()), 0);
    }
    SSL_CTX_use_certificate(server, leaf.certificate);
    SSL_CTX_use_PrivateKey(server, leaf.key);
    call_open(&engine);
    engine.profile.verify = TLS_VERIFY_ON;
    engine.profile.trusted = talk_file(&engine, "ca.pem");
    talk_start(&engine);
    call_through(&call, &engine, server, &start);
    ck_assert_int_eq(
        call.reply.session.verify, names[i].code == X509_V_OK ? TLS_VERIFIED : TLS_VERIFIED_OTHER);
    ck_assert_int_eq(call.reply.session.verify_code, names[i].code);
    n = i2d_X509(leaf.certificate, &der);
    ck_assert_uint_eq(call.reply.peer_n, (size_t)n);
    ck_assert_mem_eq(call.reply.peer, der, (size_t)n);
    OPENSSL_free(der);
    call_prove(&call);
    call_end(&call);
    certificates_free(&leaf);
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

/* The handshake succeeds whatever the outcome is: the receiver of the session decides. */
START_TEST(a_chain_that_fails_is_told)
{
    static const int codes[] = { X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
        X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_REVOKED };
    const int i = _i / 2;
    const struct tls_start start = call_start("ec.example");
    struct identity old = certificates_make("ec.example", IDENTITY_EC, &identities.ca, 0, 60);
    SSL_CTX *server = call_server(LOOP_VERSION, LOOP_VERSION);
    struct talk_server engine;
    struct call call;

    call_open(&engine);
    engine.profile.verify = TLS_VERIFY_ON;
    engine.profile.trusted = talk_file(&engine, i == 0 ? "rsa.pem" : "ca.pem");
    if (i == 1) {
        SSL_CTX_use_certificate(server, old.certificate);
        SSL_CTX_use_PrivateKey(server, old.key);
    } else if (i == 2) {
        certificates_write_crl("crl.pem", &identities.ca, identities.ec.certificate);
        engine.profile.crl = talk_file(&engine, "crl.pem");
    }
    talk_start(&engine);
    call_through(&call, &engine, server, &start);
    ck_assert_int_eq(call.reply.session.verify, TLS_VERIFY_FAILED);
    ck_assert_int_eq(call.reply.session.verify_code, codes[i]);
    call_prove(&call);
    call_end(&call);
    certificates_free(&old);
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

START_TEST(a_name_is_sent_where_the_profile_says_so)
{
    static const struct {
        const char *name;
        bool sends, sent;
    } cases[] = { { "ec.example", true, true }, { "ec.example", false, false }, { "", true, false },
        { "127.0.0.1", true, false }, { "::1", true, false } };
    const int i = _i / 2;
    const struct tls_start start = call_start(cases[i].name);
    SSL_CTX *server = call_server(LOOP_VERSION, LOOP_VERSION);
    struct talk_server engine;
    struct call call;
    const char *seen;

    call_open(&engine);
    engine.profile.sends_name = cases[i].sends;
    talk_start(&engine);
    call_through(&call, &engine, server, &start);
    seen = SSL_get_servername(call.server, TLSEXT_NAMETYPE_host_name);
    ck_assert_ptr_eq(cases[i].sent ? seen : NULL, seen);
    ck_assert_uint_eq(call.reply.session.name_n, cases[i].sent ? strlen(cases[i].name) : 0);
    if (cases[i].sent) {
        ck_assert_str_eq(seen, cases[i].name);
        ck_assert_mem_eq(call.reply.session.name, seen, strlen(seen));
    }
    call_end(&call);
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

static int choose_echo(SSL *ssl, const unsigned char **out, unsigned char *n,
    const unsigned char *in, unsigned in_n, void *data)
{
    (void)ssl;
    (void)data;
    ck_assert_uint_eq(in_n, 8);
    ck_assert_mem_eq(in, "\2h2\4echo", 8);
    *out = in + 4;
    *n = 4;
    return SSL_TLSEXT_ERR_OK;
}

START_TEST(a_protocol_may_be_chosen)
{
    const struct tls_start start = call_start("");
    SSL_CTX *server = call_server(LOOP_VERSION, LOOP_VERSION);
    struct talk_server engine;
    struct call call;

    if (_i / 2 == 0)
        SSL_CTX_set_alpn_select_cb(server, choose_echo, NULL);
    call_open(&engine);
    engine.profile.alpn = (const uint8_t *)"\2h2\4echo";
    engine.profile.alpn_n = 8;
    talk_start(&engine);
    call_through(&call, &engine, server, &start);
    ck_assert_uint_eq(call.reply.session.alpn_n, _i / 2 == 0 ? 4 : 0);
    ck_assert_mem_eq(call.reply.session.alpn, "echo", call.reply.session.alpn_n);
    call_end(&call);
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

START_TEST(a_server_may_ask_for_a_certificate)
{
    const struct tls_start start = call_start("");
    SSL_CTX *server = call_server(LOOP_VERSION, LOOP_VERSION);
    struct talk_server engine;
    struct call call;

    X509_STORE_add_cert(SSL_CTX_get_cert_store(server), identities.ca.certificate);
    SSL_CTX_set_verify(server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    call_open(&engine);
    talk_pair(&engine, "rsa.pem", "rsa.key");
    talk_start(&engine);
    call_through(&call, &engine, server, &start);
    call_prove(&call);
    ck_assert_int_eq(SSL_get_verify_result(call.server), X509_V_OK);
    ck_assert_int_eq(
        X509_cmp(SSL_get0_peer_certificate(call.server), identities.rsa.certificate), 0);
    call_end(&call);
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

/* Of names of the start, read when the server asks; an empty name is no certificate. */
START_TEST(a_certificate_has_the_names_of_the_start)
{
    static const char *directories[] = { directory, directory };
    static const char *const starts[] = { "rsa.pem\0rsa.key", "\0", "none.pem\0ec.key" };
    static const size_t sizes[] = { 16, 2, 16 };
    struct tls_start start = call_start("");
    SSL_CTX *server = call_server(LOOP_VERSION, LOOP_VERSION);
    struct talk_server engine;

    X509_STORE_add_cert(SSL_CTX_get_cert_store(server), identities.ca.certificate);
    call_open(&engine);
    engine.profile.named = (struct tls_named) { .directories = directories, .n = 2 };
    talk_start(&engine);
    for (size_t i = 0; i < 2 * countof(starts); i++) {
        bool asks = i < countof(starts);
        size_t row = i % countof(starts);
        struct call call;

        SSL_CTX_set_verify(server, asks ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
        start.paths = (fb_bytes) { (const uint8_t *)starts[row], sizes[row] };
        call_begin(&call, &engine, server, &start);
        call_run(&call);
        ck_assert_int_eq(call.step, asks && row == 2 ? TLS_FAILED : TLS_DONE);
        if (asks && row == 0)
            ck_assert_int_eq(
                X509_cmp(SSL_get0_peer_certificate(call.server), identities.rsa.certificate), 0);
        else
            ck_assert_ptr_null(SSL_get0_peer_certificate(call.server));
        ck_assert_int_eq(
            strstr(call.reply.text, "/none.pem\": open() failed") != NULL, asks && row == 2);
        call_end(&call);
    }
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

START_TEST(a_server_may_ask_for_another_group)
{
    const struct tls_start start = call_start("");
    SSL_CTX *server = call_server(TLS1_3_VERSION, TLS1_3_VERSION);
    struct talk_server engine;
    struct call call;

    SSL_CTX_set1_groups_list(server, "P-384");
    call_open(&engine);
    talk_start(&engine);
    call_through(&call, &engine, server, &start);
    call_prove(&call);
    ck_assert_uint_eq(call.reply.session.group, 24);
    call_end(&call);
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

START_TEST(a_server_may_go_away)
{
    const struct tls_start start = call_start("");
    SSL_CTX *server = call_server(LOOP_VERSION, LOOP_VERSION);
    struct talk_server engine;
    struct call call;

    call_open(&engine);
    talk_start(&engine);
    for (unsigned feeds = 1; feeds < 60; feeds++) {
        call_begin(&call, &engine, server, &start);
        call.piece = 50;
        call.feeds = feeds;
        call_run(&call);
        call_end(&call);
        if (call.step == TLS_DONE)
            break;
        ck_assert_int_eq(call.step, TLS_MORE);
    }
    ck_assert_int_eq(call.step, TLS_DONE);
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

START_TEST(an_unhappy_server_fails_the_handshake)
{
    const struct tls_start start = call_start("");
    SSL_CTX *server = call_server(TLS1_3_VERSION, TLS1_3_VERSION);
    struct talk_server engine;
    struct call call;

    call_open(&engine);
    engine.profile.versions = TLS_VERSION_1_2;
    talk_start(&engine);
    call_begin(&call, &engine, server, &start);
    call_run(&call);
    ck_assert_int_eq(call.step, TLS_FAILED);
    ck_assert_str_eq(call.reply.text, "SSL_do_handshake() failed (SSL: error:0A00042E:SSL "
                                      "routines::tlsv1 alert protocol version:SSL alert number "
                                      "70)");
    call_end(&call);
    call_begin(&call, &engine, server, &start);
    BIO_write(call.to_client, "220 smtp.example ESMTP\r\n", 24);
    call_run(&call);
    ck_assert_int_eq(call.step, TLS_FAILED);
    ck_assert_ptr_nonnull(strstr(call.reply.text, "wrong version number"));
    call_end(&call);
    SSL_CTX_free(server);
    talk_close(&engine);
}
END_TEST

/* Lets the engine's client and a server of another engine shake hands. */
START_TEST(engines_shake_hands)
{
    static uint8_t to_server[TLS_FLIGHT_MOST], to_client[TLS_FLIGHT_MOST];
    const struct tls_start starts[2] = { call_start("ec.example"), { .role = TLS_SERVER } };
    enum tls_step steps[2] = { TLS_MORE, TLS_MORE };
    struct tls_reply replies[2] = {
        { .out = to_server, .out_most = TLS_FLIGHT_MOST, .peer = malloc(TLS_PEER_MOST) },
        { .out = to_client, .out_most = TLS_FLIGHT_MOST, .peer = malloc(TLS_PEER_MOST) },
    };
    struct talk_server engines[2];
    struct tls_handshake *handshakes[2];

    call_open(&engines[0]);
    engines[0].profile.versions = _i == 0 ? TLS_VERSION_1_2 : TLS_VERSION_1_3;
    engines[0].profile.sends_name = true;
    talk_open(&engines[1]);
    for (int i = 0; i < 2; i++) {
        talk_start(&engines[i]);
        handshakes[i] = engine_openssl.begin(engines[i].engine, &starts[i]);
    }
    for (int i = 0; i < 8; i++)
        if (steps[i % 2] == TLS_MORE)
            steps[i % 2] = engine_openssl.feed(handshakes[i % 2],
                (fb_bytes) { replies[(i + 1) % 2].out, replies[(i + 1) % 2].out_n },
                &replies[i % 2]);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(steps[i], TLS_DONE);
    ck_assert_mem_eq(&replies[0].session.in.secret, &replies[1].session.out.secret, 48);
    ck_assert_mem_eq(&replies[0].session.in.key, &replies[1].session.out.key, CIPHER_KEY_MOST);
    ck_assert_mem_eq(&replies[0].session.out.secret, &replies[1].session.in.secret, 48);
    ck_assert_mem_eq(&replies[0].session.out.iv, &replies[1].session.in.iv, CIPHER_NONCE);
    ck_assert_mem_eq(replies[1].session.name, "ec.example", 10);
    for (int i = 0; i < 2; i++) {
        engine_openssl.end(handshakes[i]);
        talk_close(&engines[i]);
        free(replies[i].peer);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_loop_test(tcase, each_suite, 0, 16);
    tcase_add_loop_test(tcase, input_may_come_in_pieces, 0, 2);
    tcase_add_loop_test(
        tcase, the_certificate_is_for_the_name, 0, 2 * (int)(sizeof(names) / sizeof(names[0])));
    tcase_add_loop_test(tcase, a_chain_that_fails_is_told, 0, 6);
    tcase_add_loop_test(tcase, a_name_is_sent_where_the_profile_says_so, 0, 10);
    tcase_add_loop_test(tcase, a_protocol_may_be_chosen, 0, 4);
    tcase_add_loop_test(tcase, a_server_may_ask_for_a_certificate, 0, 2);
    tcase_add_loop_test(tcase, a_certificate_has_the_names_of_the_start, 0, 2);
    tcase_add_test(tcase, a_server_may_ask_for_another_group);
    tcase_add_loop_test(tcase, a_server_may_go_away, 0, 2);
    tcase_add_test(tcase, an_unhappy_server_fails_the_handshake);
    tcase_add_loop_test(tcase, engines_shake_hands, 0, 2);
}

TEST_MAIN("engine_client", add_tests)
