/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses from text, in all forms of directives.
 *
 * Only address_parse_host(), address_resolve() and address_parse_listen() ask the system's
 * resolver, which can block; workers never call these functions. Invariant: a parsed address has
 * the length of its family. */
#pragma once

#include "net/address.h"

/* Bytes of the longest host name accepted, and a NUL. */
#define ADDRESS_HOST_MAX 256

/* Parses numeric forms only: "1.2.3.4", "1.2.3.4:80", "[::1]", "[::1]:80", "unix:/path". Without a
 * port the address has `port`. Returns NULL, or what is wrong with the text, as a constant
 * string. */
const char *address_parse(const char *text, in_port_t port, struct address *out);
/* Parses like address_parse(), and also the network interface of a link-local address,
 * "[fe80::1%eth0]:80", or a host name, resolved by the system to the first known address. */
const char *address_parse_host(const char *text, in_port_t port, struct address *out);
/* Whether a name, valid or not, stands in the place of the host. */
bool address_has_name(const char *text);
/* Splits "name:80", or "name", with port 0, without a resolver. Returns NULL, or what is wrong with
 * the text. */
const char *address_parse_name(const char *text, char host[ADDRESS_HOST_MAX], in_port_t *port);
/* Asks the resolver for a name's addresses, without ports: at most `max`, *n of them. Returns as
 * the calls above do. */
const char *address_resolve(const char *name, struct address *out, unsigned max, unsigned *n);
/* Whether a returned text says that the system could not resolve a name now, and may later. A
 * non-existent name is excluded. */
bool address_is_unresolved(const char *wrong);
/* Parses the argument of `listen`: a numeric form, where a link-local address has its network
 * interface, by name or number; "80"; "*:80"; "name:80", which the system resolves to at most `max`
 * addresses, *n of them; and a range of ports "8000-8010" in place of any port. *last is the last
 * port in host byte order, the first where there is no range. */
const char *address_parse_listen(
    const char *text, struct address *out, unsigned max, unsigned *n, in_port_t *last);

/* An address to connect to: never a port alone, "*" or a range of ports, which only `listen` takes.
 * A parsed target has a port, or a unix path. */
struct fb_target {
    struct address address;
    char text[ADDRESS_TEXT]; /* for log lines */
};

/* Parses "1.2.3.4:80", "[::1]:80", "unix:/path"; and with `names` "name:80", resolved by the system
 * to the first known address. */
const char *target_parse(const char *text, bool names, struct fb_target *out);

/* Parses a CIDR block, a single address, or "unix:", in the form of debug_connection. */
const char *address_block_parse(const char *text, struct address_block *out);
/* Parses an IPv4 or IPv6 address or block as nginx's rules have them: one of v4-mapped addresses
 * stays IPv6. Bits behind the prefix are cleared; *low says whether any was set. */
const char *address_cidr_parse(const char *text, struct address_block *out, bool *low);
/* The block of a single address of AF_INET or AF_INET6. */
struct address_block address_block_of(const struct address *address);
