/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses from text, in all forms of directives. Calls that return text return NULL, or a
 * constant string: the fault.
 *
 * Only address_parse_host(), address_resolve(), address_parse_listen() and target_parse() with
 * `names` ask the system's resolver, which can block; workers never do. */
#pragma once

#include "net/address.h"

/* Bytes of the longest host name accepted, and a NUL. */
#define ADDRESS_HOST_MAX 256

/* Parses numeric forms: "1.2.3.4:80", "[::1]:80", "unix:/path"; `port`: for text without a port. */
const char *address_parse(const char *text, in_port_t port, struct address *out);
/* Parses these, with an interface, "[fe80::1%eth0]:80", and names, by the first known address. */
const char *address_parse_host(const char *text, in_port_t port, struct address *out);
/* Whether a name, valid or not, stands in the place of the host. */
bool address_has_name(const char *text);
/* Splits "name:80", or "name", with port 0. Asks no resolver. */
const char *address_parse_name(const char *text, char host[ADDRESS_HOST_MAX], in_port_t *port);
/* Finds a name's addresses, without ports: at most `max`, *n of them. */
const char *address_resolve(const char *name, struct address *out, unsigned max, unsigned *n);
/* Whether a fault is that the system could not resolve a name now, and may later. */
bool address_is_unresolved(const char *wrong);
/* Parses the argument of `listen`: a numeric form, with the interface of a link-local address;
 * "80"; "*:80"; "name:80", of at most `max` addresses, *n of them; a range of ports "8000-8010".
 * *last is the last port in host byte order, the first without a range. */
const char *address_parse_listen(
    const char *text, struct address *out, unsigned max, unsigned *n, in_port_t *last);

/* An address to connect to, with a port, or a unix path: never "80", "*" or a range of ports. */
struct fb_target {
    struct address address;
    char text[ADDRESS_TEXT]; /* for log lines */
};

/* Parses "1.2.3.4:80", "[::1]:80", "unix:/path"; with `names` "name:80", by the first address. */
const char *target_parse(const char *text, bool names, struct fb_target *out);
/* Parses a CIDR block, a single address, or "unix:", in the form of debug_connection. */
const char *address_block_parse(const char *text, struct address_block *out);
/* Parses an address or block as nginx's rules have it: v4-mapped addresses stay IPv6. Bits behind
 * the prefix are cleared; *low: some were set. */
const char *address_cidr_parse(const char *text, struct address_block *out, bool *low);
/* The block of a single address of AF_INET or AF_INET6. */
struct address_block address_block_of(const struct address *address);
