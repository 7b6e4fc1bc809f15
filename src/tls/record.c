/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of TLS 1.2 and 1.3, sealed and opened by the keys of a direction.
 *
 * In TLS 1.3 the type lies within, behind the plaintext, and the header is authenticated; in TLS
 * 1.2 the sequence number and a header with the plaintext's length are. A nonce is the sequence
 * number on the iv; with GCM in TLS 1.2 it is the iv and a number in the record. */
#include "tls/record.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define EXPLICIT_NONCE 8
#define DATA_1_2 (8 + TLS_HEADER)

static bool record_is_1_3(const struct tls_suite *suite)
{
    return suite->version == TLS_1_3;
}

size_t tls_record_front(const struct tls_suite *suite)
{
    bool in_record = !record_is_1_3(suite) && tls_suite_iv_size(suite) < CIPHER_NONCE;

    return TLS_HEADER + (in_record ? EXPLICIT_NONCE : 0);
}

static void put_record_header(uint8_t *p, uint8_t type, size_t n)
{
    p[0] = type;
    p[1] = TLS_1_2 >> 8; /* TLS 1.3 writes 1.2, too */
    p[2] = TLS_1_2 & 0xff;
    p[3] = (uint8_t)(n >> 8);
    p[4] = (uint8_t)n;
}

static void put_sequence(uint8_t *p, uint64_t sequence)
{
    uint64_t number = htobe64(sequence);

    memcpy(p, &number, sizeof(number));
}

/* Makes the nonce of a record; `front` has the explicit part, if any. */
static void make_nonce(
    const struct tls_keys *keys, const uint8_t *record, size_t front, uint8_t nonce[CIPHER_NONCE])
{
    uint64_t low, number = htobe64(keys->sequence);

    memcpy(nonce, keys->iv, CIPHER_NONCE);
    if (front > TLS_HEADER) {
        memcpy(nonce + CIPHER_NONCE - EXPLICIT_NONCE, record + TLS_HEADER, EXPLICIT_NONCE);
        return;
    }
    memcpy(&low, nonce + CIPHER_NONCE - sizeof(low), sizeof(low));
    low ^= number;
    memcpy(nonce + CIPHER_NONCE - sizeof(low), &low, sizeof(low));
}

/* Makes what is authenticated beside n bytes of plaintext; returns its length. */
static size_t make_data(const struct tls_suite *suite, const struct tls_keys *keys,
    const uint8_t *record, size_t n, uint8_t data[DATA_1_2])
{
    if (record_is_1_3(suite)) {
        memcpy(data, record, TLS_HEADER);
        return TLS_HEADER;
    }
    put_sequence(data, keys->sequence);
    put_record_header(data + 8, record[0], n);
    return DATA_1_2;
}

size_t tls_record_seal(struct ciphers *ciphers, const struct tls_suite *suite,
    struct tls_keys *keys, enum tls_type type, const struct iovec *pieces, int piece_n, size_t n,
    uint8_t *out)
{
    size_t front = tls_record_front(suite), inner_n = record_is_1_3(suite);
    size_t whole = front + n + inner_n + CIPHER_TAG, data_n;
    uint8_t inner = (uint8_t)type, nonce[CIPHER_NONCE], data[DATA_1_2];

    assert(n > 0 && n <= TLS_PLAIN_MOST && whole <= n + TLS_OVERHEAD);
    if (keys->sequence == UINT64_MAX)
        return 0;
    put_record_header(out, inner_n > 0 ? TLS_DATA : inner, whole - TLS_HEADER);
    if (front > TLS_HEADER)
        put_sequence(out + TLS_HEADER, keys->sequence);
    make_nonce(keys, out, front, nonce);
    data_n = make_data(suite, keys, out, n, data);
    if (cipher_seal(ciphers, suite->cipher, keys->key, nonce, data, data_n, pieces, piece_n, &inner,
            inner_n, out + front) == -1)
        return 0;
    keys->sequence++;
    return whole;
}

/* Says why a record is refused. */
static int refuse_record(enum tls_alert *alert, enum tls_alert why)
{
    *alert = why;
    return -1;
}

int tls_record_length(const uint8_t *p, size_t n, enum tls_alert *alert)
{
    int length;

    if (n < TLS_HEADER)
        return 0;
    length = p[3] << 8 | p[4];
    if (p[0] < TLS_CHANGE_CIPHER_SPEC || p[0] > TLS_DATA)
        return refuse_record(alert, TLS_UNEXPECTED_MESSAGE);
    if (p[1] != TLS_1_2 >> 8 || p[2] != (TLS_1_2 & 0xff))
        return refuse_record(alert, TLS_PROTOCOL_VERSION);
    if (length > TLS_SEALED_MOST)
        return refuse_record(alert, TLS_RECORD_OVERFLOW);
    return TLS_HEADER + length;
}

/* Takes padding and type from the end of an inner plaintext; no type is found in padding alone. */
static uint8_t take_inner_type(struct tls_opened *opened)
{
    while (opened->n > 0 && opened->p[opened->n - 1] == 0)
        opened->n--;
    return opened->n > 0 ? opened->p[--opened->n] : 0;
}

int tls_record_open(struct ciphers *ciphers, const struct tls_suite *suite, struct tls_keys *keys,
    uint8_t *record, size_t n, struct tls_opened *opened, enum tls_alert *alert)
{
    size_t front = tls_record_front(suite), most = TLS_PLAIN_MOST + record_is_1_3(suite), data_n;
    uint8_t type = record[0], nonce[CIPHER_NONCE], data[DATA_1_2];
    int length = tls_record_length(record, n, alert);

    if (length == -1)
        return -1;
    assert((size_t)length == n);
    if (record_is_1_3(suite) && type != TLS_DATA)
        return refuse_record(alert, TLS_UNEXPECTED_MESSAGE);
    if (n < front + CIPHER_TAG)
        return refuse_record(alert, TLS_BAD_RECORD_MAC);
    *opened = (struct tls_opened) { .p = record + front, .n = n - front - CIPHER_TAG };
    if (opened->n > most)
        return refuse_record(alert, TLS_RECORD_OVERFLOW);
    if (keys->sequence == UINT64_MAX)
        return refuse_record(alert, TLS_INTERNAL_ERROR);
    make_nonce(keys, record, front, nonce);
    data_n = make_data(suite, keys, record, opened->n, data);
    if (cipher_open(ciphers, suite->cipher, keys->key, nonce, data, data_n, opened->p,
            opened->n + CIPHER_TAG, opened->p) == -1)
        return refuse_record(alert, TLS_BAD_RECORD_MAC);
    keys->sequence++;
    if (record_is_1_3(suite))
        type = take_inner_type(opened);
    opened->type = (enum tls_type)type;
    /* Only data may be empty (RFC 8446 5.4, RFC 5246 6.2.1). */
    if ((type != TLS_ALERT && type != TLS_HANDSHAKE && type != TLS_DATA) ||
        (type != TLS_DATA && opened->n == 0))
        return refuse_record(alert, TLS_UNEXPECTED_MESSAGE);
    return 0;
}
