/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshakes of libssl, in memory: bytes in, bytes out, and at last the session.
 *
 * Responsible for giving libssl no byte behind the handshake, for the limits of bytes in and out,
 * and for freeing all at any time. Never waits: without the files of its certificates a handshake
 * has not begun. */
#pragma once

#include "keeper/context.h"
#include "keeper/named_pairs.h"
#include "keeper/pairs.h"
#include "keeper/session_table.h"

#include <openssl/bio.h>
#include <openssl/kdf.h>

/* Data that the handshakes of an engine share. */
struct handshakes {
    const struct libssl *lib;
    BIO_METHOD *bio;                      /* reads and writes the memory of feed() */
    EVP_KDF *prf;                         /* TLS1-PRF */
    const struct session_table *sessions; /* with servers */
    EVP_MD_CTX *digest;
    struct pairs *pairs;       /* the profiles' pairs; set by the engine, as is the next */
    struct named_pairs *named; /* and those by names */
};

/* Makes what is shared; -1 with OpenSSL's errors. The table lives longer. */
int handshakes_init(
    struct handshakes *handshakes, const struct libssl *lib, const struct session_table *sessions);
void handshakes_done(struct handshakes *handshakes);

/* Handshakes, as the calls of struct tls_engine_ops in tls/engine.h. */
struct tls_handshake *handshake_begin(struct handshakes *handshakes, const struct context *context,
    const struct tls_profile *profile, const struct tls_start *start);
/* Gives the handshake a pair, before the first feed(); NULL, or the name of the failed call. */
const char *handshake_use_pair(struct tls_handshake *handshake, const struct pair *pair);
/* Begins a handshake that fails with the text, a constant. */
struct tls_handshake *handshake_refuse(const char *text);
enum tls_step handshake_feed(struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply);
bool handshake_ticket(struct tls_handshake *handshake, fb_bytes record);
void handshake_end(struct tls_handshake *handshake);
