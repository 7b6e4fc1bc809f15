/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches of maps: protocols of this worker that have asked to be told of changes. A writer logs a
 * change in the map's log and rings the workers that wish for it; nobody waits for anybody. What no
 * bell tells of, of another generation or after a death, is found by looking a few times a second,
 * as long as anything is watched. */
#pragma once

#include <stdbool.h>

struct fb_map;
struct fb_worker;
struct worker;

/* Begins or ends to tell the protocol; -1 without memory, or where it cannot be told. */
int map_watch_set(struct fb_worker *handle, struct fb_map *map, bool on);
/* Wakes the workers that wish to hear of what this one has just logged. */
void map_watch_ring(struct worker *worker, struct fb_map *map);
/* The worker's bell has rung. */
void map_watch_bell(struct worker *worker);
/* Ends all watches. */
void map_watch_done(struct worker *worker);
