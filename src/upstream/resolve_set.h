/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of a server's name, or service: in an order equal in all workers, without
 * duplicates. */
#pragma once

#include "base/memory.h"
#include "net/address.h"

#include <stdint.h>

/* The limit of addresses of a server; the rest is left out. */
#define RESOLVE_ADDRESSES 512

struct resolve_found {
    struct address address;
    uint16_t priority; /* the SRV record's; else 0 */
    uint32_t weight;   /* the SRV record's; 0: the server's own */
    bool backup;
};

struct resolve_set {
    size_t n, room;
    bool is_cut; /* more were found than have room */
    struct resolve_found list[];
};

/* Makes a copy without spare room, or (NULL) an empty set with all room; NULL without memory. */
struct resolve_set *resolve_set_create(const struct memory *memory, const struct resolve_set *from);
void resolve_set_add(struct resolve_set *set, const struct resolve_found *found);
/* Adds the missing addresses of a second set. */
void resolve_set_join(struct resolve_set *set, const struct resolve_set *other);
/* Sorts the set. The lowest priority is of primaries, the rest of backups; a backup server has no
 * backups. */
void resolve_set_sort(struct resolve_set *set, bool backup);
/* Whether two sorted sets are equal; either may be NULL. */
bool resolve_set_equal(const struct resolve_set *a, const struct resolve_set *b);
