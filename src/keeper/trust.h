/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom a context trusts: certificate authorities and lists of revoked certificates, for the
 * verification that a profile asks for.
 *
 * Never ends a handshake, as in nginx: the outcome of the verification is a part of the session. */
#pragma once

#include "keeper/session_context.h"

/* Reads the profile's files into the context and asks peers for certificates where the profile
 * wants any, and adds the files to the identity; -1 after a line about each mistake. */
int trust_set(const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile,
    struct pem_files *files, struct session_context *identity, struct log *log);
