/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses: compared, and written as text in every form that a log line has. Never asks a
 * resolver. Invariant: equal addresses have the same text. */
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

/* The longest: "[ffff:...:255.255.255.255]:65535", or "unix:" and a path; with the NUL. */
#define ADDRESS_TEXT 120

/* Copies an address, of a unix socket a whole struct; false: unknown family, copied alone. */
bool address_from(struct address *out, const struct sockaddr *from);
/* Makes an address of AF_INET or AF_INET6 from the bytes of a host. */
void address_make(struct address *out, sa_family_t family, const void *host, in_port_t port);
/* Reads a socket's local address; -1 with errno. */
int address_of_socket(struct address *out, int fd);
/* Returns the port in host byte order; 0 for unix:. */
in_port_t address_port(const struct address *address);
void address_set_port(struct address *address, in_port_t port);
bool address_equal(const struct address *a, const struct address *b);
bool address_is_among(const struct address *all, unsigned n, const struct address *address);
/* Orders addresses for sorting; 0 for equal addresses. */
int address_compare(const struct address *a, const struct address *b);
bool address_is_wildcard(const struct address *address);
/* Writes an address as nginx does, without the network interface: "[::1]:80", "unix:/path", "unix:"
 * for an unnamed socket; with `port` false, without the port. Returns text. */
char *address_format(const struct address *address, bool port, char text[ADDRESS_TEXT]);
/* Writes an address with port and network interface, "[fe80::1%eth0]:80". Asks the kernel for the
 * name. Returns text. */
char *address_format_zone(const struct address *address, char text[ADDRESS_TEXT]);

/* A CIDR block, a single address, or "unix:" for every unix socket. */
struct address_block {
    struct address address;
    unsigned bits;
};
/* Compares a v4-mapped IPv6 address as an IPv4 address. */
bool address_block_matches(const struct address_block *block, const struct sockaddr *address);
