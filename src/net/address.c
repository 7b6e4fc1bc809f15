/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses are compared and written as text; address_parse.c reads them. */
#include "net/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool address_from(struct address *out, const struct sockaddr *from)
{
    const struct sockaddr_un *un = (const void *)from;

    *out = (struct address) { .length = sizeof(from->sa_family), .any.sa_family = from->sa_family };
    switch (from->sa_family) {
    case AF_INET:
        out->length = sizeof(out->in);
        break;
    case AF_INET6:
        out->length = sizeof(out->in6);
        break;
    case AF_UNIX:
        out->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                                  strnlen(un->sun_path, sizeof(un->sun_path) - 1) + 1);
        break;
    default:
        return false;
    }
    memcpy(&out->un, from, out->length);
    if (from->sa_family == AF_UNIX)
        out->un.sun_path[sizeof(out->un.sun_path) - 1] = '\0';
    return true;
}

void address_make(struct address *out, sa_family_t family, const void *host, in_port_t port)
{
    assert(family == AF_INET || family == AF_INET6);
    *out = (struct address) { .any.sa_family = family };
    out->length = family == AF_INET ? sizeof(out->in) : sizeof(out->in6);
    if (family == AF_INET)
        memcpy(&out->in.sin_addr, host, sizeof(out->in.sin_addr));
    else
        memcpy(&out->in6.sin6_addr, host, sizeof(out->in6.sin6_addr));
    address_set_port(out, port);
}

/* Returns the name of a unix socket, *n bytes: a path without NUL, or, with a leading NUL, an
 * abstract name; 0 bytes for an unnamed socket. */
static const char *unix_name(const struct address *address, size_t *n)
{
    const char *name = address->un.sun_path;

    assert(address->length <= sizeof(address->un));
    *n = 0;
    if (address->length > offsetof(struct sockaddr_un, sun_path)) {
        *n = address->length - offsetof(struct sockaddr_un, sun_path);
        if (*name != '\0')
            *n = strnlen(name, *n);
    }
    return name;
}

int address_of_socket(struct address *out, int fd)
{
    *out = (struct address) { .length = sizeof(out->un) };
    return getsockname(fd, &out->any, &out->length);
}

in_port_t address_port(const struct address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohs(address->in.sin_port);
    return address->any.sa_family == AF_INET6 ? ntohs(address->in6.sin6_port) : 0;
}

void address_set_port(struct address *address, in_port_t port)
{
    if (address->any.sa_family == AF_INET)
        address->in.sin_port = htons(port);
    else if (address->any.sa_family == AF_INET6)
        address->in6.sin6_port = htons(port);
}

int address_compare(const struct address *a, const struct address *b)
{
    int result = a->any.sa_family - b->any.sa_family;
    const char *aname, *bname;
    size_t an, bn;

    if (result != 0)
        return result;
    switch (a->any.sa_family) {
    case AF_INET:
        if (a->in.sin_port != b->in.sin_port)
            return ntohs(a->in.sin_port) - ntohs(b->in.sin_port);
        return memcmp(&a->in.sin_addr, &b->in.sin_addr, sizeof(a->in.sin_addr));
    case AF_INET6:
        if (a->in6.sin6_port != b->in6.sin6_port)
            return ntohs(a->in6.sin6_port) - ntohs(b->in6.sin6_port);
        if (a->in6.sin6_scope_id != b->in6.sin6_scope_id)
            return a->in6.sin6_scope_id < b->in6.sin6_scope_id ? -1 : 1;
        return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr));
    default:
        aname = unix_name(a, &an);
        bname = unix_name(b, &bn);
        return an != bn ? (an > bn) - (an < bn) : memcmp(aname, bname, an);
    }
}

bool address_equal(const struct address *a, const struct address *b)
{
    sa_family_t family = a->any.sa_family;

    return (family == AF_INET || family == AF_INET6 || family == AF_UNIX) &&
           address_compare(a, b) == 0;
}

bool address_is_among(const struct address *all, unsigned n, const struct address *address)
{
    for (unsigned i = 0; i < n; i++)
        if (address_equal(&all[i], address))
            return true;
    return false;
}

bool address_is_wildcard(const struct address *address)
{
    if (address->any.sa_family == AF_INET)
        return address->in.sin_addr.s_addr == htonl(INADDR_ANY);
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr);
}

char *address_format(const struct address *address, bool port, char text[ADDRESS_TEXT])
{
    bool is_in6 = address->any.sa_family == AF_INET6;
    char host[INET6_ADDRSTRLEN];
    size_t n;

    *text = '\0';
    if (address->any.sa_family == AF_UNIX) {
        const char *name = unix_name(address, &n);

        /* an abstract name has no form in nginx */
        snprintf(text, ADDRESS_TEXT, "unix:%.*s", n > 0 && *name != '\0' ? (int)n : 0, name);
    }
    if (address->any.sa_family != AF_INET && !is_in6)
        return text;
    inet_ntop(address->any.sa_family,
        is_in6 ? (const void *)&address->in6.sin6_addr : &address->in.sin_addr, host, sizeof(host));
    if (port)
        snprintf(text, ADDRESS_TEXT, is_in6 ? "[%s]:%u" : "%s:%u", host, address_port(address));
    else
        snprintf(text, ADDRESS_TEXT, "%s", host);
    return text;
}

char *address_format_zone(const struct address *address, char text[ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN], interface[IF_NAMESIZE];
    uint32_t zone = address->any.sa_family == AF_INET6 ? address->in6.sin6_scope_id : 0;

    if (zone == 0)
        return address_format(address, true, text);
    if (if_indextoname(zone, interface) == NULL)
        snprintf(interface, sizeof(interface), "%u", (unsigned)zone);
    inet_ntop(AF_INET6, &address->in6.sin6_addr, host, sizeof(host));
    snprintf(text, ADDRESS_TEXT, "[%s%%%s]:%u", host, interface, address_port(address));
    return text;
}

static bool same_bits(const void *a, const void *b, unsigned bits)
{
    const uint8_t *x = a, *y = b;
    unsigned whole = bits / 8, rest = bits % 8;

    assert(bits <= 128);
    return memcmp(x, y, whole) == 0 && (rest == 0 || (x[whole] ^ y[whole]) >> (8 - rest) == 0);
}

bool address_block_matches(const struct address_block *block, const struct sockaddr *address)
{
    const struct address *net = &block->address;
    const struct sockaddr_in6 *in6 = (const void *)address;
    const struct sockaddr_in *in = (const void *)address;

    if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
        return net->any.sa_family == AF_INET &&
               same_bits(&net->in.sin_addr, &in6->sin6_addr.s6_addr[12], block->bits);
    if (address->sa_family != net->any.sa_family)
        return false;
    if (address->sa_family == AF_INET)
        return same_bits(&net->in.sin_addr, &in->sin_addr, block->bits);
    if (address->sa_family == AF_INET6)
        return same_bits(&net->in6.sin6_addr, &in6->sin6_addr, block->bits);
    return address->sa_family == AF_UNIX;
}
