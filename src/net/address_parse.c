/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses from text. Names the fault in any wrong text, and then never writes to *out. */
#include "net/address_parse.h"

#include "base/compiler.h"
#include "base/number.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The parts of "HOST", "HOST:PORT", "[HOST]" or "[HOST]:PORT". */
struct parts {
    char host[ADDRESS_HOST_MAX];
    bool brackets;
    const char *port; /* NULL: none */
};

static const char *split_parts(const char *text, struct parts *parts)
{
    const char *end;
    size_t n;

    parts->brackets = *text == '[';
    if (parts->brackets) {
        end = strchr(++text, ']');
        if (end == NULL)
            return "\"]\" is missing";
    } else {
        end = text + strcspn(text, ":");
        if (strncmp(end, "://", 3) == 0)
            return "an address has no scheme such as \"tcp://\"";
        if (*end == ':' && strchr(end + 1, ':') != NULL)
            return "more than one \":\", an IPv6 address needs brackets";
    }

    n = (size_t)(end - text);
    if (n >= sizeof(parts->host))
        return "too long host";
    memcpy(parts->host, text, n);
    parts->host[n] = '\0';

    if (parts->brackets && *++end != ':' && *end != '\0')
        return "nothing but a port may follow \"]\"";
    parts->port = *end == ':' ? end + 1 : NULL;
    return NULL;
}

static const char *parse_port_number(const char *s, size_t n, in_port_t *out)
{
    enum number_status status;
    char digits[32];
    int64_t port;

    if (n == 0)
        return "no port";
    if (!isdigit((unsigned char)*s) || n >= sizeof(digits))
        return "invalid port";
    memcpy(digits, s, n);
    digits[n] = '\0';
    status = number_parse(digits, 1, UINT16_MAX, &port);
    if (status == NUMBER_OK)
        *out = (in_port_t)port;
    return status == NUMBER_OK      ? NULL
           : status == NUMBER_RANGE ? "port out of range 1 to 65535"
                                    : "invalid port";
}

static bool is_unix(const char *text)
{
    return strncasecmp(text, "unix:", 5) == 0;
}

static const char *parse_unix_path(const char *text, struct address *out)
{
    const char *path = text + 5;
    size_t n = strlen(path);

    if (n == 0)
        return "no path in the unix domain socket";
    if (n >= sizeof(out->un.sun_path))
        return "too long path of the unix domain socket, at most 107 bytes";
    *out = (struct address) { .un.sun_family = AF_UNIX };
    out->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    memcpy(out->un.sun_path, path, n + 1);
    return NULL;
}

static bool parse_ip(int family, const char *text, struct address *out)
{
    struct in6_addr host; /* room for a struct in_addr, too */

    if (inet_pton(family, text, &host) != 1)
        return false;
    address_make(out, (sa_family_t)family, &host, 0);
    return true;
}

/* Splits text, and parses the port; without a port, *port is left unchanged. */
static const char *split_host_port(const char *text, struct parts *parts, in_port_t *port)
{
    const char *wrong = split_parts(text, parts);

    if (wrong == NULL && parts->port != NULL)
        wrong = parse_port_number(parts->port, strlen(parts->port), port);
    return wrong;
}

const char *address_parse(const char *text, in_port_t port, struct address *out)
{
    struct parts parts;
    const char *wrong;

    if (is_unix(text))
        return parse_unix_path(text, out);
    wrong = split_host_port(text, &parts, &port);
    if (wrong != NULL)
        return wrong;
    if (!parse_ip(parts.brackets ? AF_INET6 : AF_INET, parts.host, out))
        return parts.brackets ? "invalid IPv6 address" : "invalid IPv4 address";
    address_set_port(out, port);
    return NULL;
}

/* Returns NULL where the text can be a host's name. A name that ends in a number is a mistyped
 * address, which the resolver would read otherwise: "127.1", "1.2.3". */
static const char *check_name(const char *name)
{
    const char *last = strrchr(name, '.');

    if (*name == '\0')
        return "no host";
    if (name[strspn(name, "0123456789.-_"
                          "abcdefghijklmnopqrstuvwxyz"
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] != '\0')
        return "invalid host";
    last = last != NULL ? last + 1 : name;
    if (isdigit((unsigned char)*last) && last[strspn(last, "0123456789")] == '\0')
        return "invalid IPv4 address";
    return NULL;
}

static const char *resolve_name(
    const char *name, in_port_t port, struct address *out, unsigned max, unsigned *n)
{
    /* AI_ADDRCONFIG, as nginx: no IPv6 addresses where the machine has no IPv6 */
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG }, *all;
    int rc = getaddrinfo(name, NULL, &hints, &all);

    if (rc == EAI_NONAME || rc == EAI_NODATA)
        return "host not found";
    if (rc != 0)
        return gai_strerror(rc);
    for (const struct addrinfo *ai = all; ai != NULL && *n < max; ai = ai->ai_next) {
        struct address address = { .length = ai->ai_addrlen };

        if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
            continue;
        memcpy(&address.un, ai->ai_addr, ai->ai_addrlen);
        address_set_port(&address, port);
        if (!address_is_among(out, *n, &address))
            out[(*n)++] = address;
    }
    freeaddrinfo(all);
    assert(*n <= max);
    return *n == 0 ? "host not found" : NULL;
}

