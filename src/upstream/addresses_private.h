/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of the table of known addresses. For the files of known.c alone. */
#pragma once

#include "upstream/addresses.h"

#include <stdatomic.h>

/* An address as it is kept. */
struct known_address {
    uint8_t bytes[16];
    uint32_t scope; /* an IPv6 address's */
    uint32_t weight;
    uint16_t port, priority;
    uint8_t is_in6;
    uint8_t unused[3];
};

struct known_copy {
    uint32_t n, is_cut;
    struct known_address list[RESOLVE_ADDRESSES];
};

struct known_entry {
    alignas(CACHE_LINE) _Atomic uint32_t version; /* the lowest bit says which copy is in force */
    _Atomic uint32_t answered;                    /* a round has ended */
    _Atomic uint64_t answered_ms, failed_ms;
    char why[KNOWN_WHY];
    struct known_copy copies[2];
};

struct known_table {
    uint32_t magic, entries;
    uint64_t unit;
    _Atomic uint32_t changes;
    /* of the entries, of which a search would touch, and so take, all pages; 0 first: free */
    _Atomic uint64_t keys[KNOWN_NAMES][2];
    struct known_entry list[KNOWN_NAMES];
};

static inline struct known_table *known_table_of(const struct zone *zone)
{
    return zone_memory(zone);
}

static inline struct known_entry *known_entry_of(const struct zone *zone, uint32_t entry)
{
    assert(entry < KNOWN_NAMES);
    return &known_table_of(zone)->list[entry];
}

static inline bool known_has_key(
    const struct zone *zone, uint32_t entry, const struct known_key *key)
{
    const _Atomic uint64_t *parts = known_table_of(zone)->keys[entry];

    assert(entry < KNOWN_NAMES);
    return atomic_load_explicit(&parts[0], memory_order_acquire) == key->part[0] &&
           atomic_load_explicit(&parts[1], memory_order_relaxed) == key->part[1];
}
