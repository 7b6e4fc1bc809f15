/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches of maps by protocols of this worker. A writer logs a change in the map and wakes the
 * workers that wish for it, and waits for none. Changes of other generations, or after a death, are
 * found by looking a few times a second, as long as anything is watched. */
#pragma once

#include "event/timer.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>

struct fb_map;
struct fb_worker;
struct source;
struct worker;

struct map_watches {
    STAILQ_HEAD(, map_watch) list;
    struct source *source; /* the loop's own: a look is due; NULL before the first watch */
    struct timer timer;
    unsigned budget; /* changes left for this turn */
};

/* Begins or ends to tell the protocol; -1 without memory, or without a log or callback. */
int map_watch_set(struct fb_worker *handle, struct fb_map *map, bool on);
/* Wakes the workers awaiting the latest change. */
void map_watch_ring(struct worker *worker, struct fb_map *map);
/* Makes the loop look for changes, once the worker's bell has rung. */
void map_watch_look(struct worker *worker);
void map_watch_done(struct worker *worker);