const char *address_resolve(const char *name, struct address *out, unsigned max, unsigned *n)
{
    const char *wrong = check_name(name);

    assert(max > 0);
    *n = 0;
    return wrong != NULL ? wrong : resolve_name(name, 0, out, max, n);
}

bool address_is_unresolved(const char *wrong)
{
    static const int codes[] = { EAI_AGAIN, EAI_MEMORY, EAI_SYSTEM };

    for (size_t i = 0; i < countof(codes); i++)
        if (strcmp(wrong, gai_strerror(codes[i])) == 0)
            return true;
    return false;
}

/* Parses an IPv6 address, perhaps with a network interface: "fe80::1%eth0". */
static const char *parse_in6_zone(const char *host, struct address *out)
{
    size_t n = strcspn(host, "%");
    char bare[INET6_ADDRSTRLEN], name[IF_NAMESIZE];
    struct address address;
    const char *zone;
    int64_t number;

    if (n >= sizeof(bare))
        return "invalid IPv6 address";
    memcpy(bare, host, n);
    bare[n] = '\0';
    if (!parse_ip(AF_INET6, bare, &address))
        return "invalid IPv6 address";
    assert(address.in6.sin6_scope_id == 0);
    if (host[n] == '%') {
        if (!IN6_IS_ADDR_LINKLOCAL(&address.in6.sin6_addr))
            return "only a link-local address has a network interface behind \"%\"";
        zone = host + n + 1;
        address.in6.sin6_scope_id = if_nametoindex(zone);
        if (address.in6.sin6_scope_id == 0) {
            if (number_parse(zone, 1, UINT32_MAX, &number) != NUMBER_OK ||
                if_indextoname((unsigned)number, name) == NULL)
                return "there is no such network interface";
            address.in6.sin6_scope_id = (uint32_t)number;
        }
    }
    *out = address;
    return NULL;
}

/* Parses a host in the form of `listen`, and sets the port. */
static const char *parse_parts(
    const struct parts *parts, in_port_t port, struct address *out, unsigned max, unsigned *n)
{
    const char *host = parts->host, *wrong = NULL;

    assert(*n < max);
    if (parts->brackets ? (wrong = parse_in6_zone(host, out)) == NULL
                        : parse_ip(AF_INET, strcmp(host, "*") == 0 ? "0.0.0.0" : host, out)) {
        address_set_port(out, port);
        *n = 1;
        return NULL;
    }
    if (parts->brackets)
        return wrong;
    wrong = check_name(host);
    return wrong != NULL ? wrong : resolve_name(host, port, out, max, n);
}

const char *address_parse_host(const char *text, in_port_t port, struct address *out)
{
    struct parts parts;
    unsigned n = 0;
    const char *wrong;

    if (is_unix(text))
        return parse_unix_path(text, out);
    wrong = split_host_port(text, &parts, &port);
    if (wrong == NULL && strcmp(parts.host, "*") == 0)
        wrong = "expected a host";
    return wrong != NULL ? wrong : parse_parts(&parts, port, out, 1, &n);
}

bool address_has_name(const char *text)
{
    if (is_unix(text) || *text == '[')
        return false;
    while (*text != '\0' && !isalpha((unsigned char)*text))
        text++;
    return *text != '\0';
}

const char *address_parse_name(const char *text, char host[ADDRESS_HOST_MAX], in_port_t *port)
{
    struct parts parts;
    in_port_t found = 0;
    const char *wrong = split_parts(text, &parts);

    if (wrong == NULL)
        wrong = check_name(parts.host);
    if (wrong == NULL)
        wrong = split_host_port(text, &parts, &found);
    if (wrong != NULL)
        return wrong;
    strcpy(host, parts.host);
    *port = found;
    return NULL;
}

const char *address_parse_listen(
    const char *text, struct address *out, unsigned max, unsigned *n, in_port_t *last)
{
    struct parts parts = { .host = "*", .port = text };
    in_port_t first = 0;
    size_t length;
    const char *wrong;

    assert(max > 0);
    *n = 0;
    *last = 0;
    if (is_unix(text)) {
        wrong = parse_unix_path(text, out);
        *n = wrong == NULL;
        return wrong;
    }

    /* text that begins with a digit and is no address is a port */
    if (!isdigit((unsigned char)*text) || strpbrk(text, ".:") != NULL) {
        wrong = split_parts(text, &parts);
        if (wrong != NULL)
            return wrong;
        if (parts.port == NULL)
            return "no port";
    }
    length = strcspn(parts.port, "-");
    wrong = parse_port_number(parts.port, length, &first);
    *last = first;
    if (wrong == NULL && parts.port[length] != '\0') {
        wrong = parse_port_number(parts.port + length + 1, strlen(parts.port + length + 1), last);
        if (wrong == NULL && *last < first)
            wrong = "the range of ports runs backwards";
    }
    if (wrong == NULL)
        wrong = parse_parts(&parts, first, out, max, n);
    if (wrong == NULL && parts.brackets && IN6_IS_ADDR_LINKLOCAL(&out->in6.sin6_addr) &&
        out->in6.sin6_scope_id == 0) {
        *n = 0;
        return "a link-local address needs a network interface, as in [fe80::1%eth0]:80";
    }
    return wrong;
}

