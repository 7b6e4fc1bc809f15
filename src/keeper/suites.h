/* SPDX-License-Identifier: BSD-2-Clause */
/* The cipher suites of a context: the configuration's, as far as records have the suites. */
#pragma once

#include "keeper/libssl.h"
#include "tls/profile.h"

/* Sets the suites of TLS 1.2 that the profile names, or the default; -1 after an emerg line. */
int suites_set(
    const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile, struct log *log);
/* Leaves the suites that records have, in their order; -1 after an emerg line: one of `versions`,
 * bits as a profile's, has no suite. */
int suites_restrict(const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile,
    unsigned versions, struct log *log);
