/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates with their chains, and private keys, parsed from the files of a configuration.
 *
 * Responsible for reading each file once, however many profiles name it, and for one line about
 * each mistake. Never knows libssl; what is returned belongs to the store. */
#pragma once

#include "keeper/pem.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

struct certificates;

struct certificate {
    X509 *leaf;
    STACK_OF(X509) * chain; /* the certificates behind the first; may be empty */
};

/* Makes an empty store for the files, which outlive the store; NULL without memory. */
struct certificates *certificates_create(struct pem_files *files, struct log *log);
/* Frees the store; NULL is allowed. */
void certificates_destroy(struct certificates *certificates);
/* Returns the certificate of a file; NULL: the mistake has been logged. */
const struct certificate *certificates_find(struct certificates *certificates, uint32_t file);
/* Whether no mismatch of the two files has been noted yet; notes a mismatch. */
bool certificates_note_mismatch(struct certificates *certificates, uint32_t file, uint32_t key);
/* Returns the private key of a file, decrypted by a password of file `passwords`, unless
 * TLS_NO_FILE; NULL: the mistake has been logged. */
EVP_PKEY *certificates_find_key(
    struct certificates *certificates, uint32_t file, uint32_t passwords);
