/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of cipher suites, and the keys of a direction (RFC 8446 7.2, 7.3).
 *
 * Suites have an AEAD and forward secrecy. Never keeps keys; what is made on the way to them is
 * overwritten. */
#include "tls/suite.h"

#include "base/compiler.h"

#include <assert.h>
#include <string.h>

#define SALT_OF_GCM 4

#define AES_128 CIPHER_AES_128_GCM, TLS_SHA256
#define AES_256 CIPHER_AES_256_GCM, TLS_SHA384
#define CHACHA20 CIPHER_CHACHA20_POLY1305, TLS_SHA256

static const struct tls_suite suites[] = {
    { 0x0000, "PLAIN", TLS_1_3, CIPHER_PLAIN, TLS_SHA256 },
    { 0x1301, "TLS_AES_128_GCM_SHA256", TLS_1_3, AES_128 },
    { 0x1302, "TLS_AES_256_GCM_SHA384", TLS_1_3, AES_256 },
    { 0x1303, "TLS_CHACHA20_POLY1305_SHA256", TLS_1_3, CHACHA20 },
    { 0xc02b, "ECDHE-ECDSA-AES128-GCM-SHA256", TLS_1_2, AES_128 },
    { 0xc02f, "ECDHE-RSA-AES128-GCM-SHA256", TLS_1_2, AES_128 },
    { 0x009e, "DHE-RSA-AES128-GCM-SHA256", TLS_1_2, AES_128 },
    { 0xc02c, "ECDHE-ECDSA-AES256-GCM-SHA384", TLS_1_2, AES_256 },
    { 0xc030, "ECDHE-RSA-AES256-GCM-SHA384", TLS_1_2, AES_256 },
    { 0x009f, "DHE-RSA-AES256-GCM-SHA384", TLS_1_2, AES_256 },
    { 0xcca9, "ECDHE-ECDSA-CHACHA20-POLY1305", TLS_1_2, CHACHA20 },
    { 0xcca8, "ECDHE-RSA-CHACHA20-POLY1305", TLS_1_2, CHACHA20 },
    { 0xccaa, "DHE-RSA-CHACHA20-POLY1305", TLS_1_2, CHACHA20 },
};

const struct tls_suite *tls_suite_find(uint16_t id)
{
    const struct tls_suite *suite;

    for (unsigned i = 0; (suite = tls_suite_at(i)) != NULL; i++)
        if (suite->id == id)
            return suite;
    return NULL;
}

const struct tls_suite *tls_suite_at(unsigned i)
{
    for (unsigned at = 0; at < countof(suites); at++)
        if (cipher_is_there(suites[at].cipher) && i-- == 0)
            return &suites[at];
    return NULL;
}

size_t tls_suite_secret_size(const struct tls_suite *suite)
{
    assert(suite->version == TLS_1_3);
    return suite->hash == TLS_SHA384 ? 48 : 32;
}

size_t tls_suite_iv_size(const struct tls_suite *suite)
{
    assert(suite->version == TLS_1_2);
    return suite->cipher == CIPHER_CHACHA20_POLY1305 ? CIPHER_NONCE : SALT_OF_GCM;
}

static int derive_from_secret(struct ciphers *ciphers, const struct tls_keys *keys,
    const struct tls_suite *suite, const char *label, uint8_t *out, size_t n)
{
    return cipher_derive(ciphers, suite->cipher, suite->hash, keys->secret,
        tls_suite_secret_size(suite), label, out, n);
}

int tls_keys_expand(struct ciphers *ciphers, struct tls_keys *keys, const struct tls_suite *suite)
{
    if (derive_from_secret(
            ciphers, keys, suite, "key", keys->key, cipher_key_size(suite->cipher)) == -1)
        return -1;
    return derive_from_secret(ciphers, keys, suite, "iv", keys->iv, sizeof(keys->iv));
}

int tls_keys_update(struct ciphers *ciphers, struct tls_keys *keys, const struct tls_suite *suite)
{
    struct tls_keys next = { .sequence = 0 };
    int status = derive_from_secret(
        ciphers, keys, suite, "traffic upd", next.secret, tls_suite_secret_size(suite));

    if (status == 0)
        status = tls_keys_expand(ciphers, &next, suite);
    if (status == 0)
        *keys = next;
    tls_keys_wipe(&next);
    return status;
}

void tls_keys_wipe(struct tls_keys *keys)
{
    explicit_bzero(keys, sizeof(*keys));
}
