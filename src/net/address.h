/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses: parsed from text, written as text, compared.
 *
 * Responsible for every form that a directive or a log line has for an address. Only
 * address_parse_host(), address_resolve() and address_parse_listen() ask the system's resolver,
 * which can block; a worker calls none of them. Invariant: an address that was parsed has the
 * length of its family. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

struct address {
    socklen_t length;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    };
};

/* Bytes of the longest text: "[ffff:...:255.255.255.255]:65535" or "unix:" with the longest path,
 * and a NUL. */
#define ADDRESS_TEXT 120

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

/* Copies an address in the system's form, of a unix socket a whole struct; false: the family is
 * none of these three, and alone is copied. */
bool address_from(struct address *out, const struct sockaddr *from);

/* Returns the port in host byte order; 0 for unix:. */
/* Reads the address that a socket has; -1 with errno. */
int address_of_socket(struct address *out, int fd);
in_port_t address_port(const struct address *address);
void address_set_port(struct address *address, in_port_t port);
bool address_equal(const struct address *a, const struct address *b);
/* Orders addresses for sorting; 0 where they are equal. */
int address_compare(const struct address *a, const struct address *b);
bool address_is_wildcard(const struct address *address);

/* Writes an address as nginx does, without its network interface: "1.2.3.4:80", "[::1]:80",
 * "unix:/path", "unix:" for an unnamed one. With `port` false the port is left out. Returns
 * text. */
char *address_format(const struct address *address, bool port, char text[ADDRESS_TEXT]);

/* Writes an address with its port, and with its network interface where it has one, by name while
 * there is one of the number: "[fe80::1%eth0]:80". Returns text. Asks the kernel. */
char *address_format_zone(const struct address *address, char text[ADDRESS_TEXT]);

/* A CIDR block, a single address, or "unix:" for every unix socket, as debug_connection takes
 * it. */
struct address_block {
    struct address address;
    unsigned bits;
};
const char *address_block_parse(const char *text, struct address_block *out);
/* Parses an IPv4 or IPv6 address or block as nginx's rules have them: one of v4-mapped addresses
 * stays IPv6. Bits behind the prefix are cleared; *low says whether any was set. */
const char *address_cidr_parse(const char *text, struct address_block *out, bool *low);
/* The block of one address, which is AF_INET or AF_INET6. */
struct address_block address_block_of(const struct address *address);
/* Compares a v4-mapped IPv6 address as the IPv4 address that it is. */
bool address_block_matches(const struct address_block *block, const struct sockaddr *address);
