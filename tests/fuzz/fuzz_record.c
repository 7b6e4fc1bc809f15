/* SPDX-License-Identifier: BSD-2-Clause */
/* Records under any suite, of a peer without the keys and of a peer with the keys: bytes as they
 * are, any inner plaintext, and sealed records with a changed byte. The first byte chooses the
 * suite. */
#include "fuzz/input.h"

#include "tls/record.h"

#include <string.h>

struct ends {
    struct ciphers *ciphers;
    const struct tls_suite *suite;
    struct tls_keys out, in;
    uint8_t record[TLS_PLAIN_MOST + TLS_OVERHEAD];
};

enum { RAW, SEALED, CHANGED, UPDATED, STEPS };

static void choose_suite(struct ends *ends, uint8_t number)
{
    unsigned n = 0;

    while (tls_suite_at(n) != NULL)
        n++;
    ends->suite = tls_suite_at(number % n);
    memset(&ends->out, 0x5a, sizeof(ends->out));
    ends->out.sequence = 0;
    if (ends->suite->version == TLS_1_3)
        require(tls_keys_expand(ends->ciphers, &ends->out, ends->suite) == 0, "keys can be made");
    ends->in = ends->out;
}

/* Opens the record that n bytes begin with; returns whether there was a good one. */
static bool open_bytes(struct ends *ends, size_t n, struct tls_opened *opened)
{
    uint64_t sequence = ends->in.sequence;
    enum tls_alert alert = TLS_CLOSE_NOTIFY;
    int length = tls_record_length(ends->record, n, &alert);
    uint8_t *copy;
    bool is_open;

    require(length != -1 || alert != TLS_CLOSE_NOTIFY, "a refusal has an alert");
    if (length <= 0 || (size_t)length > n)
        return false;
    copy = malloc((size_t)length); /* for a sanitizer to see its end */
    require(copy != NULL, "memory");
    memcpy(copy, ends->record, (size_t)length);
    is_open = tls_record_open(
                  ends->ciphers, ends->suite, &ends->in, copy, (size_t)length, opened, &alert) == 0;
    require(is_open || alert != TLS_CLOSE_NOTIFY, "a refusal has an alert");
    if (is_open) {
        require(ends->in.sequence == sequence + 1, "each record has a number");
        require(opened->n <= TLS_PLAIN_MOST, "plaintext has a limit");
        require(
            opened->p >= copy + TLS_HEADER && opened->p + opened->n + CIPHER_TAG <= copy + length,
            "plaintext lies in the record");
        require(opened->type >= TLS_ALERT && opened->type <= TLS_DATA, "types are known");
        require(opened->n > 0 || opened->type == TLS_DATA, "data alone is empty");
        memcpy(ends->record, opened->p, opened->n);
    }
    free(copy);
    return is_open;
}

/* Seals the bytes, of which the last is the type; returns the record's length. */
static size_t seal_bytes(struct ends *ends, const uint8_t *p, size_t n)
{
    struct iovec pieces[] = {
        { (void *)(uintptr_t)p, n / 2 },
        { (void *)(uintptr_t)(p + n / 2), n - 1 - n / 2 },
    };

    return tls_record_seal(ends->ciphers, ends->suite, &ends->out, (enum tls_type)p[n - 1], pieces,
        2, n - 1, ends->record);
}

/* Tries an inner plaintext of TLS 1.3, where the type may be padding, or a record of TLS 1.2 with
 * the last byte as type. */
static void try_sealed(struct ends *ends, const uint8_t *p, size_t n)
{
    size_t sealed = seal_bytes(ends, p, n), end = n;
    struct tls_opened opened = { .n = 0 };
    bool is_open;

    require(sealed > n && sealed < n + TLS_OVERHEAD, "records are sealed");
    is_open = open_bytes(ends, sealed, &opened);
    while (ends->suite->version == TLS_1_3 && end > 0 && p[end - 1] == 0)
        end--;
    if (end == 0 || p[end - 1] < TLS_ALERT || p[end - 1] > TLS_DATA ||
        (end == 1 && p[0] != TLS_DATA)) {
        require(!is_open, "types that no session has are refused");
        return;
    }
    require(is_open && opened.type == p[end - 1] && opened.n == end - 1, "what is sealed opens");
    require(memcmp(ends->record, p, end - 1) == 0, "with the same bytes");
}

static void try_changed(struct ends *ends, struct input *in, const uint8_t *p, size_t n)
{
    size_t sealed = seal_bytes(ends, p, n), at = next_byte(in) * 256u;
    uint8_t by = next_byte(in);
    struct tls_opened opened;

    at = (at + next_byte(in)) % sealed;
    ends->record[at] ^= by;
    require(by == 0 || !open_bytes(ends, sealed, &opened), "a changed byte is noticed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ends ends;
    struct input in = { data, data + size };
    struct tls_opened opened;

    if (ends.ciphers == NULL)
        ends.ciphers = ciphers_create();
    require(ends.ciphers != NULL, "memory");
    choose_suite(&ends, next_byte(&in));
    while (in.p < in.end) {
        uint8_t step = next_byte(&in) % STEPS;
        size_t n = next_byte(&in) * 256u, rest;
        const uint8_t *p;

        n += next_byte(&in);
        rest = (size_t)(in.end - in.p);
        n = n < rest ? n : rest;
        n = n < TLS_PLAIN_MOST + 1 ? n : TLS_PLAIN_MOST + 1;
        p = in.p;
        in.p += n;
        ends.out.sequence = ends.in.sequence; /* the last record may have been refused */
        if (step == UPDATED && ends.suite->version == TLS_1_3) {
            require(tls_keys_update(ends.ciphers, &ends.out, ends.suite) == 0, "keys change");
            require(tls_keys_update(ends.ciphers, &ends.in, ends.suite) == 0, "keys change");
        } else if (step == SEALED && n >= 2) {
            try_sealed(&ends, p, n);
        } else if (step == CHANGED && n >= 2) {
            try_changed(&ends, &in, p, n);
        } else {
            memcpy(ends.record, p, n);
            require(!open_bytes(&ends, n, &opened), "nobody without the keys makes a record");
        }
    }
    return 0;
}
