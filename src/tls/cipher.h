/* SPDX-License-Identifier: BSD-2-Clause */
/* Authenticated encryption of records (AEAD) and derivation of keys, by the library that this build
 * has: cipher_openssl.c, cipher_none.c.
 *
 * Responsible for the contexts of one loop, which all connections share: a key is set for each
 * record. Never knows records or connections. CIPHER_PLAIN has no cryptography, in every build: for
 * the simulated kernel and the test kit; no configuration chooses it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define CIPHER_KEY_MOST 32
#define CIPHER_NONCE 12
#define CIPHER_TAG 16
#define CIPHER_DIGEST 32

enum cipher {
    CIPHER_PLAIN,
    CIPHER_AES_128_GCM,
    CIPHER_AES_256_GCM,
    CIPHER_CHACHA20_POLY1305,
    CIPHERS,
};

enum tls_hash { TLS_SHA256, TLS_SHA384 };

struct ciphers;

/* Whether this build has the cipher. */
bool cipher_is_there(enum cipher cipher);
/* The bytes of a key. */
static inline size_t cipher_key_size(enum cipher cipher)
{
    return cipher == CIPHER_AES_128_GCM ? 16 : CIPHER_KEY_MOST;
}

/* Makes the library load what ciphers_create() needs, once, so that processes forked later share
 * the memory. */
void ciphers_prepare(void);
/* Makes the contexts of a loop, and has the library read its files, which a sandbox forbids later;
 * NULL without memory, or when the library fails. A cipher that the library's own configuration
 * has switched off fails to seal and to open. */
struct ciphers *ciphers_create(void);
void ciphers_destroy(struct ciphers *ciphers);
/* Seals the bytes of the pieces, with `more_n` bytes of `more` behind, to `out`, followed by the
 * tag. A piece lies where its sealed bytes go, or outside of `out`. -1: the library failed. */
int cipher_seal(struct ciphers *ciphers, enum cipher cipher, const uint8_t *key,
    const uint8_t nonce[CIPHER_NONCE], const uint8_t *data, size_t data_n,
    const struct iovec *pieces, int piece_n, const uint8_t *more, size_t more_n, uint8_t *out);
/* Opens n bytes, the tag included, in place or to `out`: n - CIPHER_TAG bytes, undefined after a
 * failure; -1: not authentic. */
int cipher_open(struct ciphers *ciphers, enum cipher cipher, const uint8_t *key,
    const uint8_t nonce[CIPHER_NONCE], const uint8_t *data, size_t data_n, const uint8_t *in,
    size_t n, uint8_t *out);
/* Makes the SHA-256 of n bytes; zeros where the build has no cryptography, or the library fails. */
void cipher_digest(const uint8_t *p, size_t n, uint8_t out[CIPHER_DIGEST]);
/* Derives n bytes from a secret for a label: HKDF-Expand-Label without a context (RFC 8446 7.1),
 * and for CIPHER_PLAIN a checksum. -1: the library failed. */
int cipher_derive(struct ciphers *ciphers, enum cipher cipher, enum tls_hash hash,
    const uint8_t *secret, size_t secret_n, const char *label, uint8_t *out, size_t n);
