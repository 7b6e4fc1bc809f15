/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a group's zone, by the shape in private memory. Entries are an open hash table: an
 * entry that has had a key always has a key, so that no chain breaks; a new entry may only ever
 * replace an entry. */
#pragma once

#include "upstream/zone.h"

#define UPSTREAM_ZONE_MAGIC 0x66627570u
#define UPSTREAM_ZONE_REVISION 2u
/* Group locks; two groups may share a lock. */
#define UPSTREAM_ZONE_LOCKS 32
/* The table lock, behind the group locks. */
#define UPSTREAM_ZONE_TABLE UPSTREAM_ZONE_LOCKS

/* A number of a row: the worker's running tries, and uses of the entry. */
#define UPSTREAM_ZONE_USE (INT64_C(1) << 32)

/* An operator's word about a server. */
struct upstream_zone_said {
    _Atomic uint64_t server; /* the key of its names; 0: free */
    _Atomic uint64_t word;   /* time of the word (ms), and an enum upstream_operator (2 bits) */
};

/* The pages that masters alone write. */
struct upstream_zone_header {
    uint32_t magic, revision;
    uint64_t size; /* the shape's */
    uint64_t unit; /* bytes of an entry */
    uint64_t seed[2][2];
    _Atomic uint32_t version; /* grows with each word of operators */
    struct table_workers workers;
    struct upstream_zone_said said[]; /* n of the layout */
};

struct upstream_zone_entry {
    alignas(CACHE_LINE) struct peer_state state;
    _Atomic uint64_t key[2];  /* the first: 0 where never used, 1 while in the making */
    _Atomic uint64_t server;  /* the key of the names alone */
    _Atomic uint64_t used_ms; /* start of the last use by a worker */
    char address[ADDRESS_TEXT];
};

struct upstream_zone_layout {
    uint32_t n;                  /* entries */
    size_t locks, entries, size; /* offsets */
};

struct upstream_zone_layout upstream_zone_layout(const struct upstream_zone_shape *shape);
/* Returns the key of a server's names; never 0. */
uint64_t upstream_zone_server_key(
    const struct upstream_zone_header *header, const char *upstream, const char *server);
/* Returns a hash of the text by seed 0 or 1. */
uint64_t upstream_zone_hash(
    const struct upstream_zone_header *header, unsigned seed, const char *text);

/* How many workers' lists and tries use an entry, by the sum of all rows. */
static inline uint32_t upstream_zone_uses(int64_t sum)
{
    return (uint32_t)((uint64_t)sum >> 32);
}
