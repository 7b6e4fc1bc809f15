/* SPDX-License-Identifier: BSD-2-Clause */
/* The identity of a context among sessions: a session is resumed only under the identity that was
 * in force at its begin.
 *
 * Responsible for an identity that is equal in all keepers, generations and binaries, while the
 * settings that made a session trustworthy are equal: certificates by their paths, so that a new
 * certificate in the file keeps sessions, and verification by the bytes of files, so that no
 * session of a client with a revoked certificate is resumed. */
#pragma once

#include "keeper/libssl.h"
#include "keeper/pem.h"

#include <openssl/evp.h>

struct session_context {
    EVP_MD_CTX *digest; /* NULL: an addition has failed */
};

/* Begins with the settings of a profile. */
void session_context_begin(struct session_context *identity, const struct tls_profile *profile,
    const struct pem_files *files);
/* Adds the bytes of a file. */
void session_context_add(struct session_context *identity, const void *p, size_t n);
/* Sets the identity of the context, copies it, and ends; -1 after an emerg line. */
int session_context_set(struct session_context *identity, const struct libssl *lib, SSL_CTX *ctx,
    uint8_t hash[SSL_MAX_SID_CTX_LENGTH], struct log *log);
