/* SPDX-License-Identifier: BSD-2-Clause */
/* A handshake in memory at the start of an engine: see self_test.h. */
#include "keeper/self_test.h"

#include "tls/record.h"

#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

/* Flights of the longest handshake that is tried. */
#define ROUNDS_MOST 6

/* A client of libssl against a handshake of ours. */
struct trial {
    struct handshakes *shared;
    struct context server;
    SSL *client;
    BIO *to_client, *to_server; /* the client's */
    struct tls_handshake *handshake;
    struct tls_reply reply;
    struct ciphers *ciphers;
};

/* Makes a key, and a self-signed certificate. */
static int make_pair(struct certificate *certificate, EVP_PKEY **key)
{
    X509 *leaf = X509_new();

    certificate->leaf = leaf;
    certificate->chain = sk_X509_new_null();
    *key = EVP_EC_gen("P-256");
    return leaf != NULL && certificate->chain != NULL && *key != NULL &&
                   X509_set_version(leaf, X509_VERSION_3) == 1 &&
                   ASN1_INTEGER_set(X509_get_serialNumber(leaf), 1) == 1 &&
                   X509_gmtime_adj(X509_getm_notBefore(leaf), 0) != NULL &&
                   X509_gmtime_adj(X509_getm_notAfter(leaf), 3600) != NULL &&
                   X509_set_pubkey(leaf, *key) == 1 && X509_sign(leaf, *key, EVP_sha256()) > 0
               ? 0
               : -1;
}

/* Goes through the handshake; the client sends a byte of data as soon as it can, which stays in
 * to_server. */
static const char *shake_hands(struct trial *trial)
{
    const struct libssl *lib = trial->shared->lib;
    enum tls_step step = TLS_MORE;
    bool written = false;
    char *p;

    for (int i = 0; i < ROUNDS_MOST && (step == TLS_MORE || !written); i++) {
        if (!written && lib->SSL_do_handshake(trial->client) == 1)
            written = lib->SSL_write(trial->client, "c", 1) == 1;
        if (step != TLS_MORE)
            continue;
        fb_bytes in = { .n = (size_t)BIO_get_mem_data(trial->to_server, &p) };
        in.p = (uint8_t *)p;
        step = handshake_feed(trial->handshake, in, &trial->reply);
        for (size_t n = trial->reply.used; n > 0; n--) {
            char byte;

            BIO_read(trial->to_server, &byte, 1);
        }
        BIO_write(trial->to_client, trial->reply.out, (int)trial->reply.out_n);
    }
    if (step == TLS_FAILED)
        return trial->reply.text;
    return step == TLS_DONE && written ? NULL : "the handshake does not end";
}

/* Opens the client's record, and seals a record for the client. */
static const char *exchange_data(struct trial *trial)
{
    const struct libssl *lib = trial->shared->lib;
    struct tls_session *session = &trial->reply.session;
    const struct tls_suite *suite = tls_suite_find(session->suite);
    const struct iovec piece = { .iov_base = (char[]) { 's' }, .iov_len = 1 };
    uint8_t record[256];
    struct tls_opened opened;
    enum tls_alert alert;
    char byte = 0;
    int n = BIO_read(trial->to_server, record, sizeof(record));

    if (session->version == TLS_1_3 &&
        (tls_keys_expand(&session->in, suite) < 0 || tls_keys_expand(&session->out, suite) < 0))
        return "keys cannot be made of the secrets";
    if (n <= 0 || tls_record_length(record, (size_t)n, &alert) != n ||
        tls_record_open(trial->ciphers, suite, &session->in, record, (size_t)n, &opened, &alert) <
            0 ||
        opened.type != TLS_DATA || opened.n != 1 || opened.p[0] != 'c')
        return "a client's record cannot be opened";
    n = (int)tls_record_seal(trial->ciphers, suite, &session->out, TLS_DATA, &piece, 1, 1, record);
    BIO_write(trial->to_client, record, n);
    return lib->SSL_read(trial->client, &byte, 1) == 1 && byte == 's'
               ? NULL
               : "a client cannot open a sealed record";
}

/* Tries a version with a new client and a new handshake. */
static const char *try_version(struct trial *trial, SSL_CTX *client_ctx, long version)
{
    const struct libssl *lib = trial->shared->lib;
    const char *failed = "no memory";

    trial->client = lib->SSL_new(client_ctx);
    trial->to_client = BIO_new(BIO_s_mem());
    trial->to_server = BIO_new(BIO_s_mem());
    trial->handshake = handshake_begin(trial->shared, &trial->server);
    if (trial->client != NULL && trial->to_client != NULL && trial->to_server != NULL &&
        trial->handshake != NULL) {
        lib->SSL_set_bio(trial->client, trial->to_client, trial->to_server);
        lib->SSL_set_connect_state(trial->client);
        lib->SSL_ctrl(trial->client, SSL_CTRL_SET_MAX_PROTO_VERSION, version, NULL);
        failed = shake_hands(trial);
        if (failed == NULL && trial->reply.session.version != version)
            failed = "another version";
        if (failed == NULL)
            failed = exchange_data(trial);
    } else {
        BIO_free(trial->to_client);
        BIO_free(trial->to_server);
    }
    lib->SSL_free(trial->client);
    if (trial->handshake != NULL)
        handshake_end(trial->handshake);
    return failed;
}

static const char *try_versions(
    struct trial *trial, const struct certificate *certificate, EVP_PKEY *key, SSL_CTX *client_ctx)
{
    const char *failed = context_add_pair(&trial->server, certificate, key);

    if (failed == NULL)
        failed = try_version(trial, client_ctx, TLS1_2_VERSION);
    return failed == NULL ? try_version(trial, client_ctx, TLS1_3_VERSION) : failed;
}

int self_test_run(struct handshakes *handshakes, const struct ticket_ring *ring, struct log *log)
{
    static const struct tls_profile profile = {
        .at = "the engine's test",
        .versions = TLS_VERSION_1_2 | TLS_VERSION_1_3,
        .client_ca = TLS_NO_FILE,
        .trusted = TLS_NO_FILE,
        .crl = TLS_NO_FILE,
        .dhparam = TLS_NO_FILE,
        .passwords = TLS_NO_FILE,
        .tickets = true,
        .session_timeout = 300,
    };
    const struct libssl *lib = handshakes->lib;
    struct trial trial = {
        .shared = handshakes,
        .reply = { .out = malloc(TLS_FLIGHT_MOST), .out_most = TLS_FLIGHT_MOST },
        .ciphers = ciphers_create(),
    };
    SSL_CTX *client_ctx = lib->SSL_CTX_new(lib->TLS_client_method());
    struct certificate certificate;
    EVP_PKEY *key;
    const char *failed = "no memory";

    if (make_pair(&certificate, &key) == 0 && trial.ciphers != NULL && client_ctx != NULL &&
        trial.reply.out != NULL &&
        context_create(&trial.server, lib, &profile, NULL, ring, log) == 0)
        failed = try_versions(&trial, &certificate, key, client_ctx);
    if (failed != NULL)
        log_write(log, LEVEL_EMERG, 0, "%s does not give the secrets of sessions: %s",
            OpenSSL_version(OPENSSL_VERSION), failed);
    context_destroy(&trial.server);
    lib->SSL_CTX_free(client_ctx);
    EVP_PKEY_free(key);
    X509_free(certificate.leaf);
    sk_X509_free(certificate.chain);
    OPENSSL_cleanse(&trial.reply.session, sizeof(trial.reply.session));
    free(trial.reply.out);
    ciphers_destroy(trial.ciphers);
    return failed == NULL ? 0 : -1;
}
