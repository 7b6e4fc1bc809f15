/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of a server, as a client's handshake begins with: a name of DNS, or an address. */
#pragma once

#include <forkbeard/types.h>
#include <stdint.h>

/* The bytes of the longest address. */
#define TLS_ADDRESS_MOST 16

/* Reads a name that is an address of IPv4, or of IPv6 with or without brackets: returns the bytes
 * of the address; 0: another name. No address is sent as a server's name (RFC 6066). */
unsigned tls_server_address(fb_bytes name, uint8_t address[TLS_ADDRESS_MOST]);
