/* SPDX-License-Identifier: BSD-2-Clause */
/* Session that a finished handshake of libssl is reduced to: keys of both directions, and what was
 * agreed.
 *
 * Responsible for the secrets of TLS 1.3, taken by the key-log callback, for the keys of TLS 1.2,
 * derived from the master secret, and for the number of the next record of each direction. Never
 * keeps a secret behind extract_wipe(). */
#pragma once

#include "keeper/libssl.h"
#include "tls/engine.h"

#include <openssl/kdf.h>

struct key_log;
struct tickets;

/* Needs of the callbacks of a handshake, and what they collect; zeroed at first. */
struct extract {
    const struct libssl *lib;
    const struct tickets *tickets;                            /* of the context */
    uint8_t client[TLS_SECRET_MOST], server[TLS_SECRET_MOST]; /* traffic secrets of TLS 1.3 */
    size_t client_n, server_n;
    struct key_log *key_log; /* for all secrets; NULL: none */
    bool is_client;          /* our end */
    bool logs;     /* a Finished of TLS 1.3 has passed, behind which secrets of data are made */
    bool finished; /* our Finished is sent: TLS 1.3 has changed the keys behind it */
    uint64_t sent; /* records that were sent behind our Finished */
    char refusal[TLS_TEXT]; /* why a callback has refused the peer; "": none has */
};

/* Sets the callbacks of all sessions of the context. */
void extract_prepare(const struct libssl *lib, SSL_CTX *ctx);
/* Lets the callbacks of a session write to `extract`, while the session lives. */
void extract_attach(const struct libssl *lib, SSL *ssl, struct extract *extract);
/* Called around each SSL_do_handshake(). */
void extract_begin_step(const struct extract *extract, SSL *ssl);
void extract_end_step(const struct extract *extract, SSL *ssl);
/* Fills in the session of a finished handshake; NULL, or what libssl has failed to tell. `prf` is
 * TLS1-PRF. */
const char *extract_session(const struct libssl *lib, SSL *ssl, const struct extract *extract,
    EVP_KDF *prf, struct tls_session *session);
/* Overwrites the secrets. */
void extract_wipe(struct extract *extract);
