/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of certificates and keys that a handshake begins with, where variables decide them.
 *
 * Responsible for the value of the name that a client asks for, which is known before the handshake
 * here alone, and for a list that a keeper takes. Never says which files there are: a keeper opens
 * them, and refuses what leads out of their directories. */
#pragma once

#include "tls/engine.h"
#include "tls/hello.h"

struct fb_conn;

/* Sets the names in the start of a profile's handshake, lent until the client's session has ended.
 * A server's wait for the ClientHello, with which `in` begins; bytes that are none have no name.
 * 1; 0: the ClientHello is not whole; -1: the connection has failed, or a line says why not. */
int tls_paths_set(struct fb_conn *conn, const struct tls_profile *profile, struct tls_hello *hello,
    fb_bytes in, struct tls_start *start);
