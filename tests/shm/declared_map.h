/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps declared, opened and used by a test. */
#pragma once

#include "shm/declared.h"
#include "shm/map.h"

#include <string.h>

static const struct shm_map_shape map_shape = { 100, 16, 8, 0 };

static inline struct zone *declare_map(
    struct declared *declared, const char *name, uint32_t version)
{
    struct zone *zone =
        zone_declare(&declared->zones, declared->arena, &shm_map_kind, name, version, &map_shape);

    ck_assert_ptr_nonnull(zone);
    return zone;
}

static inline void open_all(struct declared *declared, struct declared *old)
{
    ck_assert_int_eq(
        zones_open(&declared->zones, old == NULL ? NULL : &old->zones, &declared->log.log), 0);
}

static inline struct shm_map open_map(struct zone *zone)
{
    struct shm_map map;

    shm_map_open(&map, zone_memory(zone), zone->shape, (struct slot_id) { 0, 1 });
    return map;
}

static inline void put_key(struct zone *zone, const char *key)
{
    struct shm_map map = open_map(zone);

    ck_assert_int_eq(shm_map_set(&map, key, strlen(key), 1, "", 0, 0, NULL), SHM_MAP_OK);
}

static inline bool has(struct zone *zone, const char *key)
{
    struct shm_map_item item = { .room = 0 };
    struct shm_map map = open_map(zone);

    return shm_map_get(&map, key, strlen(key), 1, &item) == SHM_MAP_OK;
}
