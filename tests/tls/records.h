/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends of a direction, which seal and open records by the same keys; and bytes written as
 * hexadecimal digits. */
#pragma once

#include "support/random.h"
#include "support/test.h"
#include "tls/record.h"

#include <string.h>

struct records {
    struct ciphers *ciphers;
    const struct tls_suite *suite;
    struct tls_keys out, in;
    uint64_t random;
    uint8_t plain[TLS_PLAIN_MOST + 1];
    uint8_t record[TLS_HEADER + 65536];
    struct tls_opened opened;
    enum tls_alert alert;
};

/* Reads digits, between which spaces may stand; returns the number of bytes. */
static inline size_t read_hex(const char *text, uint8_t *out)
{
    size_t n = 0;

    for (; *text != '\0'; text++) {
        const char digits[] = { text[0], text[1], '\0' };

        if (*text == ' ')
            continue;
        out[n++] = (uint8_t)strtoul(digits, NULL, 16);
        text++;
    }
    return n;
}

static inline void fill_random(uint64_t *random, uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)next_random(random);
}

static inline unsigned count_suites(void)
{
    unsigned n = 0;

    while (tls_suite_at(n) != NULL)
        n++;
    return n;
}

/* Makes random keys for a suite, and plaintext. */
static inline void begin_records(struct records *records, const struct tls_suite *suite)
{
    memset(records, 0, sizeof(*records));
    records->random = random_seed();
    records->ciphers = ciphers_create();
    records->suite = suite;
    ck_assert_ptr_nonnull(records->ciphers);
    ck_assert_ptr_nonnull(suite);
    fill_random(&records->random, records->plain, sizeof(records->plain));
    fill_random(&records->random, records->out.secret, sizeof(records->out.secret));
    fill_random(&records->random, records->out.key, sizeof(records->out.key));
    fill_random(&records->random, records->out.iv, sizeof(records->out.iv));
    if (suite->version == TLS_1_3)
        ck_assert_int_eq(tls_keys_expand(records->ciphers, &records->out, suite), 0);
    records->in = records->out;
}

static inline void end_records(struct records *records)
{
    ciphers_destroy(records->ciphers);
}

/* Seals the first n bytes of the plaintext. */
static inline size_t seal_record(struct records *records, enum tls_type type, size_t n)
{
    struct iovec piece = { records->plain, n };

    return tls_record_seal(
        records->ciphers, records->suite, &records->out, type, &piece, 1, n, records->record);
}

static inline int open_record(struct records *records, size_t n)
{
    records->alert = TLS_CLOSE_NOTIFY;
    return tls_record_open(records->ciphers, records->suite, &records->in, records->record, n,
        &records->opened, &records->alert);
}

static inline void require_opened(struct records *records, enum tls_type type, size_t n)
{
    ck_assert_uint_eq(records->opened.type, type);
    ck_assert_uint_eq(records->opened.n, n);
    ck_assert_mem_eq(records->opened.p, records->plain, n);
}

static inline void require_refused(struct records *records, size_t n, enum tls_alert alert)
{
    ck_assert_int_eq(open_record(records, n), -1);
    ck_assert_uint_eq(records->alert, alert);
}
