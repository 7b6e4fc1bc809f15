/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers by haproxy's "The PROXY protocol, versions 1 & 2". Verifies the checksum, if any. */
#include "net/proxy_protocol.h"

#include "base/compiler.h"
#include "base/number.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

/* ---- Version 1: a line ---- */

static const char unknown[] = "PROXY UNKNOWN";

/* Whether the bytes begin with the text, or are the beginning of it. */
static bool begins_like(fb_bytes in, const void *text, size_t n)
{
    return memcmp(in.p, text, in.n < n ? in.n : n) == 0;
}

/* Cuts the field before the next blank off the line; false: too long for `field`. */
static bool cut_field(fb_bytes *line, char *field, size_t size)
{
    const uint8_t *blank = memchr(line->p, ' ', line->n);
    size_t n = blank != NULL ? (size_t)(blank - line->p) : line->n;

    assert(size > 1);
    if (n == 0 || n >= size || memchr(line->p, '\0', n) != NULL)
        return false;
    memcpy(field, line->p, n);
    field[n] = '\0';
    n += blank != NULL;
    line->p += n;
    line->n -= n;
    return true;
}

/* Parses an address of either family: TCP4 and TCP6 may precede any family. */
static bool parse_host_field(fb_bytes *line, struct address *out, fb_bytes *spelled)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr host; /* room for a struct in_addr, too */
    bool is_in;

    spelled->p = line->p;
    if (!cut_field(line, text, sizeof(text)))
        return false;
    spelled->n = strlen(text);
    assert(spelled->n > 0 && spelled->p + spelled->n <= line->p);
    is_in = inet_pton(AF_INET, text, &host) == 1;
    if (!is_in && inet_pton(AF_INET6, text, &host) != 1)
        return false;
    address_make(out, is_in ? AF_INET : AF_INET6, &host, 0);
    return true;
}

/* Parses a decimal number without leading zeros. */
static bool parse_port_field(fb_bytes *line, struct address *out)
{
    char text[sizeof("65535")];
    int64_t port;

    if (!cut_field(line, text, sizeof(text)) || (text[0] == '0' && text[1] != '\0') ||
        text[0] == '-' || number_parse(text, 0, UINT16_MAX, &port) != NUMBER_OK)
        return false;
    address_set_port(out, (in_port_t)port);
    return true;
}

static enum proxy_protocol_status parse_line(fb_bytes in, struct proxy_protocol *out)
{
    static const char *const words[] = { unknown, "PROXY TCP4 ", "PROXY TCP6 " };
    unsigned i = 0;
    size_t most = in.n < PROXY_PROTOCOL_LINE ? in.n : PROXY_PROTOCOL_LINE;
    const uint8_t *end = memmem(in.p, most, "\r\n", 2);
    size_t n;
    bool whole;

    while (i < countof(words) && !begins_like(in, words[i], strlen(words[i])))
        i++;
    if (i == countof(words))
        return PROXY_PROTOCOL_BROKEN;
    if (end == NULL && words[i] != unknown && memchr(in.p, '\n', in.n) != NULL)
        return PROXY_PROTOCOL_BROKEN;
    if (end == NULL)
        return in.n < PROXY_PROTOCOL_LINE ? PROXY_PROTOCOL_MORE : PROXY_PROTOCOL_BROKEN;
    n = strlen(words[i]);
    most = (size_t)(end - in.p);
    assert(most >= n); /* no word has an end of line */
    *out = (struct proxy_protocol) { .length = most + 2 };
    in = (fb_bytes) { in.p + n, most - n };
    if (words[i] == unknown) /* the rest of the line is ignored */
        whole = in.n == 0 || in.p[0] == ' ';
    else
        whole = parse_host_field(&in, &out->source, &out->source_text) &&
                parse_host_field(&in, &out->destination, &out->destination_text) &&
                parse_port_field(&in, &out->source) && memchr(in.p, ' ', in.n) == NULL &&
                parse_port_field(&in, &out->destination);
    out->has_addresses = words[i] != unknown;
    return whole ? PROXY_PROTOCOL_WHOLE : PROXY_PROTOCOL_BROKEN;
}

/* ---- Version 2: a block of bytes ---- */

static const uint8_t signature[12] = "\r\n\r\n\0\r\nQUIT\n";

/* Bytes before what `length` counts. */
#define HEAD 16

enum { AT_COMMAND = 12, AT_FAMILY = 13, AT_LENGTH = 14 };
enum { COMMAND_LOCAL = 0x20, COMMAND_PROXY = 0x21 };
enum { FAMILY_UNSPEC, FAMILY_INET, FAMILY_INET6, FAMILY_UNIX, FAMILIES };
enum { TRANSPORT_STREAM = 1, TRANSPORTS = 3 /* unspecified, stream, datagrams */ };

/* Bytes of both addresses with their ports. */
static const uint8_t address_bytes[FAMILIES] = {
    [FAMILY_INET] = 2 * 4 + 2 * 2,
    [FAMILY_INET6] = 2 * 16 + 2 * 2,
    [FAMILY_UNIX] = 2 * UINT8_C(108),
};

static uint16_t read_16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t read_32(const uint8_t *p)
{
    return (uint32_t)read_16(p) << 16 | read_16(p + 2);
}

