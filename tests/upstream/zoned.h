/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers of a test with a shared zone, as groups with separate handles. */
#pragma once

#include "shm/declared.h"
#include "support/random.h"
#include "upstream/groups.h"
#include "upstream/status.h"
#include "upstream/zone_private.h"

#include "base/compiler.h"

/* A configuration's zone. */
struct zoned {
    struct declared declared;
    struct upstream_zone *zone;
};

/* A worker. */
struct zoned_worker {
    struct zoned *zoned;
    struct upstream_zone zone; /* a copy of the configuration's, as after a fork() */
    struct group *group;
};

/* Opens a zone with room for n peers, with the memory of an earlier zone, or NULL. */
static inline void zoned_start(struct zoned *zoned, uint32_t entries, const struct zoned *old)
{
    declared_start(&zoned->declared);
    zoned->zone = upstream_zone_declare(&zoned->declared.zones, zoned->declared.arena, "shared",
        entries * sizeof(struct upstream_zone_entry));
    ck_assert_ptr_nonnull(zoned->zone);
    ck_assert_int_eq(zones_open(&zoned->declared.zones, old != NULL ? &old->declared.zones : NULL,
                         &zoned->declared.log.log),
        0);
}

static inline void zoned_stop(struct zoned *zoned)
{
    declared_stop(&zoned->declared);
}

/* Begins a worker; the caller adds the group's servers before zoned_open(). */
static inline struct group *zoned_begin(
    struct zoned_worker *worker, struct zoned *zoned, uint32_t slot, uint32_t serial)
{
    worker->zoned = zoned;
    worker->zone = *zoned->zone;
    worker->group = group_create();
    worker->group->upstream.zone = &worker->zone;
    worker->group->upstreams.id = (struct slot_id) { slot, serial };
    worker->group->upstreams.log = &zoned->declared.log.log;
    zones_slot_acquired(&zoned->declared.zones, worker->group->upstreams.id);
    return worker->group;
}

/* Begins a worker with so many servers of weight 1. */
static inline struct group *zoned_worker(
    struct zoned_worker *worker, struct zoned *zoned, uint32_t slot, unsigned servers)
{
    struct group *group = zoned_begin(worker, zoned, slot, 1);

    while (servers-- > 0)
        group_add(group, 1);
    group_open(group);
    return group;
}

/* Notes the worker's death in the current state. */
static inline void zoned_bury(struct zoned_worker *worker)
{
    zones_slot_released(&worker->zoned->declared.zones, worker->group->upstreams.id);
}

/* Ends a worker whose sessions have ended. */
static inline void zoned_end(struct zoned_worker *worker)
{
    struct slot_id id = worker->group->upstreams.id;

    group_close(&worker->group);
    zones_slot_released(&worker->zoned->declared.zones, id);
}

/* Numbers that the master has read. */
struct seen {
    unsigned n;
    struct upstream_numbers numbers[8];
};

static inline void see(void *arg, const struct upstream_numbers *numbers)
{
    struct seen *seen = arg;

    ck_assert_uint_lt(seen->n, countof(seen->numbers));
    ck_assert_ptr_nonnull(numbers->server);
    ck_assert_uint_lt(strlen(numbers->address), ADDRESS_TEXT);
    seen->numbers[seen->n++] = *numbers;
}

/* Reads a group as the master does for a command. */
static inline int zoned_read(const struct upstream *upstream, uint64_t now_ms, struct seen *seen)
{
    int status = upstream_status_read(upstream, now_ms, see, seen);

    upstream_status_forget(upstream->zone);
    return status;
}
