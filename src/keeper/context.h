/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as libssl's SSL_CTX: versions, suites, groups, protocols, tickets, trust, stapling,
 * and pairs.
 *
 * Never offers more than records have: no version below TLS 1.2, no other suite, no renegotiation,
 * no early data, no reading ahead. */
#pragma once

#include "keeper/certificates.h"
#include "keeper/libssl.h"
#include "keeper/stapling.h"
#include "keeper/tickets.h"

struct context {
    const struct libssl *lib;
    const struct tls_profile *profile;
    SSL_CTX *ctx;
    struct tickets tickets;
    struct stapling stapling;
    uint8_t identity[32]; /* of its sessions */
};

/* Makes the context of a profile in zeroed memory, without its pairs; -1 after a line
 * about each mistake. The ring has the keys of a server's tickets, unless the profile names any. */
int context_create(struct context *context, const struct libssl *lib,
    const struct tls_profile *profile, struct pem_files *files, const struct ticket_ring *ring,
    struct log *log);
/* Adds a certificate with its key; NULL, or the name of the failed call, with OpenSSL's errors. */
const char *context_add_pair(
    struct context *context, const struct certificate *certificate, EVP_PKEY *key);
/* Adds the pairs of the profile; -1 after a line about each mistake. */
int context_add_pairs(struct context *context, struct certificates *certificates,
    struct pem_files *files, struct log *log);
/* Moves a fresh context of the same profile into the place of the context. Handshakes under way end
 * with libssl's old one. */
void context_replace(struct context *context, struct context *fresh);
/* Frees the context, also after a failure of context_create(). */
void context_destroy(struct context *context);
