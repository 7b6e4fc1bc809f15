/* SPDX-License-Identifier: BSD-2-Clause */
/* CIPHER_PLAIN for cipher_openssl.c and cipher_none.c; the contract of cipher.h.
 *
 * Responsible for noticing a wrong key, nonce, length or bit, always the same way. Never keeps
 * anything secret. */
#pragma once

#include "tls/cipher.h"

/* Copies the pieces and `more` behind each other to `out`, where some may lie already; returns the
 * end. */
uint8_t *cipher_plain_gather(
    const struct iovec *pieces, int piece_n, const uint8_t *more, size_t more_n, uint8_t *out);
void cipher_plain_seal(const uint8_t *key, const uint8_t nonce[CIPHER_NONCE], const uint8_t *data,
    size_t data_n, const struct iovec *pieces, int piece_n, const uint8_t *more, size_t more_n,
    uint8_t *out);
int cipher_plain_open(const uint8_t *key, const uint8_t nonce[CIPHER_NONCE], const uint8_t *data,
    size_t data_n, const uint8_t *in, size_t n, uint8_t *out);
void cipher_plain_derive(
    const uint8_t *secret, size_t secret_n, const char *label, uint8_t *out, size_t n);
