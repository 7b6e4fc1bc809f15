/* SPDX-License-Identifier: BSD-2-Clause */
/* The identity of a profile among sessions: a session is resumed only under the identity that was
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

#define SESSION_CONTEXT 32

struct session_context {
    EVP_MD_CTX *digest; /* NULL: an addition has failed */
};

/* Begins with the settings of a profile. */
void session_context_begin(struct session_context *identity, const struct tls_profile *profile);
/* Adds the bytes of a file. */
void session_context_add(struct session_context *identity, const void *p, size_t n);
/* Ends with the identity of the settings; -1 after an emerg line. */
int session_context_end(
    struct session_context *identity, uint8_t hash[SESSION_CONTEXT], struct log *log);
/* Computes the identity of a profile, by its settings' and by the paths of its certificates, and by
 * the names of a start, with a digest of the caller's for each time; -1 with OpenSSL's errors. */
int session_context_compute(uint8_t hash[SESSION_CONTEXT], EVP_MD_CTX *digest,
    const uint8_t settings[SESSION_CONTEXT], const struct tls_profile *profile,
    const struct tls_file *files, fb_bytes names);
