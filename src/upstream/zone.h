/* SPDX-License-Identifier: BSD-2-Clause */
/* `zone` of a group: what is known of its peers stands in memory that all workers share, and that a
 * reload and an upgrade keep. An entry is found by the names of the group and of the server, and by
 * the address.
 *
 * Two zones of shm/ make it: one of entries, the locks of groups, and what the operator says, which
 * masters alone write; and rows with the tries that each worker runs, which its death zeroes, so
 * that max_conns is exact again then. Any worker may write into the entries: they are input. A lock
 * guards the order of choices and nothing that must be whole: who finds one that a dead worker has
 * left goes on. An entry that no worker uses is given up when there is no room for another. */
#pragma once

#include "base/memory.h"
#include "shm/metrics.h"
#include "shm/table.h"
#include "shm/zone.h"
#include "upstream/peers.h"

/* The most peers of a zone, however large it is. */
#define UPSTREAM_ZONE_ENTRIES 16384

struct upstream_zone_shape {
    uint64_t size; /* bytes for entries */
};

/* An entry as the lists of a worker have it. Peers that are alike have an entry each. */
struct upstream_zone_listed {
    bool is_listed;  /* the peer is in a list */
    uint16_t before; /* peers like it that come before it */
    uint16_t first;  /* entry of the first of them */
    uint16_t next;   /* if it is the first: lists have those with 1 to `next` - 1 before them */
};

/* An entry that no worker used when this was noted. */
struct upstream_zone_unused {
    uint64_t used_ms; /* when it was last begun to be used */
    uint32_t entry;
};

struct upstream_zone {
    const char *name;
    struct upstream_zone_shape shape;
    struct shm_metrics_shape rows_shape;
    struct zone *zone, *rows;
    /* the master's, while it lists groups (status.c); NULL: it does not */
    struct upstream_zone_reading *reading;

    /* a worker's, while it is open */
    struct upstream_zone_header *header; /* NULL: closed */
    struct upstream_zone_entry *entries;
    uint32_t n; /* entries */
    struct shm_metrics *metrics;
    shm_row *row;                        /* this worker's */
    struct upstream_zone_listed *listed; /* by entry */
    struct upstream_zone_unused *unused; /* unused_n; the last is given up first */
    uint32_t unused_n;
    uint64_t full_ms;   /* when a search found none of them; UINT64_MAX: there may be some */
    uint64_t looked_at; /* entries that searches have looked at, ever */
    struct table table; /* a shard is a lock: for groups, or for the entries */
};

/* A peer as a zone knows it. */
struct upstream_place {
    const char *upstream, *server, *address;
};

extern const struct zone_kind upstream_zone_kind;

/* Returns the bytes that a zone for so many peers has, UPSTREAM_ZONE_ENTRIES at most. */
uint64_t upstream_zone_size_for(uint64_t peers);

/* Adds the zones of a group's zone to the configuration's. The name must last as long as the arena.
 * NULL with errno: EEXIST, ENAMETOOLONG, EINVAL for an empty name, EOVERFLOW for a size that cannot
 * be, ENOMEM. */
struct upstream_zone *upstream_zone_declare(
    struct zones *zones, struct arena *arena, const char *name, uint64_t size);

/* A worker, in this slot: opens the zone, whose memory is open; -1 without memory. */
int upstream_zone_open(struct upstream_zone *zone, const struct memory *memory, struct slot_id id);
/* Closes it, when all have left, or if it is not open. */
void upstream_zone_close(struct upstream_zone *zone, const struct memory *memory);

/* Returns which lock a group has. */
uint32_t upstream_zone_lock_of(const struct upstream_zone *zone, const char *upstream);
/* Locks the group against choices by other workers. */
void upstream_zone_lock(struct upstream_zone *zone, uint32_t lock, struct zone_hold *hold);

/* The tries of a peer that all workers run. */
uint32_t upstream_zone_conns(const struct upstream_zone *zone, uint32_t entry);
