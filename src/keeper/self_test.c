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

#define TRIAL_PROFILE(its_role)                                                                    \
    { .role = (its_role),                                                                          \
        .at = "the engine's test",                                                                 \
        .versions = TLS_VERSION_1_2 | TLS_VERSION_1_3,                                             \
        .client_ca = TLS_NO_FILE,                                                                  \
        .trusted = TLS_NO_FILE,                                                                    \
        .crl = TLS_NO_FILE,                                                                        \
        .dhparam = TLS_NO_FILE,                                                                    \
        .passwords = TLS_NO_FILE,                                                                  \
        .tickets = true,                                                                           \
        .session_timeout = 300 }

/* A handshake of ours, in either role, with a peer of libssl. */
struct trial {
    struct handshakes *shared;
    struct context contexts[2]; /* by role */
    struct pair pair;           /* the server's, in both roles */
    SSL_CTX *peer_ctx;          /* of both roles */
    SSL *peer;
    BIO *to_peer, *to_us;
    struct tls_handshake *handshake;
    struct tls_reply reply;
    struct ciphers *ciphers;
};

/* Makes a key, and a self-signed certificate. */
static int make_pair(struct pair *pair)
{
    X509 *leaf = X509_new();

    *pair = (struct pair) {
        .leaf = leaf,
        .chain = sk_X509_new_null(),
        .key = EVP_EC_gen("P-256"),
    };
    return leaf != NULL && pair->chain != NULL && pair->key != NULL &&
                   X509_set_version(leaf, X509_VERSION_3) == 1 &&
                   ASN1_INTEGER_set(X509_get_serialNumber(leaf), 1) == 1 &&
                   X509_gmtime_adj(X509_getm_notBefore(leaf), 0) != NULL &&
                   X509_gmtime_adj(X509_getm_notAfter(leaf), 3600) != NULL &&
                   X509_set_pubkey(leaf, pair->key) == 1 &&
                   X509_sign(leaf, pair->key, EVP_sha256()) > 0
               ? 0
               : -1;
}

/* Goes through the handshake; the peer sends a byte of data as soon as it can, which stays in
 * to_us. */
static const char *shake_hands(struct trial *trial, enum tls_role role)
{
    const struct libssl *lib = trial->shared->lib;
    enum tls_step step = TLS_MORE;
    bool written = false;
    char *p;

    for (int i = 0; i < ROUNDS_MOST && (step == TLS_MORE || !written); i++) {
        if (!written && (i > 0 || role == TLS_SERVER) && lib->SSL_do_handshake(trial->peer) == 1)
            written = lib->SSL_write(trial->peer, "p", 1) == 1;
        if (step != TLS_MORE)
            continue;
        fb_bytes in = { .n = (size_t)BIO_get_mem_data(trial->to_us, &p) };
        in.p = (uint8_t *)p;
        step = handshake_feed(trial->handshake, in, &trial->reply);
        for (size_t n = trial->reply.used; n > 0; n--) {
            char byte;

            BIO_read(trial->to_us, &byte, 1);
        }
        BIO_write(trial->to_peer, trial->reply.out, (int)trial->reply.out_n);
    }
    if (step == TLS_FAILED)
        return trial->reply.text;
    return step == TLS_DONE && written ? NULL : "the handshake does not end";
}

/* Opens the peer's record, and seals a record for the peer. */
static const char *exchange_data(struct trial *trial)
{
    const struct libssl *lib = trial->shared->lib;
    struct tls_session *session = &trial->reply.session;
    const struct tls_suite *suite = tls_suite_find(session->suite);
    const struct iovec piece = { .iov_base = (char[]) { 'o' }, .iov_len = 1 };
    uint8_t record[256];
    struct tls_opened opened;
    enum tls_alert alert;
    char byte = 0;
    int n = BIO_read(trial->to_us, record, sizeof(record));

    if (session->version == TLS_1_3 &&
        (tls_keys_expand(trial->ciphers, &session->in, suite) < 0 ||
            tls_keys_expand(trial->ciphers, &session->out, suite) < 0))
        return "keys cannot be made of the secrets";
    if (n <= 0 || tls_record_length(record, (size_t)n, &alert) != n ||
        tls_record_open(trial->ciphers, suite, &session->in, record, (size_t)n, &opened, &alert) <
            0 ||
        opened.type != TLS_DATA || opened.n != 1 || opened.p[0] != 'p')
        return "a peer's record cannot be opened";
    n = (int)tls_record_seal(trial->ciphers, suite, &session->out, TLS_DATA, &piece, 1, 1, record);
    BIO_write(trial->to_peer, record, n);
    return lib->SSL_read(trial->peer, &byte, 1) == 1 && byte == 'o'
               ? NULL
               : "a peer cannot open a sealed record";
}

