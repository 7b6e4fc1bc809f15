/* SPDX-License-Identifier: BSD-2-Clause */
/* The session of a client's handshake: resumed from the table of all keepers, and kept there for
 * the next handshake.
 *
 * Responsible for resuming a session among equal settings, files, servers and names alone, where
 * its verification is true, and for its life: the profile's session_timeout from the full handshake
 * on, in which the certificate was verified, however often it is resumed; or less, as the server
 * says. */
#pragma once

#include "keeper/context.h"
#include "keeper/session_table.h"
#include "tls/engine.h"

struct client_session {
    const struct libssl *lib;
    const struct session_table *table; /* NULL: nothing is resumed, and the rest is unused */
    uint8_t key[SESSION_KEY];
    uint64_t life_ms;           /* lifetime of a new session */
    SSL_SESSION *offered;       /* the table's; NULL: there was none */
    struct session_found found; /* the offered session in the table */
};

/* Offers the table's session of the identity to the server, if the profile resumes sessions, in
 * zeroed memory. */
void client_session_begin(struct client_session *session, const struct context *context,
    const uint8_t identity[SESSION_CONTEXT], const struct session_table *table,
    const struct tls_start *start, SSL *ssl);
/* Keeps what the server has sent to resume the session with, if anything. */
void client_session_keep(struct client_session *session, SSL *ssl);
/* Forgets the offered session, if any, with which the handshake has failed. */
void client_session_fail(struct client_session *session);
void client_session_end(struct client_session *session);
