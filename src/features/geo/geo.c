/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads addresses and finds ranges. Octets are decimal, also with leading zeros, as in nginx. */
#include "features/geo/geo.h"

#include "session/record.h"

#include <arpa/inet.h>
#include <string.h>

struct geo_address geo_address_of(const void *bytes, size_t n)
{
    struct geo_address address = { 0, 0 };

    assert(n == 4 || n == 16);
    for (size_t i = 0; i < n; i++) {
        address.high = address.high << 8 | address.low >> 56;
        address.low = address.low << 8 | ((const uint8_t *)bytes)[i];
    }
    return address;
}

struct geo_address geo_address_fill(struct geo_address address, unsigned bits, bool set)
{
    uint64_t high = bits <= 64 ? 0 : bits == 128 ? UINT64_MAX : (UINT64_C(1) << (bits - 64)) - 1;
    uint64_t low = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

    return set ? (struct geo_address) { address.high | high, address.low | low }
               : (struct geo_address) { address.high & ~high, address.low & ~low };
}

int geo_address_compare(struct geo_address a, struct geo_address b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    return (a.low > b.low) - (a.low < b.low);
}

static int parse_v4(const char *p, size_t n, struct geo_address *out)
{
    unsigned octet = 0, digits = 0, dots = 0;
    uint64_t address = 0;

    for (const char *end = p + n; p < end; p++) {
        if (*p == '.' && digits > 0 && dots < 3) {
            address = address << 8 | octet;
            octet = digits = 0;
            dots++;
            continue;
        }
        if (*p < '0' || *p > '9')
            return 0;
        octet = octet * 10 + (unsigned)(*p - '0');
        digits = 1;
        if (octet > 255)
            return 0;
    }
    if (dots != 3 || digits == 0)
        return 0;
    *out = (struct geo_address) { .low = address << 8 | octet };
    return 4;
}

static int parse_v6(const char *p, size_t n, struct geo_address *out)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (n >= sizeof(text))
        return 0;
    assert(n > 0); /* a colon was found */
    memcpy(text, p, n);
    text[n] = '\0';
    if (memchr(text, '\0', n) != NULL || inet_pton(AF_INET6, text, &address) != 1)
        return 0;
    *out = geo_address_of(&address, sizeof(address));
    return 6;
}

int geo_address_parse(const char *p, size_t n, struct geo_address *out)
{
    return memchr(p, ':', n) == NULL ? parse_v4(p, n, out) : parse_v6(p, n, out);
}

uint32_t geo_table_find(const struct geo_table *table, struct geo_address address)
{
    const struct geo_address *v6 = table->v6;
    const uint32_t *v4 = table->v4;

    assert(table->n > 0 && (v6 == NULL ? v4[0] == 0 : (v6->high | v6->low) == 0));
    if (v6 == NULL) {
        for (uint32_t n = table->n, half; n > 1; n -= half) {
            half = n / 2;
            v4 = v4[half] <= address.low ? v4 + half : v4;
        }
        return table->texts[v4 - table->v4];
    }
    for (uint32_t n = table->n, half; n > 1; n -= half) {
        half = n / 2;
        v6 = geo_address_compare(v6[half], address) <= 0 ? v6 + half : v6;
    }
    return table->texts[v6 - table->v6];
}

uint32_t geo_find(const struct geo *geo, const char *p, size_t n)
{
    struct geo_address address;
    int family = geo_address_parse(p, n, &address);

    assert(family == 0 || family == 4 || family == 6);
    if (family == 6 && (address.high != 0 || address.low >> 32 != 0xffff))
        return geo_table_find(&geo->v6, address);
    address.low = family == 0 ? UINT32_MAX : (uint32_t)address.low;
    return geo_table_find(&geo->v4, address);
}

int geo_get(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct geo *geo = variable->arg;
    const struct value *source = variable_value(conn, geo->source);

    assert(geo->v4.n > 0 && geo->v6.n > 0 && geo->texts != NULL);
    return map_text_value(conn, &geo->texts[geo_find(geo, source->p, source->n)], value);
}