/* The path ends with a NUL or fills the field, whose last byte no path of ours has. */
static void read_unix(const uint8_t *path, struct address *out)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };

    memcpy(un.sun_path, path, sizeof(un.sun_path) < 108 ? sizeof(un.sun_path) : 108);
    un.sun_path[sizeof(un.sun_path) - 1] = '\0';
    address_from(out, (const struct sockaddr *)&un);
    assert(out->length <= sizeof(un));
}

static void read_addresses(const uint8_t *p, unsigned family, struct proxy_protocol *out)
{
    assert(family < FAMILIES);
    out->has_addresses = true;
    switch (family) {
    case FAMILY_INET:
        address_make(&out->source, AF_INET, p, read_16(p + 8));
        address_make(&out->destination, AF_INET, p + 4, read_16(p + 10));
        break;
    case FAMILY_INET6:
        address_make(&out->source, AF_INET6, p, read_16(p + 32));
        address_make(&out->destination, AF_INET6, p + 16, read_16(p + 34));
        break;
    case FAMILY_UNIX:
        read_unix(p, &out->source);
        read_unix(p + 108, &out->destination);
        break;
    default:
        out->has_addresses = false;
    }
}

/* Adds bytes to a checksum, by the polynomial of Castagnoli, reflected. */
static uint32_t add_crc32c(uint32_t crc, const uint8_t *p, size_t n)
{
    while (n-- > 0) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (UINT32_C(0x82f63b78) & -(crc & 1));
    }
    return crc;
}

/* Whether the checksum is right or absent: of the header with zeros in its place. */
static bool check_sum(fb_bytes header, fb_bytes tlvs)
{
    static const uint8_t zeros[4];
    uint32_t crc = UINT32_MAX;
    fb_bytes sum;

    if (!proxy_protocol_find(tlvs, PROXY_PROTOCOL_CRC32C, &sum))
        return true;
    assert(sum.p > header.p + HEAD && sum.p + sum.n <= header.p + header.n);
    if (sum.n != sizeof(zeros))
        return false;
    crc = add_crc32c(crc, header.p, (size_t)(sum.p - header.p));
    crc = add_crc32c(crc, zeros, sizeof(zeros));
    crc = add_crc32c(crc, sum.p + sum.n, (size_t)(header.p + header.n - (sum.p + sum.n)));
    return ~crc == read_32(sum.p);
}

static enum proxy_protocol_status parse_binary(fb_bytes in, struct proxy_protocol *out)
{
    size_t n, addresses;
    unsigned family;

    assert(begins_like(in, signature, sizeof(signature)));
    if (in.n > AT_COMMAND && in.p[AT_COMMAND] != COMMAND_LOCAL &&
        (in.p[AT_COMMAND] != COMMAND_PROXY ||
            (in.n > AT_FAMILY &&
                (in.p[AT_FAMILY] >> 4 >= FAMILIES || (in.p[AT_FAMILY] & 0xf) >= TRANSPORTS))))
        return PROXY_PROTOCOL_BROKEN;
    if (in.n < HEAD)
        return PROXY_PROTOCOL_MORE;
    n = HEAD + read_16(in.p + AT_LENGTH);
    family = in.p[AT_COMMAND] == COMMAND_PROXY ? in.p[AT_FAMILY] >> 4 : FAMILY_UNSPEC;
    assert(family < FAMILIES);
    addresses = address_bytes[family];
    if (n < HEAD + addresses)
        return PROXY_PROTOCOL_BROKEN;
    out->length = n;
    if (in.n < n)
        return PROXY_PROTOCOL_MORE;
    *out = (struct proxy_protocol) { .length = n };
    if (in.p[AT_COMMAND] == COMMAND_LOCAL)
        return PROXY_PROTOCOL_WHOLE;
    if ((in.p[AT_FAMILY] & 0xf) == TRANSPORT_STREAM) /* datagrams have addresses of no session */
        read_addresses(in.p + HEAD, family, out);
    out->tlvs = (fb_bytes) { in.p + HEAD + addresses, n - HEAD - addresses };
    return check_sum((fb_bytes) { in.p, n }, out->tlvs) ? PROXY_PROTOCOL_WHOLE
                                                        : PROXY_PROTOCOL_BROKEN;
}

enum proxy_protocol_status proxy_protocol_parse(fb_bytes in, struct proxy_protocol *out)
{
    enum proxy_protocol_status status;

    out->length = 0;
    if (in.n == 0)
        return PROXY_PROTOCOL_MORE;
    status =
        begins_like(in, signature, sizeof(signature)) ? parse_binary(in, out) : parse_line(in, out);
    assert(status != PROXY_PROTOCOL_WHOLE || (out->length > 0 && out->length <= in.n));
    return status;
}

bool proxy_protocol_find(fb_bytes tlvs, unsigned type, fb_bytes *value)
{
    assert(type <= UINT8_MAX);
    while (tlvs.n >= 3) {
        size_t n = read_16(tlvs.p + 1);

        if (n > tlvs.n - 3)
            return false;
        if (tlvs.p[0] == type) {
            *value = (fb_bytes) { tlvs.p + 3, n };
            return true;
        }
        tlvs.p += 3 + n;
        tlvs.n -= 3 + n;
    }
    return false;
}

bool proxy_protocol_ssl(fb_bytes value, uint32_t *verify, fb_bytes *tlvs)
{
    if (value.n < 5)
        return false;
    *verify = read_32(value.p + 1);
    *tlvs = (fb_bytes) { value.p + 5, value.n - 5 };
    return true;
}
