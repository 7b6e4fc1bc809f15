/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of a server that a client asks for: sent, and looked for in the server's certificate. */
#pragma once

#include "keeper/libssl.h"
#include "tls/engine.h"

/* Makes libssl send the name (SNI), unless the name is empty or an address; -1 without memory. */
int peer_name_send(const struct libssl *lib, SSL *ssl, fb_bytes name);
/* Notes in the session whether the verified certificate is for another name, or address. The empty
 * name is no certificate's. */
void peer_name_check(X509 *peer, fb_bytes name, struct tls_session *session);
