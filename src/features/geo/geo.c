/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads addresses and finds their ranges. Octets of IPv4 are decimal, also with leading zeros, as
 * in nginx. */
#include "features/geo/geo.h"

#include "session/record.h"

#include <arpa/inet.h>
#include <string.h>

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

static uint64_t load_big(const uint8_t p[8])
{
    uint64_t word = 0;

    for (int i = 0; i < 8; i++)
        word = word << 8 | p[i];
    return word;
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
    out->high = load_big(address.s6_addr);
    out->low = load_big(address.s6_addr + 8);
    return 6;
}

int geo_address_parse(const char *p, size_t n, struct geo_address *out)
{
    return memchr(p, ':', n) == NULL ? parse_v4(p, n, out) : parse_v6(p, n, out);
}

static uint32_t find_v4(const struct geo_table *table, uint32_t address)
{
    const uint32_t *at = table->v4;

    assert(table->n > 0 && table->v4[0] == 0);
    for (uint32_t n = table->n, half; n > 1; n -= half) {
        half = n / 2;
        at = at[half] <= address ? at + half : at;
    }
    return table->texts[at - table->v4];
}

static uint32_t find_v6(const struct geo_table *table, struct geo_address address)
{
    const struct geo_address *at = table->v6;

    assert(table->n > 0 && (at->high | at->low) == 0);
    for (uint32_t n = table->n, half; n > 1; n -= half) {
        half = n / 2;
        at = geo_address_compare(at[half], address) <= 0 ? at + half : at;
    }
    return table->texts[at - table->v6];
}

uint32_t geo_find(const struct geo *geo, const char *p, size_t n)
{
    struct geo_address address;
    int family = geo_address_parse(p, n, &address);

    assert(family == 0 || family == 4 || family == 6);
    if (family == 0)
        address.low = UINT32_MAX;
    if (family != 6 || (address.high == 0 && address.low >> 32 == 0xffff))
        return find_v4(&geo->v4, (uint32_t)address.low);
    return find_v6(&geo->v6, address);
}

int geo_get(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct geo *geo = variable->arg;
    const struct value *source = variable_value(conn, geo->source);

    assert(geo->v4.n > 0 && geo->v6.n > 0 && geo->texts != NULL);
    return map_text_value(conn, &geo->texts[geo_find(geo, source->p, source->n)], value);
}
