/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a session in which a client's TLS handshake is made, by an engine elsewhere
 * (tls/link.h): SESSION_TLS. Responsible for the client's bytes until the handshake is done, and
 * for its time. Never looks into them. Invariant: bytes behind the handshake are given to the
 * layer, and none to a protocol before the layer is on the connection. */
#pragma once

/* The protocol of ALPN for challenges of ACME, behind its length byte. */
#define SSL_CHALLENGE_ALPN "\012acme-tls/1"

struct fb_conn;

/* Handles PHASE_SSL for clients of an address with `ssl`: enters SESSION_TLS. Returns 0. */
unsigned ssl_handshake_begin(struct fb_conn *conn, const void *arg);
