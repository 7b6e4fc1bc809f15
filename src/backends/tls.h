/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS of connections to servers: the handshake between connect() and the protocol's `opened`.
 *
 * Responsible for the server's name, for bytes in plain before the handshake, and for what the
 * profile wants of the server's certificate. Never holds a key, and never reads a certificate.
 * Invariant: a connection of a trunk with TLS has `opened` only once the layer is on it. */
#pragma once

#include "session/conn.h"

/* Sets *name to the server's name by the options, which have TLS; lent until the session's end, or
 * the caller's. `owner` NULL: the worker's connection. -1 after a line, or without memory. */
int backend_tls_find_name(const struct fb_conn *owner, const fb_connect_options *options,
    const struct stream *stream, fb_bytes *name);
/* Sets *paths to the names of certificates that variables decide, none without a client, lent until
 * the session's end; -1 as above. */
int backend_tls_find_paths(
    const struct fb_conn *owner, const fb_connect_options *options, fb_bytes *paths);
/* Makes a connection of a trunk with TLS, just begun, shake hands once its connect is answered; -1
 * without memory. */
int backend_tls_await(struct fb_conn *conn);
