/* SPDX-License-Identifier: BSD-2-Clause */
/* No cryptography, in a build without OpenSSL: CIPHER_PLAIN alone, which has no contexts. */
#include "tls/cipher_plain.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct ciphers {
    char none;
};

bool cipher_is_there(enum cipher cipher)
{
    return cipher == CIPHER_PLAIN;
}

void ciphers_prepare(void)
{
}

struct ciphers *ciphers_create(void)
{
    return calloc(1, sizeof(struct ciphers));
}

void ciphers_destroy(struct ciphers *ciphers)
{
    free(ciphers);
}

int cipher_seal(struct ciphers *ciphers, enum cipher cipher, const uint8_t *key,
    const uint8_t nonce[CIPHER_NONCE], const uint8_t *data, size_t data_n,
    const struct iovec *pieces, int piece_n, const uint8_t *more, size_t more_n, uint8_t *out)
{
    (void)ciphers;
    assert(cipher == CIPHER_PLAIN);
    cipher_plain_seal(key, nonce, data, data_n, pieces, piece_n, more, more_n, out);
    return 0;
}

int cipher_open(struct ciphers *ciphers, enum cipher cipher, const uint8_t *key,
    const uint8_t nonce[CIPHER_NONCE], const uint8_t *data, size_t data_n, const uint8_t *in,
    size_t n, uint8_t *out)
{
    (void)ciphers;
    assert(cipher == CIPHER_PLAIN);
    return cipher_plain_open(key, nonce, data, data_n, in, n, out);
}

int cipher_derive(struct ciphers *ciphers, enum cipher cipher, enum tls_hash hash,
    const uint8_t *secret, size_t secret_n, const char *label, uint8_t *out, size_t n)
{
    (void)ciphers;
    (void)hash;
    assert(cipher == CIPHER_PLAIN);
    cipher_plain_derive(secret, secret_n, label, out, n);
    return 0;
}

void cipher_digest(const uint8_t *p, size_t n, uint8_t out[CIPHER_DIGEST])
{
    (void)p;
    (void)n;
    memset(out, 0, CIPHER_DIGEST);
}
