/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates of clients: the outcome of each verification, and the certificate handed over. */
#include "talk.h"
#include "tls/verify_text.h"

#include <openssl/x509v3.h>
#include <string.h>

#define LOOP_VERSION (_i % 2 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION)

/* A client with an identity, unless NULL, and a certificate between, unless NULL. */
static SSL_CTX *client_of(int version, const struct identity *identity, X509 *between)
{
    SSL_CTX *client = talk_client(version, version);

    if (identity == NULL)
        return client;
    ck_assert_int_eq(SSL_CTX_use_certificate(client, identity->certificate), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(client, identity->key), 1);
    if (between != NULL)
        ck_assert_int_eq(SSL_CTX_add1_chain_cert(client, between), 1);
    return client;
}

static void open_verifying(struct talk_server *server, enum tls_verify verify)
{
    talk_open(server);
    server->profile.verify = verify;
    if (verify != TLS_VERIFY_OPTIONAL_NO_CA)
        server->profile.client_ca = talk_file(server, "ca.pem");
}

/* Shakes hands, and expects this of the verification, and the peer's certificate. */
static void verified(
    struct talk_server *server, SSL_CTX *client, enum tls_verified verify, int code, X509 *peer)
{
    struct talk talk;
    unsigned char *der = NULL;
    int n = peer != NULL ? i2d_X509(peer, &der) : 0;

    talk_begin(&talk, server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    talk_prove(&talk);
    ck_assert_int_eq(talk.reply.session.verify, verify);
    ck_assert_int_eq(talk.reply.session.verify_code, code);
    ck_assert_uint_eq(talk.reply.peer_n, (size_t)n);
    if (n > 0)
        ck_assert_mem_eq(talk.reply.peer, der, (size_t)n);
    OPENSSL_free(der);
    talk_end(&talk);
}

/* The handshake succeeds whatever the mode: the receiver of the session decides. */
START_TEST(each_mode_with_each_client)
{
    static const enum tls_verify modes[] = { TLS_VERIFY_OFF, TLS_VERIFY_ON, TLS_VERIFY_OPTIONAL,
        TLS_VERIFY_OPTIONAL_NO_CA };
    enum tls_verify mode = modes[_i / 2];
    struct identity alien = certificates_make("alien", IDENTITY_EC, NULL, 0, 7200);
    struct identity old = certificates_make("old", IDENTITY_EC, &identities.ca, 0, 60);
    const struct {
        const struct identity *identity;
        int code;
    } cases[] = {
        { NULL, 0 },
        { &identities.ec, mode == TLS_VERIFY_OPTIONAL_NO_CA
                              ? X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE
                              : X509_V_OK },
        { &alien, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT },
        { &old, X509_V_ERR_CERT_HAS_EXPIRED },
    };
    struct talk_server server;

    open_verifying(&server, mode);
    talk_start(&server);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SSL_CTX *client = client_of(LOOP_VERSION, cases[i].identity, NULL);

        if (mode == TLS_VERIFY_OFF || cases[i].identity == NULL)
            verified(&server, client, TLS_VERIFIED_NONE, 0, NULL);
        else
            verified(&server, client, cases[i].code == X509_V_OK ? TLS_VERIFIED : TLS_VERIFY_FAILED,
                cases[i].code, cases[i].identity->certificate);
        SSL_CTX_free(client);
    }
    talk_close(&server);
    certificates_free(&alien);
    certificates_free(&old);
}
END_TEST

