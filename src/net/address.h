/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses: from text, to text, compared. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

struct fb_address {
    socklen_t length;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    };
};

/* "[ffff:...:255.255.255.255]:65535" and "unix:" with the longest path, with a NUL. */
#define FB_ADDRESS_TEXT 120

/* Numeric forms only: "1.2.3.4", "1.2.3.4:80", "[::1]", "[::1]:80", "unix:/path". Without a port it
 * is `port`. Returns NULL, or what is wrong with the text, as a constant string. */
const char *fb_address_parse(const char *text, in_port_t port, struct fb_address *out);
/* The same, or a name in the place of the host, which is resolved by the system: the first address
 * that it gives. */
const char *fb_address_parse_host(const char *text, in_port_t port, struct fb_address *out);
/* What `listen` takes: the numeric forms and "80", "*:80", "*" needs a port, "name:80" resolved by the system
 * (up to `max` results, *n of them), and a range of ports "8000-8010" in place of any port, which
 * *last receives (equal to the first port where there is no range; host byte order). */
const char *fb_address_parse_listen(
    const char *text, struct fb_address *out, unsigned max, unsigned *n, in_port_t *last);

in_port_t fb_address_port(const struct fb_address *address); /* host byte order; 0 for unix: */
void fb_address_set_port(struct fb_address *address, in_port_t port);
bool fb_address_equal(const struct fb_address *a, const struct fb_address *b);
/* An order in which they can be sorted: 0 where they are equal. */
int fb_address_compare(const struct fb_address *a, const struct fb_address *b);
bool fb_address_is_wildcard(const struct fb_address *address);

/* As nginx shows it: "1.2.3.4:80", "[::1]:80", "unix:/path", "unix:" for an unnamed one. With
 * `port` false the port is left out. Returns text. */
char *fb_address_format(const struct fb_address *address, bool port, char text[FB_ADDRESS_TEXT]);

/* A CIDR block, a single address, or "unix:" for every unix socket (debug_connection). */
struct fb_address_block {
    struct fb_address address;
    unsigned bits;
};
const char *fb_address_block_parse(const char *text, struct fb_address_block *out);
/* A v4-mapped IPv6 address is compared as the IPv4 address that it is. */
bool fb_address_block_matches(const struct fb_address_block *block, const struct sockaddr *address);
