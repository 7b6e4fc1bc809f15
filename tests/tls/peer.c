/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshakes of libssl with itself, and the secrets of both directions. */
#include "tls/peer.h"

#include "support/test.h"
#include "tls/records.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>

static void take_secret(const SSL *ssl, const char *line)
{
    struct peer *peer = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const char *secret = strrchr(line, ' ') + 1;
    bool serves = SSL_is_server(peer->ssl) == 1;

    if (strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0)
        read_hex(secret, serves ? peer->theirs.secret : peer->ours.secret);
    else if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) == 0)
        read_hex(secret, serves ? peer->ours.secret : peer->theirs.secret);
}

static SSL_CTX *create_context(
    struct peer *peer, const struct tls_suite *suite, const SSL_METHOD *method)
{
    SSL_CTX *context = SSL_CTX_new(method);

    ck_assert_ptr_nonnull(context);
    SSL_CTX_set_app_data(context, peer);
    SSL_CTX_set_min_proto_version(context, suite->version);
    SSL_CTX_set_max_proto_version(context, suite->version);
    if (suite->version == TLS_1_3)
        ck_assert_int_eq(SSL_CTX_set_ciphersuites(context, suite->name), 1);
    else
        ck_assert_int_eq(SSL_CTX_set_cipher_list(context, suite->name), 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_keylog_callback(context, take_secret);
    return context;
}

static X509 *sign_certificate(EVP_PKEY *key)
{
    X509 *certificate = X509_new();

    ck_assert_ptr_nonnull(certificate);
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
        (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    X509_set_pubkey(certificate, key);
    ck_assert_int_gt(X509_sign(certificate, key, EVP_sha256()), 0);
    return certificate;
}

void peer_init(struct peer *peer, const struct tls_suite *suite)
{
    memset(peer, 0, sizeof(*peer));
    peer->key = strstr(suite->name, "RSA") != NULL ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    ck_assert_ptr_nonnull(peer->key);
    peer->certificate = sign_certificate(peer->key);
    peer->client = create_context(peer, suite, TLS_client_method());
    peer->server = create_context(peer, suite, TLS_server_method());
    SSL_CTX_set_num_tickets(peer->server, 0);
    SSL_CTX_set_dh_auto(peer->server, 1);
    ck_assert_int_eq(SSL_CTX_use_certificate(peer->server, peer->certificate), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(peer->server, peer->key), 1);
}

void peer_done(struct peer *peer)
{
    SSL_CTX_free(peer->client);
    SSL_CTX_free(peer->server);
    X509_free(peer->certificate);
    EVP_PKEY_free(peer->key);
}

/* Makes an end whose bytes go through memory. */
static SSL *create_end(SSL_CTX *context, BIO **in, BIO **out)
{
    SSL *ssl = SSL_new(context);

    ck_assert_ptr_nonnull(ssl);
    *in = BIO_new(BIO_s_mem());
    *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, *in, *out);
    return ssl;
}

/* Carries the output of an end to the input of its peer. */
static void carry_bytes(BIO *from, BIO *to)
{
    uint8_t bytes[4096];
    int n;

    while ((n = BIO_read(from, bytes, sizeof(bytes))) > 0)
        ck_assert_int_eq(BIO_write(to, bytes, n), n);
}

/* TLS 1.2: keys and ivs are a block of bytes made of the master secret (RFC 5246 6.3). */
static void make_key_block(SSL *ssl, const struct tls_suite *suite, uint8_t *block, size_t n)
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    uint8_t seed[13 + 64], master[48];
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(
            OSSL_KDF_PARAM_DIGEST, suite->hash == TLS_SHA384 ? "SHA384" : "SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, master, sizeof(master)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof(seed)),
        OSSL_PARAM_END,
    };

    memcpy(seed, "key expansion", 13);
    ck_assert_uint_eq(SSL_get_server_random(ssl, seed + 13, 32), 32);
    ck_assert_uint_eq(SSL_get_client_random(ssl, seed + 45, 32), 32);
    ck_assert_uint_eq(SSL_SESSION_get_master_key(SSL_get_session(ssl), master, 48), 48);
    ck_assert_int_eq(EVP_KDF_derive(context, block, n, params), 1);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
}

/* Finished messages were the first records of a direction. */
static void take_keys_1_2(struct peer *peer, const struct tls_suite *suite)
{
    bool serves = SSL_is_server(peer->ssl) == 1;
    struct tls_keys *client = serves ? &peer->ours : &peer->theirs;
    struct tls_keys *server = serves ? &peer->theirs : &peer->ours;
    size_t key_n = cipher_key_size(suite->cipher), iv_n = tls_suite_iv_size(suite);
    uint8_t block[2 * (CIPHER_KEY_MOST + CIPHER_NONCE)];

    make_key_block(peer->ssl, suite, block, 2 * (key_n + iv_n));
    memcpy(client->key, block, key_n);
    memcpy(server->key, block + key_n, key_n);
    memcpy(client->iv, block + 2 * key_n, iv_n);
    memcpy(server->iv, block + 2 * key_n + iv_n, iv_n);
    client->sequence = server->sequence = 1;
}

void peer_connect(
    struct peer *peer, struct ciphers *ciphers, const struct tls_suite *suite, bool serves)
{
    BIO *in, *out;
    SSL *gone = create_end(serves ? peer->client : peer->server, &in, &out);

    peer->ssl = create_end(serves ? peer->server : peer->client, &peer->in, &peer->out);
    peer->ours = peer->theirs = (struct tls_keys) { .sequence = 0 };
    SSL_set_connect_state(serves ? gone : peer->ssl);
    SSL_set_accept_state(serves ? peer->ssl : gone);
    for (int i = 0; i < 10 && (SSL_in_init(peer->ssl) || SSL_in_init(gone)); i++) {
        SSL_do_handshake(i % 2 == 0 ? peer->ssl : gone);
        carry_bytes(peer->out, in);
        carry_bytes(out, peer->in);
    }
    ck_assert_uint_eq(SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(gone)), suite->id);
    ck_assert(!SSL_in_init(peer->ssl) && !SSL_in_init(gone));
    SSL_free(gone);
    ERR_clear_error();
    if (suite->version == TLS_1_2) {
        take_keys_1_2(peer, suite);
        return;
    }
    ck_assert_int_eq(tls_keys_expand(ciphers, &peer->ours, suite), 0);
    ck_assert_int_eq(tls_keys_expand(ciphers, &peer->theirs, suite), 0);
}

void peer_disconnect(struct peer *peer)
{
    SSL_free(peer->ssl);
    ERR_clear_error();
}
