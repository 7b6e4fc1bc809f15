/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of a profile (ssl_conf_command and the like), by OpenSSL's SSL_CONF. Commands that
 * read files, or that would let a session do what records cannot, are refused by name. */
#pragma once

#include "keeper/libssl.h"
#include "tls/profile.h"

/* Returns the directive of the profile's commands. */
const char *commands_directive(const struct tls_profile *profile);
/* Runs the profile's commands on the context; -1 after an emerg line about each refused one. */
int commands_run(
    const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile, struct log *log);
