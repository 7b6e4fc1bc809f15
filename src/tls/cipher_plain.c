/* SPDX-License-Identifier: BSD-2-Clause */
/* The cipher without cryptography: bytes are exclusive-or'd with bytes of key and nonce, and the
 * tag is a checksum (FNV-1a) of key, nonce, data and sealed bytes, so that a changed byte changes
 * the tag. */
#include "tls/cipher_plain.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define SUM_BEGIN UINT64_C(0xcbf29ce484222325)
#define SUM_PRIME UINT64_C(0x100000001b3)

static uint64_t add_to_sum(uint64_t sum, const void *p, size_t n)
{
    const uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * SUM_PRIME;
    return sum;
}

static void sum_up_tag(const uint8_t *key, const uint8_t *nonce, const uint8_t *data, size_t data_n,
    const uint8_t *sealed, size_t n, uint8_t tag[CIPHER_TAG])
{
    uint64_t sum = SUM_BEGIN, halves[2];

    sum = add_to_sum(sum, key, CIPHER_KEY_MOST);
    sum = add_to_sum(sum, nonce, CIPHER_NONCE);
    sum = add_to_sum(sum, data, data_n);
    sum = add_to_sum(sum, sealed, n);
    halves[0] = htole64(sum);
    halves[1] = htole64(sum * SUM_PRIME);
    static_assert(sizeof(halves) == CIPHER_TAG, "a tag is two words");
    memcpy(tag, halves, CIPHER_TAG);
}

static void mask_bytes(
    const uint8_t *key, const uint8_t *nonce, const uint8_t *in, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] ^ key[i % CIPHER_KEY_MOST] ^ nonce[i % CIPHER_NONCE];
}

uint8_t *cipher_plain_gather(
    const struct iovec *pieces, int piece_n, const uint8_t *more, size_t more_n, uint8_t *out)
{
    for (int i = 0; i < piece_n; i++) {
        if (pieces[i].iov_base != out && pieces[i].iov_len > 0)
            memcpy(out, pieces[i].iov_base, pieces[i].iov_len);
        out += pieces[i].iov_len;
    }
    if (more_n > 0)
        memcpy(out, more, more_n);
    return out + more_n;
}

void cipher_plain_seal(const uint8_t *key, const uint8_t nonce[CIPHER_NONCE], const uint8_t *data,
    size_t data_n, const struct iovec *pieces, int piece_n, const uint8_t *more, size_t more_n,
    uint8_t *out)
{
    uint8_t *end = cipher_plain_gather(pieces, piece_n, more, more_n, out);
    size_t n = (size_t)(end - out);

    mask_bytes(key, nonce, out, n, out);
    sum_up_tag(key, nonce, data, data_n, out, n, end);
}

int cipher_plain_open(const uint8_t *key, const uint8_t nonce[CIPHER_NONCE], const uint8_t *data,
    size_t data_n, const uint8_t *in, size_t n, uint8_t *out)
{
    uint8_t tag[CIPHER_TAG];

    assert(n >= CIPHER_TAG);
    n -= CIPHER_TAG;
    sum_up_tag(key, nonce, data, data_n, in, n, tag);
    if (memcmp(tag, in + n, CIPHER_TAG) != 0)
        return -1;
    mask_bytes(key, nonce, in, n, out);
    return 0;
}

void cipher_plain_derive(
    const uint8_t *secret, size_t secret_n, const char *label, uint8_t *out, size_t n)
{
    uint64_t sum = add_to_sum(add_to_sum(SUM_BEGIN, secret, secret_n), label, strlen(label));

    for (size_t i = 0; i < n; i++) {
        sum = (sum ^ i) * SUM_PRIME;
        out[i] = (uint8_t)(sum >> 32);
    }
}
