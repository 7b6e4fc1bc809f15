/* SPDX-License-Identifier: BSD-2-Clause */
/* An end of a TLS session by libssl, in memory. The opposite end has gone after the handshake, and
 * left its keys: records are exchanged in its place. */
#pragma once

#include "tls/suite.h"

#include <openssl/ssl.h>

struct peer {
    EVP_PKEY *key;
    X509 *certificate;
    SSL_CTX *client, *server;
    SSL *ssl;
    BIO *in, *out;          /* bytes to libssl and of libssl */
    struct tls_keys theirs; /* for what libssl sends */
    struct tls_keys ours;   /* for what libssl is sent */
};

/* Makes a certificate and contexts for a suite. */
void peer_init(struct peer *peer, const struct tls_suite *suite);
void peer_done(struct peer *peer);
/* Shakes hands; `serves` chooses the end that stays. */
void peer_connect(
    struct peer *peer, struct ciphers *ciphers, const struct tls_suite *suite, bool serves);
void peer_disconnect(struct peer *peer);
