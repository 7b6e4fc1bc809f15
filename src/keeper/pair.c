/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates and keys in PEM and DER: see pair.h. */
#include "keeper/pair.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

/* The longest chain of a record, in certificates: a longer one is read from its file each time. */
#define CHAIN_MOST 16

/* The line of a file with passwords that is tried. */
struct password_line {
    const char *p;
    size_t n;
};

const char *pair_read_certificate(struct pair *pair, BIO *bio)
{
    X509 *next;

    ERR_clear_error();
    pair->chain = sk_X509_new_null();
    if (pair->chain == NULL)
        return "sk_X509_new_null()";
    pair->leaf = PEM_read_bio_X509_AUX(bio, NULL, pem_no_password, NULL);
    if (pair->leaf == NULL)
        return "PEM_read_bio_X509_AUX()";
    while ((next = PEM_read_bio_X509(bio, NULL, pem_no_password, NULL)) != NULL)
        if (sk_X509_push(pair->chain, next) == 0) {
            X509_free(next);
            return "sk_X509_push()";
        }
    return pem_is_at_end() ? NULL : "PEM_read_bio_X509()";
}

static int give_password(char *to, int size, int writes, void *data)
{
    const struct password_line *line = data;

    (void)writes;
    if (line->n > (size_t)size)
        return -1;
    memcpy(to, line->p, line->n);
    return (int)line->n;
}

/* Takes the next line, without its end; false at the end of the passwords. */
static bool next_password(struct password_line *line, const char **at)
{
    if (**at == '\0')
        return false;
    line->p = *at;
    line->n = strcspn(*at, "\r\n");
    *at += line->n;
    *at += strspn(*at, "\r\n");
    return true;
}

const char *pair_read_key(struct pair *pair, BIO *bio, const char *passwords)
{
    struct password_line line;

    ERR_clear_error();
    if (passwords[0] == '\0')
        pair->key = PEM_read_bio_PrivateKey(bio, NULL, pem_no_password, NULL);
    while (pair->key == NULL && next_password(&line, &passwords)) {
        ERR_clear_error();
        (void)BIO_reset(bio);
        pair->key = PEM_read_bio_PrivateKey(bio, NULL, give_password, &line);
    }
    return pair->key != NULL ? NULL : "PEM_read_bio_PrivateKey()";
}

bool pair_put(
    const struct pair *pair, struct pair_facts *facts, struct pair_store *store, uint32_t number)
{
    struct iovec pieces[3 + CHAIN_MOST] = { { facts, sizeof(*facts) } };
    int chain_n = sk_X509_num(pair->chain);
    unsigned n = 3 + (unsigned)(chain_n <= CHAIN_MOST ? chain_n : 0);
    bool whole = chain_n <= CHAIN_MOST, kept;

    for (unsigned i = 1; i < n; i++) {
        unsigned char *der = NULL;
        int length = i == 1   ? i2d_X509_AUX(pair->leaf, &der)
                     : i == 2 ? i2d_PrivateKey(pair->key, &der)
                              : i2d_X509(sk_X509_value(pair->chain, (int)i - 3), &der);

        whole = whole && length > 0;
        pieces[i] = (struct iovec) { der, length > 0 ? (size_t)length : 0 };
    }
    facts->certificate = whole ? (uint32_t)pieces[1].iov_len : 0;
    facts->key = whole ? (uint32_t)pieces[2].iov_len : 0;
    kept = pair_store_put(store, number, pieces, whole ? n : 1) && whole;
    for (unsigned i = 1; i < n; i++)
        OPENSSL_clear_free(pieces[i].iov_base, pieces[i].iov_len);
    return kept;
}

/* Parses what follows the facts; false: not all of it is a pair. */
static bool parse_record(struct pair *pair, const uint8_t *record, size_t n)
{
    const struct pair_facts *facts = (const struct pair_facts *)record;
    const unsigned char *p = record + sizeof(*facts), *end = record + n, *leaf = p, *key;

    if (n < sizeof(*facts) || facts->certificate == 0 || facts->certificate > (size_t)(end - p) ||
        facts->key > (size_t)(end - p) - facts->certificate)
        return false;
    key = p += facts->certificate;
    p += facts->key;
    pair->leaf = d2i_X509_AUX(NULL, &leaf, (long)facts->certificate);
    pair->key = d2i_AutoPrivateKey(NULL, &key, (long)facts->key);
    pair->chain = sk_X509_new_null();
    while (pair->chain != NULL && p < end) {
        X509 *next = d2i_X509(NULL, &p, (long)(end - p));

        if (next == NULL || sk_X509_push(pair->chain, next) == 0) {
            X509_free(next);
            return false;
        }
    }
    return pair->leaf != NULL && pair->key != NULL && pair->chain != NULL;
}

int pair_get(struct pair *pair, const struct pair_store *store, uint32_t number, uint32_t *version)
{
    size_t n;
    uint8_t *record = pair_store_get(store, number, &n, version);
    bool whole;

    assert(pair->leaf == NULL && pair->key == NULL);
    if (record == NULL)
        return -1;
    ERR_clear_error();
    whole = parse_record(pair, record, n);
    OPENSSL_cleanse(record, n);
    free(record);
    if (!whole)
        pair_free(pair);
    return whole ? 0 : -1;
}

int pair_get_certificate(
    X509 **leaf, struct pair_facts *facts, const struct pair_store *store, uint32_t number)
{
    const unsigned char *p;
    uint32_t version;
    size_t n;
    uint8_t *record = pair_store_get(store, number, &n, &version);

    *leaf = NULL;
    if (record == NULL)
        return -1;
    p = record + sizeof(*facts);
    if (n > sizeof(*facts)) {
        memcpy(facts, record, sizeof(*facts));
        if (facts->certificate <= n - sizeof(*facts))
            *leaf = d2i_X509_AUX(NULL, &p, (long)facts->certificate);
    }
    OPENSSL_cleanse(record, n);
    free(record);
    return *leaf != NULL ? 0 : -1;
}

void pair_free(struct pair *pair)
{
    X509_free(pair->leaf);
    sk_X509_pop_free(pair->chain, X509_free);
    EVP_PKEY_free(pair->key);
    *pair = (struct pair) { .leaf = NULL };
}
