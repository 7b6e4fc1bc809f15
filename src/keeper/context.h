/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings of profiles as libssl's SSL_CTX: versions, suites, groups, protocols, tickets,
 * trust and stapling. Profiles whose settings are equal have one context; a handshake has the pairs
 * of its profile.
 *
 * Never offers more than records have: no version below TLS 1.2, no other suite, no renegotiation,
 * no early data, no reading ahead. */
#pragma once

#include "keeper/key_log.h"
#include "keeper/libssl.h"
#include "keeper/pair.h"
#include "keeper/session_context.h"
#include "keeper/stapling.h"
#include "keeper/tickets.h"

struct context {
    const struct libssl *lib;
    const struct tls_profile *profile; /* the first one with the settings */
    SSL_CTX *ctx;
    struct tickets tickets;
    struct stapling stapling;
    uint8_t identity[SESSION_CONTEXT]; /* among sessions, by the settings */
    struct key_log *key_log;           /* the engine's; NULL: none */
};

/* Makes the context of a profile in zeroed memory; -1 after a line about each mistake. The ring has
 * the keys of a server's tickets, unless the profile names any. */
int context_create(struct context *context, const struct libssl *lib,
    const struct tls_profile *profile, struct pem_files *files, const struct ticket_ring *ring,
    struct log *log);
/* Give a handshake a certificate with its chain, and then its key, which the library alone would
 * take for another certificate's of the key's type. NULL, or the name of the failed call, with
 * OpenSSL's errors. */
const char *context_use_certificate(const struct libssl *lib, SSL *ssl, const struct pair *pair);
const char *context_use_key(const struct libssl *lib, SSL *ssl, const struct pair *pair);
/* Moves a fresh context of the same profile into the place of the context. Handshakes under way end
 * with libssl's old one. */
void context_replace(struct context *context, struct context *fresh);
/* Frees the context, also after a failure of context_create(). */
void context_destroy(struct context *context);