/* Tries a version with a new peer and a new handshake. */
static const char *try_version(struct trial *trial, enum tls_role role, long version)
{
    const struct libssl *lib = trial->shared->lib;
    const struct tls_start start = { .role = role };
    const char *failed = "no memory";

    trial->peer = lib->SSL_new(trial->peer_ctx);
    trial->to_peer = BIO_new(BIO_s_mem());
    trial->to_us = BIO_new(BIO_s_mem());
    trial->handshake = handshake_begin(
        trial->shared, &trial->contexts[role], trial->contexts[role].profile, &start);
    if (trial->peer != NULL && trial->to_peer != NULL && trial->to_us != NULL &&
        trial->handshake != NULL) {
        lib->SSL_set_bio(trial->peer, trial->to_peer, trial->to_us);
        if (role == TLS_SERVER)
            lib->SSL_set_connect_state(trial->peer);
        else
            lib->SSL_set_accept_state(trial->peer);
        lib->SSL_ctrl(trial->peer, SSL_CTRL_SET_MAX_PROTO_VERSION, version, NULL);
        failed = role == TLS_SERVER ? handshake_use_pair(trial->handshake, &trial->pair) : NULL;
        if (failed == NULL)
            failed = shake_hands(trial, role);
        if (failed == NULL && trial->reply.session.version != version)
            failed = "another version";
        if (failed == NULL)
            failed = exchange_data(trial);
    } else {
        BIO_free(trial->to_peer);
        BIO_free(trial->to_us);
    }
    lib->SSL_free(trial->peer);
    if (trial->handshake != NULL)
        handshake_end(trial->handshake);
    return failed;
}

/* Makes the contexts of both roles, and the peers'. */
static const char *make_contexts(
    struct trial *trial, const struct ticket_ring *ring, struct log *log)
{
    static const struct tls_profile profiles[2] = {
        [TLS_SERVER] = TRIAL_PROFILE(TLS_SERVER),
        [TLS_CLIENT] = TRIAL_PROFILE(TLS_CLIENT),
    };
    const struct libssl *lib = trial->shared->lib;

    trial->peer_ctx = lib->SSL_CTX_new(lib->TLS_method());
    return make_pair(&trial->pair) == 0 && trial->peer_ctx != NULL &&
                   lib->SSL_CTX_use_certificate(trial->peer_ctx, trial->pair.leaf) == 1 &&
                   lib->SSL_CTX_use_PrivateKey(trial->peer_ctx, trial->pair.key) == 1 &&
                   /* data is next to Finished */
                   lib->SSL_CTX_set_num_tickets(trial->peer_ctx, 0) == 1 &&
                   context_create(&trial->contexts[TLS_SERVER], lib, &profiles[TLS_SERVER], NULL,
                       ring, log) == 0 &&
                   context_create(&trial->contexts[TLS_CLIENT], lib, &profiles[TLS_CLIENT], NULL,
                       NULL, log) == 0
               ? NULL
               : "no memory";
}

static const char *try_roles(struct trial *trial)
{
    const char *failed = NULL;

    for (int i = 0; i < 4 && failed == NULL; i++)
        failed = try_version(
            trial, (enum tls_role)(i / 2), i % 2 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
    return failed;
}

int self_test_run(struct handshakes *handshakes, const struct ticket_ring *ring, struct log *log)
{
    struct trial trial = {
        .shared = handshakes,
        .reply = { .out = malloc(TLS_FLIGHT_MOST),
            .out_most = TLS_FLIGHT_MOST,
            .peer = malloc(TLS_PEER_MOST) },
        .ciphers = ciphers_create(),
    };
    const char *failed = "no memory";

    if (trial.ciphers != NULL && trial.reply.out != NULL && trial.reply.peer != NULL)
        failed = make_contexts(&trial, ring, log);
    if (failed == NULL)
        failed = try_roles(&trial);
    if (failed != NULL)
        log_write(log, LEVEL_EMERG, 0, "%s does not give the secrets of sessions: %s",
            OpenSSL_version(OPENSSL_VERSION), failed);
    pair_free(&trial.pair);
    context_destroy(&trial.contexts[TLS_SERVER]);
    context_destroy(&trial.contexts[TLS_CLIENT]);
    handshakes->lib->SSL_CTX_free(trial.peer_ctx);
    OPENSSL_cleanse(&trial.reply.session, sizeof(trial.reply.session));
    free(trial.reply.out);
    free(trial.reply.peer);
    ciphers_destroy(trial.ciphers);
    return failed == NULL ? 0 : -1;
}
