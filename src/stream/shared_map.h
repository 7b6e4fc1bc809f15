/* SPDX-License-Identifier: BSD-2-Clause */
/* A map that a protocol has declared in the configuration: the SDK's fb_map.
 *
 * Only data: settings/ fills it in, and shm/ opens its zone in a worker. */
#pragma once

#include "shm/map.h"

#include <forkbeard/types.h>

struct fb_map {
    struct fb_zone *zone; /* open in a worker */
    struct fb_shm_map_shape shape;
};

/* Returns the map in shared memory; NULL unless the zone is open. */
static inline struct fb_shm_map *fb_map_memory(const struct fb_map *map)
{
    return fb_zone_memory(map->zone);
}
