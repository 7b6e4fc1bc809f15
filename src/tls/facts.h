/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts about a handshake, for variables and PROXY headers, made by the engine, because no worker
 * parses a certificate. A profile says which texts are wanted; others are never made.
 *
 * Responsible for a block of texts, which crosses between processes: in the order of the enum, each
 * behind a byte with the fact and two with the length. A text that no longer fits, or has a control
 * character, is left out. */
#pragma once

#include <forkbeard/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lists of a client are the last, so that a long list leaves out nothing else. */
enum tls_fact {
    TLS_FACT_SUBJECT, /* of the peer's certificate, as those up to TLS_FACT_EXPIRY */
    TLS_FACT_ISSUER,
    TLS_FACT_COMMON_NAME,
    TLS_FACT_SERIAL,
    TLS_FACT_FINGERPRINT,
    TLS_FACT_NOT_BEFORE,
    TLS_FACT_NOT_AFTER,
    TLS_FACT_EXPIRY,         /* TLS_FACT_NOT_AFTER in seconds since the epoch */
    TLS_FACT_OWN_KEY,        /* kind and bits of the key of our certificate */
    TLS_FACT_OWN_ALGORITHM,  /* algorithm of the signature of our certificate */
    TLS_FACT_SIGNATURE,      /* algorithm of our signature in the handshake */
    TLS_FACT_PEER_SIGNATURE, /* algorithm of the peer's signature in the handshake */
    TLS_FACT_CIPHERS,        /* offered by the client, as those up to the last */
    TLS_FACT_CURVES,
    TLS_FACT_SIGNATURES,
    TLS_FACTS,
};

/* The bit of a fact in a profile's set. */
#define TLS_FACT(fact) (UINT32_C(1) << (fact))
/* In a set: the certificate of the peer, which is handed over beside the block. */
#define TLS_FACT_PEER TLS_FACT(TLS_FACTS)

/* The bytes of the longest block. */
#define TLS_FACTS_MOST 16384

/* Appends a text to a block of n bytes, with room for TLS_FACTS_MOST; the facts come in the order
 * of the enum. Returns the block's bytes, n where the text is left out. */
size_t tls_facts_put(uint8_t *block, size_t n, enum tls_fact fact, const char *text, size_t text_n);
/* Whether bytes are a text: no control character is among them. */
bool tls_facts_is_text(const uint8_t *text, size_t n);
/* Whether bytes are a block. */
bool tls_facts_check(fb_bytes block);
/* Finds a text in a block; n is 0: there is none. */
fb_bytes tls_facts_find(fb_bytes block, enum tls_fact fact);
