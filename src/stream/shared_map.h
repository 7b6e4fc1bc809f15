/* SPDX-License-Identifier: BSD-2-Clause */
/* A map that a protocol has declared in the configuration: the SDK's fb_map.
 *
 * Only data: settings/ fills it in, and shm/ opens its zone in a worker. */
#pragma once

#include "shm/map.h"

#include <forkbeard/types.h>

struct fb_map {
    struct zone *zone; /* open in a worker */
    struct shm_map_shape shape;
};

/* Returns the map in shared memory; NULL unless the zone is open. */
static inline struct shm_map *shared_map_memory(const struct fb_map *map)
{
    return zone_memory(map->zone);
}
