/* SPDX-License-Identifier: BSD-2-Clause */
/* Cipher suites of TLS 1.2 and 1.3, and the keys of a direction. */
#pragma once

#include "tls/cipher.h"

enum tls_version { TLS_1_2 = 0x0303, TLS_1_3 = 0x0304 };

struct tls_suite {
    uint16_t id;              /* IANA's number; 0: CIPHER_PLAIN */
    const char *name;         /* OpenSSL's */
    enum tls_version version; /* the only one it is for */
    enum cipher cipher;
    enum tls_hash hash;
};

#define TLS_SECRET_MOST 48

/* The keys of a direction, and the number of its next record. What a session keeps of TLS. */
struct tls_keys {
    uint64_t sequence;
    uint8_t secret[TLS_SECRET_MOST]; /* TLS 1.3: the traffic secret, of the hash's length */
    uint8_t key[CIPHER_KEY_MOST];
    uint8_t iv[CIPHER_NONCE]; /* TLS 1.2: GCM uses the first four bytes */
};

/* Returns the suite; NULL: unknown, or not in this build. */
const struct tls_suite *tls_suite_find(uint16_t id);
/* Returns suite number i; NULL behind the last. */
const struct tls_suite *tls_suite_at(unsigned i);
/* The bytes of a secret of TLS 1.3. */
size_t tls_suite_secret_size(const struct tls_suite *suite);
/* The bytes of the implicit part of a nonce of TLS 1.2. */
size_t tls_suite_iv_size(const struct tls_suite *suite);

/* TLS 1.3: makes key and iv from keys->secret, and begins with the sequence. -1: the library
 * failed. */
int tls_keys_expand(struct ciphers *ciphers, struct tls_keys *keys, const struct tls_suite *suite);
/* TLS 1.3: goes over to the next secret, key and iv, and to sequence 0; -1 as above. */
int tls_keys_update(struct ciphers *ciphers, struct tls_keys *keys, const struct tls_suite *suite);
/* Overwrites the keys. */
void tls_keys_wipe(struct tls_keys *keys);
