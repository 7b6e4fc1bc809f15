/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of TLS 1.2 and 1.3 after the handshake: sealed and opened, one at a time.
 *
 * Responsible for header, nonce, additional data, inner type, padding and sequence numbers (RFC
 * 5246, 5288, 7905, 8446). Never keeps a byte, and never decides what a type means. */
#pragma once

#include "tls/suite.h"

#define TLS_HEADER 5
/* Plaintext of a record. */
#define TLS_PLAIN_MOST 16384
/* Bytes that TLS 1.3 and 1.2 allow behind the header. */
#define TLS_SEALED_MOST (TLS_PLAIN_MOST + 2048)
/* Bytes that sealing adds to plaintext, at most: header, explicit nonce or type, tag. */
#define TLS_OVERHEAD (TLS_HEADER + 8 + CIPHER_TAG)

enum tls_type { TLS_CHANGE_CIPHER_SPEC = 20, TLS_ALERT, TLS_HANDSHAKE, TLS_DATA };

enum tls_alert {
    TLS_CLOSE_NOTIFY = 0,
    TLS_UNEXPECTED_MESSAGE = 10,
    TLS_BAD_RECORD_MAC = 20,
    TLS_RECORD_OVERFLOW = 22,
    TLS_ILLEGAL_PARAMETER = 47,
    TLS_DECODE_ERROR = 50,
    TLS_PROTOCOL_VERSION = 70,
    TLS_INTERNAL_ERROR = 80,
    TLS_USER_CANCELED = 90,
    TLS_UNRECOGNIZED_NAME = 112,
};

/* Returns the bytes of a record before its plaintext: header and explicit nonce. */
size_t tls_record_front(const struct tls_suite *suite);

/* Seals n bytes (1 to TLS_PLAIN_MOST) of the pieces as one record to `out`, which has room for n +
 * TLS_OVERHEAD. Pieces may lie there, tls_record_front() bytes behind its beginning. Returns the
 * record's bytes; 0: the library failed, or the sequence is at its end. */
size_t tls_record_seal(struct ciphers *ciphers, const struct tls_suite *suite,
    struct tls_keys *keys, enum tls_type type, const struct iovec *pieces, int piece_n, size_t n,
    uint8_t *out);

/* Returns the whole length of the record that begins at `p`, header included: TLS_HEADER +
 * TLS_SEALED_MOST at most; 0: fewer than TLS_HEADER bytes are there; -1: no record, and *alert says
 * why. */
int tls_record_length(const uint8_t *p, size_t n, enum tls_alert *alert);

struct tls_opened {
    enum tls_type type; /* TLS_ALERT, TLS_HANDSHAKE or TLS_DATA */
    uint8_t *p;         /* plaintext, where the record lay */
    size_t n;           /* 0 is possible: an empty record, in TLS_DATA */
};

/* Opens a whole record of n bytes in place; -1: *alert says why, and nothing of it may be used. */
int tls_record_open(struct ciphers *ciphers, const struct tls_suite *suite, struct tls_keys *keys,
    uint8_t *record, size_t n, struct tls_opened *opened, enum tls_alert *alert);
