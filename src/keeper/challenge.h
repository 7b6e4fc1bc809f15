/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates by which a client sees that a name is ours (tls-alpn-01 of ACME, RFC 8737): the file
 * NAME.pem of a directory, with certificate and key, for the name that the client asks for.
 *
 * Responsible for the names that are looked for, which come from clients. Never keeps a pair: a
 * hook puts a file there for seconds, and the next file for the same name is another. */
#pragma once

#include "keeper/pair.h"

/* Loads the pair for a name, NULL where the client has none, into zeroed memory; -1 after writing
 * why there is no pair. The pair is to be freed in each case. */
int challenge_load(struct pair *pair, const char *directory, const char *name, char why[TLS_TEXT]);
