/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates and keys in PEM and DER: see pair.h. */
#include "keeper/pair.h"

#include <arpa/inet.h>
#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
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

/* Adds a name of n bytes to the text behind a comma; bytes that no name has become question marks,
 * and a name without room becomes dots. */
static void append_name(char names[PAIR_NAMES], const unsigned char *name, size_t n)
{
    size_t at = strlen(names), comma = at > 0 ? 2 : 0;

    if (at + comma + n >= PAIR_NAMES - sizeof(", ...")) {
        if (at == 0 || names[at - 1] != '.')
            strcpy(names + at, at > 0 ? ", ..." : "...");
        return;
    }
    memcpy(names + at, ", ", comma);
    for (size_t i = 0; i < n; i++)
        names[at + comma + i] =
            name[i] > ' ' && name[i] < 0x7f && name[i] != ',' ? (char)name[i] : '?';
    names[at + comma + n] = '\0';
}

static void append_address(char names[PAIR_NAMES], const ASN1_OCTET_STRING *address)
{
    int n = ASN1_STRING_length(address);
    char text[INET6_ADDRSTRLEN];

    if ((n == 4 || n == 16) && inet_ntop(n == 4 ? AF_INET : AF_INET6,
                                   ASN1_STRING_get0_data(address), text, sizeof(text)) != NULL)
        append_name(names, (const unsigned char *)text, strlen(text));
}

/* Writes the names that a certificate is for: alternative ones, or else the common name. */
static void write_names(char names[PAIR_NAMES], const X509 *leaf)
{
    GENERAL_NAMES *list = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    char common[64] = "";

    names[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(list); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(list, i);

        if (name->type == GEN_DNS)
            append_name(names, ASN1_STRING_get0_data(name->d.dNSName),
                (size_t)ASN1_STRING_length(name->d.dNSName));
        else if (name->type == GEN_IPADD)
            append_address(names, name->d.iPAddress);
    }
    GENERAL_NAMES_free(list);
    if (names[0] == '\0' && X509_NAME_get_text_by_NID(X509_get_subject_name(leaf), NID_commonName,
                                common, sizeof(common)) > 0)
        append_name(names, (const unsigned char *)common, strlen(common));
    ERR_clear_error();
}

/* The pieces of a record: facts, names, leaf and key, before the chain. */
enum { PIECE_FACTS, PIECE_NAMES, PIECE_LEAF, PIECE_KEY, PIECE_CHAIN };

bool pair_put(
    const struct pair *pair, struct pair_facts *facts, struct pair_store *store, uint32_t number)
{
    int chain_n = sk_X509_num(pair->chain);
    bool whole = chain_n <= CHAIN_MOST, kept;
    unsigned n = PIECE_CHAIN + (unsigned)(whole ? chain_n : 0);
    char names[PAIR_NAMES];
    struct iovec pieces[PIECE_CHAIN + CHAIN_MOST] = { { facts, sizeof(*facts) } };

    write_names(names, pair->leaf);
    pieces[PIECE_NAMES] = (struct iovec) { names, strlen(names) };
    for (unsigned i = PIECE_LEAF; i < n; i++) {
        unsigned char *der = NULL;
        int length = i == PIECE_LEAF ? i2d_X509_AUX(pair->leaf, &der)
                     : i == PIECE_KEY
                         ? i2d_PrivateKey(pair->key, &der)
                         : i2d_X509(sk_X509_value(pair->chain, (int)i - PIECE_CHAIN), &der);

        whole = whole && length > 0;
        pieces[i] = (struct iovec) { der, length > 0 ? (size_t)length : 0 };
    }
    facts->names = (uint32_t)pieces[PIECE_NAMES].iov_len;
    facts->certificate = whole ? (uint32_t)pieces[PIECE_LEAF].iov_len : 0;
    facts->key = whole ? (uint32_t)pieces[PIECE_KEY].iov_len : 0;
    kept = pair_store_put(store, number, pieces, whole ? n : PIECE_LEAF) && whole;
    for (unsigned i = PIECE_LEAF; i < n; i++)
        OPENSSL_clear_free(pieces[i].iov_base, pieces[i].iov_len);
    return kept;
}

/* Parses what follows the facts; false: not all of it is a pair. */
static bool parse_record(struct pair *pair, const uint8_t *record, size_t n)
{
    const struct pair_facts *facts = (const struct pair_facts *)record;
    const unsigned char *p = record + sizeof(*facts), *end = record + n, *leaf, *key;

    if (n < sizeof(*facts) || facts->names > (size_t)(end - p))
        return false;
    leaf = p += facts->names;
    if (facts->certificate == 0 || facts->certificate > (size_t)(end - p) ||
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

bool pair_get_facts(struct pair_facts *facts, char names[PAIR_NAMES],
    const struct pair_store *store, uint32_t number)
{
    uint8_t bytes[sizeof(*facts) + PAIR_NAMES];

    if (!pair_store_peek(store, number, facts, sizeof(*facts)) || facts->names >= PAIR_NAMES ||
        !pair_store_peek(store, number, bytes, sizeof(*facts) + facts->names))
        return false;
    memcpy(names, bytes + sizeof(*facts), facts->names);
    names[facts->names] = '\0';
    return true;
}

void pair_free(struct pair *pair)
{
    X509_free(pair->leaf);
    sk_X509_pop_free(pair->chain, X509_free);
    EVP_PKEY_free(pair->key);
    *pair = (struct pair) { .leaf = NULL };
}
