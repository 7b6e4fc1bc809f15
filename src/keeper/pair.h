/* SPDX-License-Identifier: BSD-2-Clause */
/* A certificate with its chain and its private key: parsed from PEM, and written as a record of DER
 * for the store of pairs, where a key is decrypted.
 *
 * Never knows libssl, a file's name or a log. */
#pragma once

#include "keeper/pair_store.h"
#include "keeper/pem.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

struct pair {
    X509 *leaf;
    STACK_OF(X509) * chain; /* the certificates behind the first; may be empty */
    EVP_PKEY *key;
};

/* The files of a pair, the last of which it may lack. */
enum { PAIR_CERTIFICATE, PAIR_KEY, PAIR_PASSWORDS, PAIR_FILES };

/* Room for the names of a certificate. */
#define PAIR_NAMES 256

/* The begin of a record: what can be known of a pair without parsing. */
struct pair_facts {
    uint64_t identities[PAIR_FILES];             /* the files as they were read */
    uint8_t digests[PAIR_PASSWORDS][PEM_DIGEST]; /* SHA-256 of certificate and key */
    int64_t expiry;                              /* seconds since the epoch, as expiry_of() */
    int64_t swapped;                             /* when the pair replaced another; 0: never */
    uint32_t names, certificate, key;            /* bytes in the record, before the chain */
};

/* Read certificate and chain, or the key, by one of the passwords (lines; "": none). NULL, or the
 * name of the failed call, with OpenSSL's errors. */
const char *pair_read_certificate(struct pair *pair, BIO *bio);
const char *pair_read_key(struct pair *pair, BIO *bio, const char *passwords);
/* Puts the pair into the store, and sets the sizes of the facts; false without room or memory. */
bool pair_put(
    const struct pair *pair, struct pair_facts *facts, struct pair_store *store, uint32_t number);
/* Parses a pair of the store into zeroed memory; -1: there is none. */
int pair_get(struct pair *pair, const struct pair_store *store, uint32_t number, uint32_t *version);
/* Copies the facts of a pair of the store, and the names of its certificate, between commas and cut
 * where they are too long; false: there is none. */
bool pair_get_facts(struct pair_facts *facts, char names[PAIR_NAMES],
    const struct pair_store *store, uint32_t number);
/* Frees what the pair has. */
void pair_free(struct pair *pair);
