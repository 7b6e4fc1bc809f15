/* SPDX-License-Identifier: BSD-2-Clause */
/* `zone` of a group: the state of the peers stands in memory shared by all workers, and kept by a
 * reload and an upgrade. An entry is found by the names of the group and of the server, and by the
 * address.
 *
 * Two zones of shm/ are used: the first has entries, the locks of groups, and the operator's
 * words, written by masters alone; the second has rows with the running tries of workers. A
 * worker's death zeroes the row, and max_conns is exact again. Any worker may write into the
 * entries: all contents are input. A lock guards the order of choices and no data that must be
 * whole: a worker that finds a dead worker's lock goes on. An unused entry is given up when
 * there is no room for a new entry. */
#pragma once

#include "base/memory.h"
#include "shm/metrics.h"
#include "shm/table.h"
#include "shm/zone.h"
#include "upstream/peers.h"

/* Limit of peers in a zone, whatever the size, and the bytes of the size for each. */
#define UPSTREAM_ZONE_ENTRIES 16384
#define UPSTREAM_ZONE_UNIT 640

struct upstream_zone_shape {
    uint64_t size; /* bytes for entries */
};

/* An entry as in the lists of a worker. Equal peers have separate entries. */
struct upstream_zone_listed {
    bool is_listed;  /* the peer is in a list */
    uint16_t before; /* equal peers before the peer */
    uint16_t first;  /* entry of the first of them */
    uint16_t next;   /* the first's: lists have the equal peers with 1 to `next` - 1 before */
};

/* An entry, not used by a worker at the time of the note. */
struct upstream_zone_unused {
    uint64_t used_ms; /* start of the last use */
    uint32_t entry;
};

struct upstream_zone {
    const char *name;
    struct upstream_zone_shape shape;
    struct shm_metrics_shape rows_shape;
    struct zone *zone, *rows;
    /* the master's, while listing groups (status.c); else NULL */
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
    uint64_t full_ms;   /* when a search found no unused entry; UINT64_MAX: there may be some */
    uint64_t looked_at; /* entries that searches have looked at, ever */
    struct table table; /* a shard is a lock: for groups, or for the entries */
};

/* A peer as a zone knows it. */
struct upstream_place {
    const char *upstream, *server, *address;
};

extern const struct zone_kind upstream_zone_kind;

/* Adds the two zones; the name must last as long as the arena. NULL with errno: EEXIST,
 * ENAMETOOLONG, EINVAL for an empty name, EOVERFLOW for an impossible size, ENOMEM. */
struct upstream_zone *upstream_zone_declare(
    struct zones *zones, struct arena *arena, const char *name, uint64_t size);
/* For a worker in this slot: opens the zone, whose memory is open; -1 without memory. */
int upstream_zone_open(struct upstream_zone *zone, const struct memory *memory, struct slot_id id);
/* Closes the zone after the last use; leaves a closed zone alone. */
void upstream_zone_close(struct upstream_zone *zone, const struct memory *memory);
uint32_t upstream_zone_lock_of(const struct upstream_zone *zone, const char *upstream);
/* Locks the group against choices by other workers. */
void upstream_zone_lock(struct upstream_zone *zone, uint32_t lock, struct zone_hold *hold);

/* The operator's words about servers: a place with UPSTREAM_AUTO is free for a new server. */

/* Returns a number changed by every word. */
uint32_t upstream_operators_version(const struct upstream_zone *zone);
/* Returns the word about the address, or else about the server, and its time: monotonic ms, or
 * 0. */
enum upstream_operator upstream_operator_said(
    const struct upstream_zone *zone, const struct upstream_place *place, uint64_t *since_ms);
/* The master: has workers use a server, by name or address, as the operator says, also after a
 * reload and an upgrade; -1 with errno: ENOTSUP without a zone, ENOSPC in a full zone. */
int upstream_operator_set(const struct upstream *upstream, const char *server,
    enum upstream_operator to, uint64_t now_ms);
