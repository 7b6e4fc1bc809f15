/* SPDX-License-Identifier: BSD-2-Clause */
/* A map declared by a protocol in the configuration: the SDK's fb_map.
 *
 * settings/ declares the map, the master opens the zone, and every worker makes a handle; the
 * master has no handle. */
#pragma once

#include "shm/map_log.h"

#include <forkbeard/types.h>

struct fb_map {
    struct zone *zone; /* open in a worker */
    struct zone *log;  /* the changes'; NULL: the protocol has no `map_changed` */
    struct shm_map_shape shape;
    struct shm_map *handle;     /* the worker's, once it is open */
    struct shm_map_mended said; /* how many the log was told of */
    uint64_t said_ms;
};

/* A worker: makes the handles of all maps among these open zones. */
void shared_maps_open(struct zones *zones, struct slot_id id);