START_TEST(revoked_certificates)
{
    struct talk_server server;
    SSL_CTX *client = client_of(LOOP_VERSION, &identities.ec, NULL);

    certificates_write_crl("crl.pem", &identities.ca,
        _i / 2 == 0 ? identities.ec.certificate : identities.rsa.certificate);
    open_verifying(&server, TLS_VERIFY_ON);
    server.profile.crl = talk_file(&server, "crl.pem");
    talk_start(&server);
    verified(&server, client, _i / 2 == 0 ? TLS_VERIFY_FAILED : TLS_VERIFIED,
        _i / 2 == 0 ? X509_V_ERR_CERT_REVOKED : X509_V_OK, identities.ec.certificate);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(the_depth_is_limited)
{
    struct identity between = certificates_make("between", IDENTITY_EC, &identities.ca, 1, 7200);
    struct identity leaf = certificates_make("leaf", IDENTITY_EC, &between, 0, 7200);
    SSL_CTX *client = client_of(LOOP_VERSION, &leaf, between.certificate);
    struct talk_server server;

    open_verifying(&server, TLS_VERIFY_ON);
    server.profile.verify_depth = _i / 2;
    talk_start(&server);
    verified(&server, client, _i / 2 == 0 ? TLS_VERIFY_FAILED : TLS_VERIFIED,
        _i / 2 == 0 ? X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY : X509_V_OK, leaf.certificate);
    SSL_CTX_free(client);
    talk_close(&server);
    certificates_free(&between);
    certificates_free(&leaf);
}
END_TEST

/* Returns how many names of authorities the client is told. */
static int told_names(struct talk_server *server, SSL_CTX *client)
{
    struct talk talk;
    int n;

    talk_begin(&talk, server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    n = sk_X509_NAME_num(SSL_get0_peer_CA_list(talk.client));
    talk_end(&talk);
    return n;
}

START_TEST(trusted_certificates_are_not_told)
{
    SSL_CTX *client = client_of(LOOP_VERSION, &identities.ec, NULL);
    struct talk_server server;

    open_verifying(&server, TLS_VERIFY_ON);
    talk_start(&server);
    ck_assert_int_eq(told_names(&server, client), 1);
    talk_close(&server);
    open_verifying(&server, TLS_VERIFY_OPTIONAL_NO_CA);
    server.profile.trusted = talk_file(&server, "ca.pem");
    talk_start(&server);
    ck_assert_int_le(told_names(&server, client), 0);
    verified(&server, client, TLS_VERIFIED, X509_V_OK, identities.ec.certificate);
    talk_close(&server);
    SSL_CTX_free(client);
}
END_TEST

START_TEST(a_resumed_session_has_its_certificate)
{
    SSL_CTX *client = client_of(LOOP_VERSION, &identities.ec, NULL);
    struct talk_server server;
    struct talk talk;
    SSL_SESSION *session;

    open_verifying(&server, TLS_VERIFY_ON);
    talk_start(&server);
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    talk_prove(&talk);
    session = SSL_get1_session(talk.client);
    talk_end(&talk);
    talk_begin(&talk, &server, client);
    SSL_set_session(talk.client, session);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    ck_assert_uint_eq(talk.reply.session.resumed, 1);
    ck_assert_uint_eq(talk.reply.session.verify, TLS_VERIFIED);
    ck_assert_uint_gt(talk.reply.peer_n, 0);
    talk_end(&talk);
    SSL_SESSION_free(session);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

/* Compares a text of the engine's. */
static void has_fact(const struct talk *talk, enum tls_fact fact, const char *expected)
{
    fb_bytes text = tls_facts_find((fb_bytes) { talk->reply.facts, talk->reply.facts_n }, fact);

    ck_assert_msg(
        text.n == strlen(expected) && (text.n == 0 || memcmp(text.p, expected, text.n) == 0),
        "fact %d: \"%.*s\" is not \"%s\"", fact, (int)text.n, text.p, expected);
}

START_TEST(texts_are_nginx_s)
{
    struct identity identity = certificates_make("any", IDENTITY_EC, &identities.ca, 0, 7200);
    X509_NAME *name = X509_get_subject_name(identity.certificate);
    unsigned char digest[EVP_MAX_MD_SIZE];
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client;
    char text[64], ciphers[80];

    X509_NAME_add_entry_by_txt(
        name, "O", MBSTRING_UTF8, (const unsigned char *)"A, \"B\" \xc3\xa9", -1, -1, 0);
    ASN1_INTEGER_set(X509_get_serialNumber(identity.certificate), 0xabcdef);
    ASN1_TIME_set_string(X509_getm_notBefore(identity.certificate), "20200102030405Z");
    ASN1_TIME_set_string(X509_getm_notAfter(identity.certificate), "20990102030405Z");
    ck_assert_int_gt(X509_sign(identity.certificate, identities.ca.key, EVP_sha256()), 0);
    X509_digest(identity.certificate, EVP_sha1(), digest, NULL);
    client = client_of(LOOP_VERSION, &identity, NULL);
    ck_assert_int_eq(SSL_CTX_set1_groups_list(client, "P-256:X448"), 1);
    ck_assert_int_eq(SSL_CTX_set1_sigalgs_list(client, "ECDSA+SHA256:RSA-PSS+SHA384"), 1);
    ck_assert_int_eq(SSL_CTX_set_ciphersuites(client, "TLS_AES_256_GCM_SHA384"), 1);
    ck_assert_int_eq(SSL_CTX_set_cipher_list(client, "ECDHE-ECDSA-AES128-GCM-SHA256"), 1);
    open_verifying(&server, TLS_VERIFY_ON);
    server.profile.facts = TLS_FACT_PEER - 1;
    talk_start(&server);
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    ck_assert(tls_facts_check((fb_bytes) { talk.reply.facts, talk.reply.facts_n }));
    has_fact(&talk, TLS_FACT_SUBJECT, "O=A\\, \\\"B\\\" \\C3\\A9,CN=any");
    has_fact(&talk, TLS_FACT_ISSUER, "CN=test CA");
    has_fact(&talk, TLS_FACT_COMMON_NAME, "any");
    has_fact(&talk, TLS_FACT_SERIAL, "ABCDEF");
    for (int i = 0; i < 20; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    has_fact(&talk, TLS_FACT_FINGERPRINT, text);
    has_fact(&talk, TLS_FACT_NOT_BEFORE, "Jan  2 03:04:05 2020 GMT");
    has_fact(&talk, TLS_FACT_NOT_AFTER, "Jan  2 03:04:05 2099 GMT");
    has_fact(&talk, TLS_FACT_EXPIRY, "4071006245");
    has_fact(&talk, TLS_FACT_OWN_KEY, "EC256");
    has_fact(&talk, TLS_FACT_OWN_ALGORITHM, "ecdsa-with-SHA256");
    has_fact(&talk, TLS_FACT_SIGNATURE, "ecdsa_secp256r1_sha256");
    has_fact(&talk, TLS_FACT_PEER_SIGNATURE, "ecdsa_secp256r1_sha256");
    has_fact(&talk, TLS_FACT_CURVES, "prime256v1:X448");
    has_fact(&talk, TLS_FACT_SIGNATURES, "ecdsa_secp256r1_sha256:rsa_pss_rsae_sha384");
    snprintf(ciphers, sizeof(ciphers), "%s%s",
        LOOP_VERSION == TLS1_3_VERSION ? "TLS_AES_256_GCM_SHA384" : "ECDHE-ECDSA-AES128-GCM-SHA256",
        OpenSSL_version_num() < 0x30400000 ? ":TLS_EMPTY_RENEGOTIATION_INFO_SCSV" : "");
    has_fact(&talk, TLS_FACT_CIPHERS, ciphers);
    talk_end(&talk);
    talk_close(&server);
    SSL_CTX_free(client);
    certificates_free(&identity);
}
END_TEST

/* A client without a certificate has offers alone, and an unwanted text is not made. */
START_TEST(wanted_texts_alone_are_made)
{
    SSL_CTX *client = client_of(LOOP_VERSION, NULL, NULL);
    struct talk_server server;
    struct talk talk;

    open_verifying(&server, TLS_VERIFY_OPTIONAL);
    server.profile.facts = TLS_FACT(TLS_FACT_SUBJECT) | TLS_FACT(TLS_FACT_EXPIRY) |
                           TLS_FACT(TLS_FACT_PEER_SIGNATURE) | TLS_FACT_PEER;
    talk_start(&server);
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    ck_assert_uint_eq(talk.reply.facts_n, 0);
    talk_end(&talk);
    SSL_CTX_free(client);
    client = client_of(LOOP_VERSION, &identities.rsa, NULL);
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    has_fact(&talk, TLS_FACT_SUBJECT, "CN=rsa.example");
    has_fact(&talk, TLS_FACT_PEER_SIGNATURE, "rsa_pss_rsae_sha256");
    has_fact(&talk, TLS_FACT_SERIAL, "");
    talk_end(&talk);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(a_long_certificate_is_left_out)
{
    struct identity identity = certificates_make("long", IDENTITY_EC, NULL, 0, 7200);
    static char comment[TLS_PEER_MOST + 1];
    struct talk_server server;
    X509_EXTENSION *extension;
    SSL_CTX *client;

    memset(comment, 'x', sizeof(comment) - 1);
    extension = X509V3_EXT_conf_nid(NULL, NULL, NID_netscape_comment, comment);
    ck_assert_int_eq(X509_add_ext(identity.certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
    ck_assert_int_gt(X509_sign(identity.certificate, identity.key, EVP_sha256()), 0);
    client = client_of(LOOP_VERSION, &identity, NULL);
    open_verifying(&server, TLS_VERIFY_OPTIONAL_NO_CA);
    talk_start(&server);
    verified(&server, client, TLS_VERIFY_FAILED, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, NULL);
    SSL_CTX_free(client);
    talk_close(&server);
    certificates_free(&identity);
}
END_TEST

START_TEST(bad_files_of_trust)
{
    struct talk_server server;
    const char *lines;

    open_verifying(&server, TLS_VERIFY_ON);
    server.profile.client_ca = talk_file(&server, "ec.key");
    server.profile.trusted = talk_file(&server, "none.pem");
    server.profile.crl = talk_file(&server, "rsa.pem");
    lines = talk_mistakes(&server);
    ck_assert_ptr_nonnull(strstr(lines, "cannot load client CA certificates \""));
    ck_assert_ptr_nonnull(strstr(lines, "cannot load trusted certificates \""));
    ck_assert_ptr_nonnull(strstr(lines, "rsa.pem\": PEM_read_bio_X509_CRL() failed (SSL: "));
    talk_close(&server);
}
END_TEST

START_TEST(each_error_of_a_certificate_has_the_librarys_text)
{
    for (int32_t code = 1; code < 200; code++) {
        const char *text = X509_verify_cert_error_string(code);

        if (strcmp(text, "unknown certificate verification error") == 0)
            continue;
        if (OPENSSL_version_major() == 3 && OPENSSL_version_minor() == 0)
            ck_assert_pstr_eq(tls_verify_text(code), text);
    }
    ck_assert_ptr_null(tls_verify_text(0));
    ck_assert_ptr_null(tls_verify_text(INT32_MIN));
    ck_assert_ptr_null(tls_verify_text(INT32_MAX));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, each_error_of_a_certificate_has_the_librarys_text);
    talk_add(tcase);
    tcase_add_loop_test(tcase, each_mode_with_each_client, 0, 8);
    tcase_add_loop_test(tcase, revoked_certificates, 0, 4);
    tcase_add_loop_test(tcase, the_depth_is_limited, 0, 4);
    tcase_add_loop_test(tcase, trusted_certificates_are_not_told, 0, 2);
    tcase_add_loop_test(tcase, a_resumed_session_has_its_certificate, 0, 2);
    tcase_add_loop_test(tcase, texts_are_nginx_s, 0, 2);
    tcase_add_loop_test(tcase, wanted_texts_alone_are_made, 0, 2);
    tcase_add_loop_test(tcase, a_long_certificate_is_left_out, 0, 2);
    tcase_add_test(tcase, bad_files_of_trust);
}

TEST_MAIN("engine_peers", add_tests)