const char *target_parse(const char *text, bool names, struct fb_target *out)
{
    bool has_path = is_unix(text);
    struct address address;
    in_port_t last;
    unsigned n;
    const char *wrong = address_parse(text, 0, &address);

    if (!has_path && *text != '[' && strchr(text, ':') == NULL)
        return "expected a port";
    if (wrong != NULL && names && !has_path && *text != '[') {
        wrong =
            *text == '*' ? "expected a host" : address_parse_listen(text, &address, 1, &n, &last);
        if (wrong == NULL && last != address_port(&address))
            wrong = "invalid port";
    }
    if (wrong != NULL)
        return strcmp(wrong, "no port") == 0 ? "expected a port" : wrong;
    if (!has_path && address_port(&address) == 0)
        return "expected a port";
    assert(has_path == (address.any.sa_family == AF_UNIX));
    *out = (struct fb_target) { .address = address };
    address_format(&address, true, out->text);
    return NULL;
}

/* Turns a block of v4-mapped addresses into the equivalent block of IPv4 addresses. */
static void unmap_block(struct address_block *block)
{
    struct address address;

    if (block->bits < 96 || !IN6_IS_ADDR_V4MAPPED(&block->address.in6.sin6_addr))
        return;
    address_make(&address, AF_INET, &block->address.in6.sin6_addr.s6_addr[12], 0);
    block->address = address;
    block->bits -= 96;
}

/* Parses an address with or without a prefix length. */
static const char *parse_prefix(const char *text, struct address_block *block)
{
    const char *slash = text + strcspn(text, "/");
    char host[INET6_ADDRSTRLEN];
    enum number_status status;
    int64_t bits = 0;

    if ((size_t)(slash - text) >= sizeof(host))
        return "invalid address";
    memcpy(host, text, (size_t)(slash - text));
    host[slash - text] = '\0';

    if (parse_ip(AF_INET, host, &block->address))
        block->bits = 32;
    else if (parse_ip(AF_INET6, host, &block->address))
        block->bits = 128;
    else
        return "invalid address";
    if (*slash == '\0')
        return NULL;
    if (!isdigit((unsigned char)slash[1]))
        return "invalid prefix length";
    status = number_parse(slash + 1, 0, block->bits, &bits);
    if (status == NUMBER_RANGE)
        return block->bits == 32 ? "prefix length out of range 0 to 32"
                                 : "prefix length out of range 0 to 128";
    block->bits = (unsigned)bits;
    return status == NUMBER_OK ? NULL : "invalid prefix length";
}

const char *address_block_parse(const char *text, struct address_block *out)
{
    struct address_block block = { .address.length = sizeof(sa_family_t) };
    const char *wrong;

    if (strcasecmp(text, "unix:") == 0) {
        block.address.any.sa_family = AF_UNIX;
        *out = block;
        return NULL;
    }
    wrong = parse_prefix(text, &block);
    if (wrong != NULL)
        return wrong;
    if (block.address.any.sa_family == AF_INET6)
        unmap_block(&block);
    *out = block;
    return NULL;
}

/* Clears the bits after a prefix; returns whether any was set. */
static bool clear_low_bits(uint8_t *bytes, unsigned n, unsigned bits)
{
    bool any = false;

    for (unsigned i = 0; i < n; i++) {
        unsigned kept = bits > i * 8 ? bits - i * 8 : 0;
        uint8_t mask = kept >= 8 ? 0xff : (uint8_t)(0xff00 >> kept);

        any = any || (bytes[i] & ~mask) != 0;
        bytes[i] &= mask;
    }
    return any;
}

const char *address_cidr_parse(const char *text, struct address_block *out, bool *low)
{
    struct address_block block;
    const char *wrong = parse_prefix(text, &block);

    if (wrong != NULL)
        return wrong;
    if (block.address.any.sa_family == AF_INET)
        *low = clear_low_bits((uint8_t *)&block.address.in.sin_addr, 4, block.bits);
    else
        *low = clear_low_bits(block.address.in6.sin6_addr.s6_addr, 16, block.bits);
    *out = block;
    return NULL;
}

struct address_block address_block_of(const struct address *address)
{
    struct address_block block = { .address = *address, .bits = 32 };

    assert(address->any.sa_family == AF_INET || address->any.sa_family == AF_INET6);
    if (address->any.sa_family == AF_INET6) {
        block.bits = 128;
        unmap_block(&block);
    }
    return block;
}
