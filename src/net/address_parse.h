/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses from text, in every form that a directive has.
 *
 * Only address_parse_host(), address_resolve() and address_parse_listen() ask the system's
 * resolver, which can block; a worker calls none of them. Invariant: an address that was parsed has
 * the length of its family. */
#pragma once

#include "net/address.h"

/* Bytes of the longest host's name that is read, and a NUL. */
#define ADDRESS_HOST_MAX 256

/* Parses numeric forms only: "1.2.3.4", "1.2.3.4:80", "[::1]", "[::1]:80", "unix:/path". Without a
 * port the address has `port`. Returns NULL, or what is wrong with the text, as a constant
 * string. */
const char *address_parse(const char *text, in_port_t port, struct address *out);
/* Parses the same, with the network interface of a link-local address, "[fe80::1%eth0]:80", or a
 * name in the place of the host, which the system resolves to the first address that it knows. */
const char *address_parse_host(const char *text, in_port_t port, struct address *out);
/* Whether a name, or what is meant to be one, stands in the place of the host. */
bool address_has_name(const char *text);
/* Splits "name:80", or "name", whose port is 0, and asks nobody. Returns as the calls above do. */
const char *address_parse_name(const char *text, char host[ADDRESS_HOST_MAX], in_port_t *port);
/* Asks the resolver for a name's addresses, without ports: at most `max`, *n of them. Returns as
 * the calls above do. */
const char *address_resolve(const char *name, struct address *out, unsigned max, unsigned *n);
/* Whether the text is one that these return where the system could not resolve a name now, and may
 * later. A name that does not exist is no such case. */
bool address_is_unresolved(const char *wrong);
/* Parses the argument of `listen`: a numeric form, where a link-local address has its network
 * interface, by name or number; "80"; "*:80"; "name:80", which the system resolves to at most `max`
 * addresses, *n of them; and a range of ports "8000-8010" in place of any port. *last is the last
 * port in host byte order, the first where there is no range. */
const char *address_parse_listen(
    const char *text, struct address *out, unsigned max, unsigned *n, in_port_t *last);

/* Parses a CIDR block, a single address, or "unix:", as debug_connection takes it. */
const char *address_block_parse(const char *text, struct address_block *out);
/* Parses an IPv4 or IPv6 address or block as nginx's rules have them: one of v4-mapped addresses
 * stays IPv6. Bits behind the prefix are cleared; *low says whether any was set. */
const char *address_cidr_parse(const char *text, struct address_block *out, bool *low);
/* The block of a single address of AF_INET or AF_INET6. */
struct address_block address_block_of(const struct address *address);
