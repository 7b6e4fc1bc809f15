/* SPDX-License-Identifier: BSD-2-Clause */
/* Networks and ranges of addresses while a `geo` is read: each is found and changed in logarithmic
 * time; then the tree becomes a table.
 *
 * A tree has networks, which may nest, or ranges, which are disjoint: a range added to the middle
 * of an older range leaves two parts of the older range. */
#pragma once

#include "base/arena.h"
#include "features/geo/geo.h"
#include "text/map_table.h"

#include <bsd/sys/tree.h>
#include <stdbool.h>

struct geo_range {
    RB_ENTRY(geo_range) node;
    struct geo_address first, last;
    uint32_t text;
};

struct geo_tree {
    RB_HEAD(geo_ranges, geo_range) ranges;
    struct arena *arena; /* memory of its ranges */
    bool is_v6;
    bool disjoint;    /* a tree of ranges, not of networks */
    bool least_holds; /* the least text of the networks around an address, else the innermost's */
    uint32_t n;
};

enum geo_added { GEO_ADDED, GEO_REPLACED, GEO_OVERLAPS, GEO_NO_MEMORY };

/* Adds a network, or a range. A newer range within an older gets the shared addresses; an older
 * range within a newer keeps them. As in nginx, which stores ranges in blocks of 65,536 addresses
 * of IPv4, each block is compared alone. *other is the replaced range, or one that overlaps only
 * partly. */
enum geo_added geo_tree_add(struct geo_tree *tree, struct geo_address first,
    struct geo_address last, uint32_t text, struct geo_range *other);
/* Deletes an equal network, or ranges of the same blocks; returns whether there was any. */
bool geo_tree_delete(struct geo_tree *tree, struct geo_address first, struct geo_address last);
/* Makes a table in the arena, with the text `outside` beside all ranges; -1 without memory. */
int geo_tree_finish(
    struct geo_tree *tree, uint32_t outside, struct arena *arena, struct geo_table *table);
