/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a worker's handles of the maps declared in the configuration, each with the worker's own
 * name for the locks. */
#include "settings/shared_map.h"
#include "base/compiler.h"

#include <assert.h>

void shared_maps_open(struct zones *zones, struct slot_id id)
{
    struct zone *zone;

    assert(slot_id_is_valid(id));
    STAILQ_FOREACH (zone, zones, link) {
        const struct fb_map *map;

        if (zone->kind != &shm_map_kind)
            continue;
        map = container_of(zone->shape, struct fb_map, shape);
        assert(map->zone == zone && zone_memory(zone) != NULL);
        shm_map_open(map->handle, zone_memory(zone), &map->shape, id);
        shm_map_log_open(map->handle, map->log != NULL ? zone_memory(map->log) : NULL);
    }
}
