/* SPDX-License-Identifier: BSD-2-Clause */
/* `geo`: a variable whose value depends on an address. A table cuts all addresses of a family into
 * adjacent ranges, found by halving, and never changes while sessions use it. */
#pragma once

#include "text/template.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An address as a number: of IPv4 the lower 32 bits. */
struct geo_address {
    uint64_t high, low;
};

/* Ranges of a family; a range ends where the next begins. The first begins with 0. */
struct geo_table {
    uint32_t n;
    const uint32_t *v4; /* begins of the ranges; of IPv6: NULL */
    const struct geo_address *v6;
    const uint32_t *texts; /* number of the text of each */
};

struct geo {
    const struct variable *source;
    struct geo_table v4, v6;
    const struct map_text *texts;
};

/* Returns the address of 4 or 16 bytes in network order. */
struct geo_address geo_address_of(const void *bytes, size_t n);
/* Returns the address with the last bits set, or cleared. */
struct geo_address geo_address_fill(struct geo_address address, unsigned bits, bool set);
int geo_address_compare(struct geo_address a, struct geo_address b);
/* Reads an address as text: 4, 6, or 0 where it is none. */
int geo_address_parse(const char *p, size_t n, struct geo_address *out);
/* Returns the number of the text for an address of the table's family. */
uint32_t geo_table_find(const struct geo_table *table, struct geo_address address);
/* Returns the number of the text for an address as text, as a session has it: an IPv4 address in
 * the form of IPv6 is an IPv4 address, and what is no address is 255.255.255.255. */
uint32_t geo_find(const struct geo *geo, const char *p, size_t n);
/* Works out the variable's value; its `arg` is the geo. -1 without memory. */
int geo_get(struct fb_conn *conn, const struct variable *variable, struct value *value);
