/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts about a finished handshake of libssl, in nginx's forms. */
#pragma once

#include "keeper/libssl.h"
#include "tls/facts.h"

/* Writes the wanted facts that the handshake has as a block to memory of TLS_FACTS_MOST bytes;
 * returns the bytes. */
size_t facts_write(const struct libssl *lib, SSL *ssl, uint32_t wanted, uint8_t *block);
